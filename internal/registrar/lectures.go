package registrar

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"seatline/ent"
	entlecture "seatline/ent/lecture"
	"seatline/internal/lecture"
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
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	row, err := s.client.Lecture.Get(bounded, id)
	if ent.IsNotFound(err) {
		err = fmt.Errorf("%w: %d", lecture.ErrNotFound, id)
	}
	if err != nil {
		return nil, fail(ctx, "read a lecture", err)
	}
	return row, nil
}

// Lectures is a page of the lectures whose title contains search, oldest
// first, and whether more follow. It costs one statement. *InvalidError.
func (s *Seats) Lectures(ctx context.Context, search string, page Page) ([]*ent.Lecture, bool, error) {
	after, more, err := after(page, lectureCursor, strconv.Atoi)
	if err != nil {
		return nil, false, fail(ctx, "list lectures", err)
	}
	query, err := s.lectures(search)
	if err != nil {
		return nil, false, fail(ctx, "list lectures", err)
	}
	if more {
		query.Where(entlecture.IDGT(after))
	}
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	rows, err := query.Order(entlecture.ByID()).Limit(page.First + 1).All(bounded)
	if err != nil {
		return nil, false, fail(ctx, "list lectures", err)
	}
	rows, more = cut(rows, page.First)
	return rows, more, nil
}

// CountLectures counts the lectures whose title contains search. *InvalidError.
func (s *Seats) CountLectures(ctx context.Context, search string) (int, error) {
	query, err := s.lectures(search)
	if err != nil {
		return 0, fail(ctx, "count lectures", err)
	}
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	n, err := query.Count(bounded)
	return n, fail(ctx, "count lectures", err)
}

func (s *Seats) lectures(search string) (*ent.LectureQuery, error) {
	query := s.client.Lecture.Query()
	if search == "" {
		return query, nil
	}
	if err := checkSearch(search); err != nil {
		return nil, err
	}
	return query.Where(containsFold(entlecture.FieldTitle, search, s.postgres)), nil
}

// Create makes a new lecture. *InvalidError when a field is out of bounds. It
// is the one write here that asking again repeats.
func (s *Seats) Create(ctx context.Context, n NewLecture) (*ent.Lecture, error) {
	if err := n.validate(); err != nil {
		return nil, fail(ctx, "create a lecture", err)
	}
	bounded, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	now := s.now()
	row, err := s.client.Lecture.Create().
		SetTitle(n.Title).
		SetNillableDescription(n.Description).
		SetCapacity(n.Capacity).
		SetNillableOpensAt(instantOrNil(n.OpensAt)).
		SetNillableClosesAt(instantOrNil(n.ClosesAt)).
		SetNillablePaused(n.Settings.Paused.Value).
		SetNillableAdmitPerSecond(n.Settings.AdmitPerSecond.Value).
		SetNillableBurst(n.Settings.Burst.Value).
		SetNillableTicketTTLSeconds(n.Settings.TicketTTLSeconds.Value).
		SetNillableOverbookPercent(n.Settings.OverbookPercent.Value).
		SetNillableMessage(n.Settings.Message.Value).
		SetCreatedAt(now).
		SetUpdatedAt(now).
		Save(bounded)
	if err != nil {
		return nil, fail(ctx, "create a lecture", err)
	}
	return row, nil
}

// Update changes a lecture under its row lock, only the fields that are given,
// and tells the line. *InvalidError, for a capacity below the enrolled too;
// lecture.ErrNotFound.
func (r *Registrar) Update(ctx context.Context, id int, change LectureChange) (*ent.Lecture, error) {
	if err := change.validate(); err != nil {
		return nil, fail(ctx, "change a lecture", err)
	}
	bounded, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	var row *ent.Lecture
	err := r.repeat(bounded, func(ctx context.Context, tx *ent.Tx) (err error) {
		if row, err = r.lock(ctx, tx, id); err != nil {
			return err
		}
		if change == (LectureChange{}) {
			return errNothingToCommit
		}
		if err := change.fits(row); err != nil {
			return err
		}
		row, err = change.apply(row.Update()).AddSeatVersion(1).SetUpdatedAt(r.now()).Save(ctx)
		return err
	})
	if err != nil {
		return nil, fail(ctx, "change a lecture", err)
	}
	row = row.Unwrap()
	r.changed(ctx, row)
	return row, nil
}

// fits holds the change to what can only be said of the row it changes.
func (c LectureChange) fits(row *ent.Lecture) error {
	if c.Capacity.Set && *c.Capacity.Value < row.EnrolledCount {
		return &InvalidError{
			Field:  "capacity",
			Reason: fmt.Sprintf("must not be below the number enrolled, which is %d", row.EnrolledCount),
		}
	}
	opensAt, closesAt := row.OpensAt, row.ClosesAt
	if c.OpensAt.Set {
		opensAt = c.OpensAt.Value
	}
	if c.ClosesAt.Set {
		closesAt = c.ClosesAt.Value
	}
	return checkHours(opensAt, closesAt)
}

func (c LectureChange) apply(u *ent.LectureUpdateOne) *ent.LectureUpdateOne {
	if c.Description.Set && c.Description.Value == nil {
		u.ClearDescription()
	}
	if c.OpensAt.Set && c.OpensAt.Value == nil {
		u.ClearOpensAt()
	}
	if c.ClosesAt.Set && c.ClosesAt.Value == nil {
		u.ClearClosesAt()
	}
	if c.Settings.Message.Set && c.Settings.Message.Value == nil {
		u.ClearMessage()
	}
	return u.
		SetNillableTitle(c.Title.Value).
		SetNillableDescription(c.Description.Value).
		SetNillableCapacity(c.Capacity.Value).
		SetNillableOpensAt(instantOrNil(c.OpensAt.Value)).
		SetNillableClosesAt(instantOrNil(c.ClosesAt.Value)).
		SetNillablePaused(c.Settings.Paused.Value).
		SetNillableAdmitPerSecond(c.Settings.AdmitPerSecond.Value).
		SetNillableBurst(c.Settings.Burst.Value).
		SetNillableTicketTTLSeconds(c.Settings.TicketTTLSeconds.Value).
		SetNillableOverbookPercent(c.Settings.OverbookPercent.Value).
		SetNillableMessage(c.Settings.Message.Value)
}

func instantOrNil(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	cut := instant(*t)
	return &cut
}
