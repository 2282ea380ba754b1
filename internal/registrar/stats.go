package registrar

import "maps"

// Stats are a Registrar's counters, of this process alone.
type Stats struct {
	InFlight int                     // enrolments that are not over
	Ended    map[EnrollStatus]uint64 // how those that are have ended
	Failed   uint64                  // those that ended without an outcome
}

// Stats returns the counters.
func (r *Registrar) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{InFlight: len(r.attempts), Ended: maps.Clone(r.ended), Failed: r.failed}
}

// tally counts an attempt that is over, under mu.
func (r *Registrar) tally(a *attempt) {
	if a.err != nil {
		r.failed++
	} else {
		r.ended[a.outcome.Status]++
	}
}
