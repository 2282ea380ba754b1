package waitroom

import (
	"context"
	"time"

	"seatline/internal/lecture"
)

// Seats is what the line asks of the database. *registrar.Seats satisfies it.
type Seats interface {
	// Facts reads lectures without a lock, in one statement; ids that are
	// gone are missing from the result.
	Facts(ctx context.Context, ids []int) ([]lecture.Facts, error)
	// Decide reads one lecture, and which of these claims (at most 200) were
	// used, while holding the lecture's row lock: the only reading from which
	// "there is no enrolment" may be concluded (protocol.md rule 1). Used are
	// those of people who have an active row, and those whose own row was
	// cancelled since. lecture.ErrUnavailable when the lock was not got in
	// time, lecture.ErrNotFound when the lecture is gone.
	Decide(ctx context.Context, id int, claims []lecture.Claim) (f lecture.Facts, used []lecture.Claim, err error)
	// Begin raises the lecture's line_epoch and returns the row as it then
	// is, with the users of all active rows (protocol.md rule 8).
	// lecture.ErrNotFound when there is no such lecture.
	Begin(ctx context.Context, id int) (lecture.Facts, []string, error)
	// MovedSince reports whether user enrolled at, or cancelled, the lecture
	// at t or later.
	MovedSince(ctx context.Context, id int, user string, t time.Time) (bool, error)
	// Running lists the lectures that are not closed, or closed less than an
	// hour ago.
	Running(ctx context.Context) ([]int, error)
}
