package registrar

import (
	"context"
	"time"

	"seatline/ent"
	"seatline/ent/enrollment"
)

// Cancel gives the person's seat back and returns the cancelled receipt, with
// Edges.Lecture; nil when not enrolled. The line is told, so that the seat goes
// to its head. lecture.ErrNotFound.
func (r *Registrar) Cancel(ctx context.Context, id int, user string) (*ent.Enrollment, error) {
	if !validUserKey(user) {
		_, err := r.Lecture(ctx, id)
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	var at *time.Time
	var row *ent.Enrollment
	err := r.repeat(bounded, func(ctx context.Context, tx *ent.Tx) error {
		of, err := r.lock(ctx, tx, id)
		if err != nil {
			return err
		}
		// A repetition after an undecided commit looks at the row that it
		// may have cancelled already.
		which := enrollment.CancelledAtIsNil()
		if row != nil {
			which = enrollment.ID(row.ID)
		}
		row, err = tx.Enrollment.Query().
			Where(enrollment.LectureID(id), enrollment.UserKey(user), which).
			Only(ctx)
		if ent.IsNotFound(err) {
			row = nil
			return errNothingToCommit
		}
		if err != nil {
			return err
		}
		if row.CancelledAt != nil {
			row.Edges.Lecture = of
			return errNothingToCommit
		}
		if at == nil {
			now := r.now()
			at = &now
		}
		if row, err = row.Update().SetCancelledAt(*at).Save(ctx); err != nil {
			return err
		}
		row.Edges.Lecture, err = of.Update().AddEnrolledCount(-1).AddSeatVersion(1).SetUpdatedAt(*at).Save(ctx)
		return err
	})
	if err != nil || row == nil {
		return nil, fail(ctx, "cancel an enrolment", err)
	}
	of := row.Edges.Lecture.Unwrap()
	r.changed(ctx, of, user)
	return row.Unwrap(), nil
}

// changed tells the line about a write of the lecture's row that has happened.
// If that fails, the line's reconciler finds out by itself.
func (r *Registrar) changed(ctx context.Context, l *ent.Lecture, cancelled ...string) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellWithin)
	defer cancel()
	if err := r.line.Changed(bounded, FactsOf(l), cancelled...); err != nil {
		r.log.WarnContext(ctx, "the line was not told of a change", "lecture", l.ID, "error", err)
	}
}
