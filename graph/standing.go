package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seatline/ent"
	"seatline/graph/model"
	"seatline/internal/lecture"
	"seatline/internal/waitroom"
)

// standingAttempts bounds how often a marker without a row is removed and the
// line asked again: each further one needs another enrolment and cancellation
// of the same person in between.
const standingAttempts = 3

// A reading asks the line for a person's place.
type reading func(ctx context.Context, id int, user string) (waitroom.Place, error)

// standing is where a person stands: what the line says, unless there is a row
// in the database (protocol.md rule 4). The line is read first: a row that
// comes to be after that is seen, and wins. ENROLLED without a row is a marker
// that outlived its enrolment; it is removed, if it is not newer than the
// database's answer, and the line asked again.
func (r *Resolver) standing(ctx context.Context, id int, user string, read reading) (*model.QueuePosition, error) {
	for range standingAttempts {
		place, err := read(ctx, id, user)
		if err != nil {
			return nil, err
		}
		row, version, err := r.registrar.Standing(ctx, id, user)
		if err != nil {
			return nil, err
		}
		if row != nil || place.Status != waitroom.Enrolled {
			return r.source.Position(id, place, row), nil
		}
		if err := r.room.Unmark(ctx, id, user, version); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("enrolled without a row, again and again: %w", lecture.ErrUnavailable)
}

// afterEnroll is where a person stands after an enroll. Whoever has the receipt
// in hand is enrolled, even if the line cannot be asked at this moment: that
// must not turn a seat into an error.
func (r *Resolver) afterEnroll(id int, user string, row *ent.Enrollment) func(context.Context) (*model.QueuePosition, error) {
	return func(ctx context.Context) (*model.QueuePosition, error) {
		if row == nil {
			return r.standing(ctx, id, user, r.room.Place)
		}
		place, err := r.room.Place(ctx, id, user)
		switch {
		case errors.Is(err, lecture.ErrUnavailable) && row.Edges.Lecture != nil:
			place = waitroom.Place{Line: quietLine(row.Edges.Lecture, time.Now()), PollAfterMs: 30_000}
		case err != nil:
			return nil, err
		}
		return r.source.Position(id, place, row), nil
	}
}

// quietLine is what a row alone says of its line: nobody waits, nothing is held.
func quietLine(l *ent.Lecture, now time.Time) waitroom.Line {
	line := waitroom.Line{
		Remaining:  l.Capacity - l.EnrolledCount,
		Version:    l.SeatVersion,
		Message:    l.Message,
		ServerTime: now,
		State:      waitroom.Open,
	}
	switch {
	case l.ClosesAt != nil && !now.Before(*l.ClosesAt):
		line.State = waitroom.Closed
	case l.OpensAt != nil && now.Before(*l.OpensAt):
		line.State = waitroom.Upcoming
	case l.Paused:
		line.State = waitroom.Paused
	case line.Remaining <= 0:
		line.State = waitroom.SoldOut
	}
	return line
}
