package registrar

import (
	"context"
	"time"

	"seatline/ent/enrollment"
)

// MovedSince reports whether user enrolled at, or cancelled, the lecture at t
// or later: a proof of a place from before that is worth nothing.
func (s *Seats) MovedSince(ctx context.Context, id int, user string, t time.Time) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	moved, err := s.client.Enrollment.Query().
		Where(
			enrollment.LectureID(id), enrollment.UserKey(user),
			enrollment.Or(enrollment.CreatedAtGTE(t.UTC()), enrollment.CancelledAtGTE(t.UTC())),
		).Exist(bounded)
	if err != nil {
		return false, fail(ctx, "look for an enrolment since", err)
	}
	return moved, nil
}
