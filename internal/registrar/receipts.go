package registrar

import (
	"context"

	"seatline/ent"
)

// RosterFilter chooses entries of a roster.
type RosterFilter struct {
	Search           string // part of a user key, byte for byte
	IncludeCancelled bool
}

// Standing reads a person's active enrolment (nil when there is none; with
// Edges.Lecture when there is) and the lecture's seat_version at that instant.
// lecture.ErrNotFound when there is no such lecture.
func (s *Seats) Standing(ctx context.Context, id int, user string) (*ent.Enrollment, int64, error) {
	panic("not written yet")
}

// Receipts is a page of all of a person's enrolments, newest first, each with
// Edges.Lecture, and whether more follow.
func (s *Seats) Receipts(ctx context.Context, user string, page Page) ([]*ent.Enrollment, bool, error) {
	panic("not written yet")
}

// CountReceipts counts all of a person's enrolments.
func (s *Seats) CountReceipts(ctx context.Context, user string) (int, error) {
	panic("not written yet")
}

// Roster is a page of a lecture's enrolments by number, each with
// Edges.Lecture, and whether more follow. lecture.ErrNotFound.
func (s *Seats) Roster(ctx context.Context, id int, f RosterFilter, page Page) ([]*ent.Enrollment, bool, error) {
	panic("not written yet")
}

// CountRoster counts a lecture's enrolments.
func (s *Seats) CountRoster(ctx context.Context, id int, f RosterFilter) (int, error) {
	panic("not written yet")
}

// EachOfRoster calls visit with each of a lecture's enrolments by number,
// reading them in chunks, and stops at visit's first error. lecture.ErrNotFound
// comes before the first visit.
func (s *Seats) EachOfRoster(ctx context.Context, id int, includeCancelled bool, visit func(*ent.Enrollment) error) error {
	panic("not written yet")
}
