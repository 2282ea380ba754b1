package registrar

import (
	"context"

	"seatline/ent"
	"seatline/internal/lecture"
)

// Line is what the registrar asks of the waiting line; *waitroom.Room
// satisfies it.
type Line interface {
	Claim(ctx context.Context, id int, user, attempt string) (lecture.Claim, error)
	Settle(ctx context.Context, id int, s lecture.Seats, ends []lecture.Settlement) error
	Changed(ctx context.Context, f lecture.Facts, cancelled ...string) error
}

// EnrollStatus is how an Enroll ended; the values are the API's.
type EnrollStatus string

// The ways an Enroll ends.
const (
	Enrolled        EnrollStatus = "ENROLLED"
	AlreadyEnrolled EnrollStatus = "ALREADY_ENROLLED"
	NotAdmitted     EnrollStatus = "NOT_ADMITTED"
	TicketExpired   EnrollStatus = "TICKET_EXPIRED"
	SoldOut         EnrollStatus = "SOLD_OUT"
	Closed          EnrollStatus = "CLOSED"
)

// Outcome is what an Enroll came to. Receipt, with Edges.Lecture, is there
// with Enrolled and AlreadyEnrolled only.
type Outcome struct {
	Status  EnrollStatus
	Receipt *ent.Enrollment
}

// Registrar takes seats and gives them back.
type Registrar struct{ *Seats }

// New makes a registrar over seats and the line that admits to them.
func New(seats *Seats, line Line) *Registrar { panic("not written yet") }

// Enroll uses the person's ticket.
func (r *Registrar) Enroll(ctx context.Context, id int, user string) (Outcome, error) {
	panic("not written yet")
}

// Cancel gives the person's seat back and returns the cancelled receipt, with
// Edges.Lecture; nil when not enrolled. lecture.ErrNotFound.
func (r *Registrar) Cancel(ctx context.Context, id int, user string) (*ent.Enrollment, error) {
	panic("not written yet")
}

// Run keeps the registrar until ctx is done, then takes no new enrolments and
// returns when those in flight have ended, within a bound.
func (r *Registrar) Run(ctx context.Context) error { panic("not written yet") }
