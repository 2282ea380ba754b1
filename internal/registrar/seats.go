package registrar

import (
	"context"
	"log/slog"
	"time"

	"seatline/ent"
	"seatline/internal/lecture"
)

// Options are the things a test or an operator may want otherwise; the zero
// value is right for a server.
type Options struct {
	Log      *slog.Logger     // default slog.Default()
	Now      func() time.Time // default time.Now
	Patience time.Duration    // how long Enroll's caller waits for its batch; default 8 s
}

// Seats is all that SQL alone decides. It satisfies waitroom.Seats.
type Seats struct{}

// Open makes the seats of client's database.
func Open(client *ent.Client, o Options) *Seats { panic("not written yet") }

// Ping tells whether the database answers and has its tables.
func (s *Seats) Ping(ctx context.Context) error { panic("not written yet") }

// Facts reads lectures without a lock, in one statement.
func (s *Seats) Facts(ctx context.Context, ids []int) ([]lecture.Facts, error) {
	panic("not written yet")
}

// Decide reads one lecture, and which of users have an active row, under the row lock.
func (s *Seats) Decide(ctx context.Context, id int, users []string) (lecture.Facts, []string, error) {
	panic("not written yet")
}

// Begin raises the lecture's line_epoch.
func (s *Seats) Begin(ctx context.Context, id int) (lecture.Facts, []string, error) {
	panic("not written yet")
}

// Running lists the lectures that are not closed, or closed less than an hour ago.
func (s *Seats) Running(ctx context.Context) ([]int, error) { panic("not written yet") }

// FactsOf is a row in the line's words: what Facts would read.
func FactsOf(l *ent.Lecture) lecture.Facts { panic("not written yet") }
