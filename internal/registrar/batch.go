package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seatline/ent"
	entlecture "seatline/ent/lecture"
	"seatline/internal/lecture"
)

// batchWithin bounds one transaction of a batch, and its reading back.
const batchWithin = 10 * time.Second

var errCutOff = fmt.Errorf("enroll: %w: the claim grew too old", lecture.ErrUnavailable)

// decide brings every member of a batch to its end and returns the newest
// reading of the seats, which includes whatever was committed. A part that is
// refused for what is in it is tried again by halves, first comers first.
func (r *Registrar) decide(id int, batch []*member) lecture.Seats {
	seats := lecture.Seats{Remaining: -1}
	parts := [][]*member{batch}
	for len(parts) > 0 {
		part := dropOld(parts[len(parts)-1], r.clock())
		parts = parts[:len(parts)-1]
		if len(part) == 0 {
			continue
		}
		// Between the whole and the single member a conflict is as good a
		// reason to halve as any.
		most := 1
		if len(part) == len(batch) || len(part) == 1 {
			most = tries
		}
		reading, err := r.enrollPart(id, part, most)
		switch {
		case err == nil:
			if reading.Version > seats.Version {
				seats = reading
			}
		case len(part) > 1 && blameable(err):
			half := len(part) / 2
			parts = append(parts, part[half:], part[:half])
		default:
			r.logFailure("a batch failed", id, err)
			err = fail(context.Background(), "enroll", err)
			for _, m := range part {
				m.back(err)
			}
		}
	}
	return seats
}

// dropOld ends members that would be cut off anyway: they are in no
// transaction, so their tickets can go back without asking the database.
func dropOld(part []*member, now time.Time) []*member {
	young := make([]*member, 0, len(part))
	for _, m := range part {
		if m.old(now) {
			m.back(errCutOff)
		} else {
			young = append(young, m)
		}
	}
	return young
}

// enrollPart runs one part of a batch in a transaction, at most most times, and
// decides its members unless it returns an error.
func (r *Registrar) enrollPart(id int, part []*member, most int) (lecture.Seats, error) {
	ctx, cancel := context.WithTimeout(r.base, batchWithin)
	defer cancel()
	for try := 1; ; try++ {
		var found findings
		err := r.transact(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			found, err = r.enrollAll(ctx, tx, id, part)
			return err
		})
		switch {
		case err == nil:
			found.apply(part)
			return found.seats, nil
		case errors.Is(err, errUndecided):
			r.logFailure("the answer to a commit was lost", id, err)
			return r.readBack(id, part, found), nil
		case try == most || !conflict(err) || !pause(ctx, try):
			return lecture.Seats{}, err
		}
	}
}

// findings is what a transaction found out about its members, good only once
// it has committed.
type findings struct {
	seats lecture.Seats
	ends  []finding // one a member
}

type finding struct {
	status EnrollStatus // "" = past the cut-off
	row    *ent.Enrollment
}

func (f findings) apply(part []*member) {
	for i, end := range f.ends {
		switch end.status {
		case "":
			part[i].back(errCutOff)
		case SoldOut:
			part[i].full()
		default:
			part[i].in(Outcome{Status: end.status, Receipt: end.row})
		}
	}
}

// enrollAll is the transaction: cut-off, then who has a row, then who finds a
// seat, all under the lock and in the members' order.
func (r *Registrar) enrollAll(ctx context.Context, tx *ent.Tx, id int, part []*member) (findings, error) {
	row, err := r.lock(ctx, tx, id)
	if err != nil {
		return findings{}, err
	}
	f := findings{ends: make([]finding, len(part))}
	now := r.clock()
	var users []string
	for i, m := range part {
		if !m.old(now) {
			f.ends[i].status = SoldOut // unless a row or a seat is found
			users = append(users, m.user)
		}
	}
	active, err := r.active(ctx, tx, id, users)
	if err != nil {
		return findings{}, err
	}

	free := row.Capacity - row.EnrolledCount
	var seated []lecture.Claim
	var places []int // of the seated, in part
	taken := make(map[string]bool)
	for i, m := range part {
		switch end := &f.ends[i]; {
		case end.status == "":
		case active[m.user] != nil:
			end.status, end.row = AlreadyEnrolled, active[m.user]
		case taken[m.user]:
			end.status = AlreadyEnrolled // the same person, earlier in this batch
		case len(seated) < free:
			end.status = Enrolled
			taken[m.user] = true
			seated = append(seated, m.claim)
			places = append(places, i)
		}
	}

	if len(seated) > 0 {
		at := instant(now)
		rows, err := r.insert(ctx, tx, id, row.LastNumber, at, seated)
		if err != nil {
			return findings{}, err
		}
		for i, place := range places {
			f.ends[place].row = rows[i]
			active = put(active, rows[i])
		}
		if err := r.count(ctx, tx, row, len(seated), at); err != nil {
			return findings{}, err
		}
	}
	of := row.Unwrap()
	for i := range f.ends {
		end := &f.ends[i]
		if end.status == AlreadyEnrolled && end.row == nil {
			end.row = active[part[i].user]
		}
		if end.row != nil {
			end.row.Edges.Lecture = of
		}
	}
	f.seats = FactsOf(of).Seats()
	if len(seated) == 0 {
		return f, errNothingToCommit
	}
	return f, nil
}

