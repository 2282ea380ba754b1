package registrar

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"entgo.io/ent/dialect"

	"seatline/ent"
	"seatline/ent/enrollment"
	entlecture "seatline/ent/lecture"
	"seatline/internal/lecture"
)

const (
	readWithin  = 5 * time.Second  // one reading
	writeWithin = 10 * time.Second // one transaction with its repetitions
	pingWithin  = 2 * time.Second

	// runningFor is how long a closed lecture still counts as running: people
	// look on, and the last claims are settled.
	runningFor = time.Hour
)

// Options are the things a test or an operator may want otherwise; the zero
// value is right for a server.
type Options struct {
	Log      *slog.Logger     // default slog.Default()
	Now      func() time.Time // default time.Now
	Patience time.Duration    // how long Enroll's caller waits for its batch; default 8 s
}

// Seats is all that SQL alone decides. It satisfies waitroom.Seats.
type Seats struct {
	client   *ent.Client
	postgres bool
	log      *slog.Logger
	clock    func() time.Time
	patience time.Duration
}

// Open makes the seats of client's database.
func Open(client *ent.Client, o Options) *Seats {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Seats{
		client:   client,
		postgres: client.Dialect() == dialect.Postgres,
		log:      cmp.Or(o.Log, slog.Default()),
		clock:    o.Now,
		patience: cmp.Or(o.Patience, 8*time.Second),
	}
}

// now is the instant as the databases keep it.
func (s *Seats) now() time.Time { return instant(s.clock()) }

func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Ping tells whether the database answers and has its tables.
func (s *Seats) Ping(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	_, err := s.client.Enrollment.Query().Limit(1).IDs(bounded)
	return fail(ctx, "ping the database", err)
}

// Facts reads lectures without a lock, in one statement; ids that are gone are
// missing from the result.
func (s *Seats) Facts(ctx context.Context, ids []int) ([]lecture.Facts, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	rows, err := s.client.Lecture.Query().Where(entlecture.IDIn(ids...)).Order(entlecture.ByID()).All(bounded)
	if err != nil {
		return nil, fail(ctx, "read lectures", err)
	}
	facts := make([]lecture.Facts, len(rows))
	for i, row := range rows {
		facts[i] = FactsOf(row)
	}
	return facts, nil
}

// Decide reads one lecture, and which of the claims were used, while holding the
// lecture's row lock: the only reading from which "there is no enrolment" may be
// concluded. Used are those of people who have an active row, and those whose
// own row was cancelled since: whoever cancels has no ticket coming back.
// lecture.ErrUnavailable when the lock was not got in time, lecture.ErrNotFound
// when the lecture is gone.
func (s *Seats) Decide(ctx context.Context, id int, claims []lecture.Claim) (f lecture.Facts, used []lecture.Claim, err error) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	err = s.transact(bounded, func(ctx context.Context, tx *ent.Tx) error {
		if err := s.waitLess(ctx, tx); err != nil {
			return err
		}
		row, err := s.lock(ctx, tx, id)
		if err != nil {
			return err
		}
		rows, err := s.rowsOf(ctx, tx, id, claims)
		if err != nil {
			return err
		}
		f = FactsOf(row)
		for i, claim := range claims {
			if rows[i] != nil {
				used = append(used, claim)
			}
		}
		return errNothingToCommit
	})
	if err != nil {
		return lecture.Facts{}, nil, fail(ctx, "decide about claims", err)
	}
	return f, used, nil
}

// waitLess makes a transaction of the reconciler give way sooner than one that
// enrols: it has another round, they have a person waiting.
func (s *Seats) waitLess(ctx context.Context, tx *ent.Tx) error {
	if !s.postgres {
		return nil
	}
	_, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '2s'`)
	return err
}

// Begin raises the lecture's line_epoch and returns the row as it then is, with
// the users of all active rows. lecture.ErrNotFound when there is no such
// lecture.
func (s *Seats) Begin(ctx context.Context, id int) (lecture.Facts, []string, error) {
	bounded, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	var facts lecture.Facts
	var users []string
	err := s.repeat(bounded, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lock(ctx, tx, id)
		if err != nil {
			return err
		}
		row, err = row.Update().AddLineEpoch(1).AddSeatVersion(1).SetUpdatedAt(s.now()).Save(ctx)
		if err != nil {
			return err
		}
		facts = FactsOf(row)
		users, err = tx.Enrollment.Query().
			Where(enrollment.LectureID(id), enrollment.CancelledAtIsNil()).
			Select(enrollment.FieldUserKey).Strings(ctx)
		return err
	})
	if err != nil {
		return lecture.Facts{}, nil, fail(ctx, "begin a line", err)
	}
	return facts, users, nil
}

// Running lists the lectures that are not closed, or closed less than an hour
// ago.
func (s *Seats) Running(ctx context.Context) ([]int, error) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	ids, err := s.client.Lecture.Query().
		Where(entlecture.Or(
			entlecture.ClosesAtIsNil(),
			entlecture.ClosesAtGT(s.now().Add(-runningFor)),
		)).
		Order(entlecture.ByID()).
		IDs(bounded)
	if err != nil {
		return nil, fail(ctx, "list running lectures", err)
	}
	return ids, nil
}

// FactsOf is a row in the line's words: what Facts would read.
func FactsOf(l *ent.Lecture) lecture.Facts {
	f := lecture.Facts{
		ID:        l.ID,
		Epoch:     l.LineEpoch,
		Version:   l.SeatVersion,
		Capacity:  l.Capacity,
		Remaining: l.Capacity - l.EnrolledCount,
		Settings: lecture.Settings{
			Paused:           l.Paused,
			AdmitPerSecond:   l.AdmitPerSecond,
			Burst:            l.Burst,
			TicketTTLSeconds: l.TicketTTLSeconds,
			OverbookPercent:  l.OverbookPercent,
			Message:          l.Message,
		},
	}
	if l.OpensAt != nil {
		f.OpensAt = *l.OpensAt
	}
	if l.ClosesAt != nil {
		f.ClosesAt = *l.ClosesAt
	}
	return f
}
