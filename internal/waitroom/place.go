package waitroom

import "time"

// Status is where a person stands; the values are the API's.
type Status string

// The statuses of protocol.md section 3.
const (
	NotQueued Status = "NOT_QUEUED"
	Waiting   Status = "WAITING"
	Admitted  Status = "ADMITTED"
	Enrolled  Status = "ENROLLED"
	Expired   Status = "EXPIRED"
)

// LineState is what a whole line is doing; the values are the API's.
type LineState string

// The line states of protocol.md section 3, in the order in which they win.
const (
	Closed   LineState = "CLOSED"
	Upcoming LineState = "UPCOMING"
	Paused   LineState = "PAUSED"
	SoldOut  LineState = "SOLD_OUT"
	AllHeld  LineState = "ALL_HELD"
	Open     LineState = "OPEN"
)

// Reason is why somebody reads EXPIRED or NOT_QUEUED; the values are the API's.
type Reason string

// The reasons.
const (
	TicketExpired Reason = "TICKET_EXPIRED"
	Away          Reason = "AWAY"
	LineLost      Reason = "LINE_LOST"
)

// Line is one reading of a lecture's line.
type Line struct {
	State      LineState
	Waiting    int // in line and there
	Parked     int // set aside because away
	Held       int // tickets + claims
	InFlight   int // claims
	Remaining  int // free seats, held ones included
	Version    int64
	Message    *string   // the operator's word
	ServerTime time.Time // Redis time of the reading
}

// Place is one person's standing at one lecture: whole state, not a change.
// Redis alone speaks here; an active row in the database wins over it.
type Place struct {
	Line                 Line
	Status               Status
	Position             *int // 1 = next; only while Waiting
	Approximate          bool // Position is an estimate
	EstimatedWaitSeconds *int
	SeatChance           *float64
	TicketExpiresAt      *time.Time // only while Admitted
	PlaceToken           *string    // only while Waiting
	Reason               *Reason
	PollAfterMs          int
}

// Stats is a line in figures, for its operator.
type Stats struct {
	Line              Line
	AdmitPerSecond    float64
	AdmittedPerMinute float64
	ClaimRate         *float64 // share of tickets used; nil without data
}