func put(rows map[string]*ent.Enrollment, row *ent.Enrollment) map[string]*ent.Enrollment {
	if rows == nil {
		rows = make(map[string]*ent.Enrollment)
	}
	rows[row.UserKey] = row
	return rows
}

// count moves the kept count with the rows that were inserted, in the row that
// is held and in the database.
func (r *Registrar) count(ctx context.Context, tx *ent.Tx, row *ent.Lecture, seated int, at time.Time) error {
	row.EnrolledCount += seated
	row.LastNumber += seated
	row.SeatVersion++
	row.UpdatedAt = at
	n, err := tx.Lecture.Update().
		Where(entlecture.ID(row.ID)).
		SetEnrolledCount(row.EnrolledCount).
		SetLastNumber(row.LastNumber).
		SetSeatVersion(row.SeatVersion).
		SetUpdatedAt(at).
		Save(ctx)
	if err == nil && n != 1 {
		err = fmt.Errorf("updated %d lectures of 1", n)
	}
	return err
}

// readBack finds out what became of a transaction whose COMMIT was not
// answered. The lock is got only once that COMMIT has happened or cannot happen
// any more, so what is read under it is the truth. Without the lock nothing is
// decided, and the claims stay.
func (r *Registrar) readBack(id int, part []*member, sought findings) lecture.Seats {
	ctx, cancel := context.WithTimeout(r.base, batchWithin)
	defer cancel()
	claims := make([]lecture.Claim, len(part))
	for i, m := range part {
		claims[i] = m.claim
	}
	var of *ent.Lecture
	var rows []*ent.Enrollment
	err := r.transact(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := r.lock(ctx, tx, id)
		if err != nil {
			return err
		}
		if rows, err = r.rowsOf(ctx, tx, id, claims); err != nil {
			return err
		}
		of = row.Unwrap()
		return errNothingToCommit
	})
	if err != nil {
		r.logFailure("a batch could not be read back; the line's reconciler decides", id, err)
		err = fmt.Errorf("enroll: %w: %w", lecture.ErrUnavailable, err)
		for _, m := range part {
			m.undecided(err)
		}
		return lecture.Seats{Remaining: -1}
	}
	lost := fmt.Errorf("enroll: %w: the commit did not happen", lecture.ErrUnavailable)
	for i, m := range part {
		row := rows[i]
		if row == nil {
			m.back(lost)
			continue
		}
		if row.CancelledAt != nil {
			m.gone(fmt.Errorf("enroll: %w: it happened, and was cancelled since", lecture.ErrUnavailable))
			continue
		}
		row.Edges.Lecture = of
		status := AlreadyEnrolled
		if end := sought.ends[i]; end.status == Enrolled && end.row.ID == row.ID {
			status = Enrolled
		}
		m.in(Outcome{Status: status, Receipt: row})
	}
	return FactsOf(of).Seats()
}

// logFailure logs what callers are not told.
func (r *Registrar) logFailure(what string, id int, err error) {
	attrs := []any{"lecture", id, "error", err}
	if p, ok := errors.AsType[*panicError](err); ok {
		attrs = append(attrs, "stack", string(p.stack))
	}
	if unavailable(err) {
		r.log.Warn(what, attrs...)
		return
	}
	r.log.Error(what, attrs...)
}
