package registrar

// InvalidError says which input was refused and why, in words made for the
// person who sent it. Methods that take input from outside return it as
// *InvalidError.
type InvalidError struct {
	Field  string // in the API's spelling: "title", "settings.burst", "after"
	Reason string // for instance "must be between 1 and 10000"
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Reason }
