package registrar

import (
	"context"
	"time"

	"seatline/ent"
)

// Optional is a field of a change: absent (the zero value), null (Set, with a
// nil Value), or a value.
type Optional[T any] struct {
	Set   bool
	Value *T
}

// Some is a field that is given.
func Some[T any](v T) Optional[T] { return Optional[T]{Set: true, Value: &v} }

// Null is a field that is given as null.
func Null[T any]() Optional[T] { return Optional[T]{Set: true} }

// SettingsChange says how a line is to be run; what is absent stays as it is,
// or is the default for a new lecture. Only Message may be null.
type SettingsChange struct {
	Paused           Optional[bool]
	AdmitPerSecond   Optional[float64]
	Burst            Optional[int]
	TicketTTLSeconds Optional[int]
	OverbookPercent  Optional[int]
	Message          Optional[string]
}

// NewLecture is a lecture to be.
type NewLecture struct {
	Title             string
	Description       *string
	Capacity          int
	OpensAt, ClosesAt *time.Time
	Settings          SettingsChange
}

// LectureChange changes a lecture; what is absent stays as it is. Only
// Description, OpensAt, ClosesAt and Settings.Message may be null.
type LectureChange struct {
	Title       Optional[string]
	Description Optional[string]
	Capacity    Optional[int]
	OpensAt     Optional[time.Time]
	ClosesAt    Optional[time.Time]
	Settings    SettingsChange
}

// Lecture reads one lecture. lecture.ErrNotFound when there is none.
func (s *Seats) Lecture(ctx context.Context, id int) (*ent.Lecture, error) {
	panic("not written yet")
}

// Lectures is a page of the lectures whose title contains search, oldest
// first, and whether more follow.
func (s *Seats) Lectures(ctx context.Context, search string, page Page) ([]*ent.Lecture, bool, error) {
	panic("not written yet")
}

// CountLectures counts the lectures whose title contains search.
func (s *Seats) CountLectures(ctx context.Context, search string) (int, error) {
	panic("not written yet")
}

// Create makes a new lecture. *InvalidError when a field is out of bounds.
func (s *Seats) Create(ctx context.Context, n NewLecture) (*ent.Lecture, error) {
	panic("not written yet")
}

// Update changes a lecture. *InvalidError, lecture.ErrNotFound.
func (r *Registrar) Update(ctx context.Context, id int, change LectureChange) (*ent.Lecture, error) {
	panic("not written yet")
}
