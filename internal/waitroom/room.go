package waitroom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"seatline/internal/lecture"
)

// Options of a Room. Zero values take the defaults.
type Options struct {
	Tick          time.Duration // between two steps of admission, and two events of a position; 1 s
	PresenceGrace time.Duration // without a sign of life for longer, somebody is absent; 60 s
	ParkedFor     time.Duration // how long an absent person's place is kept beyond that; 10 min
	PlaceKey      []byte        // signs place tokens; without one none are issued or honoured
	Log           *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Tick = cmp.Or(o.Tick, time.Second)
	o.PresenceGrace = cmp.Or(o.PresenceGrace, time.Minute)
	o.ParkedFor = cmp.Or(o.ParkedFor, 10*time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Room is the waiting lines of all lectures. Any number of Rooms, in any number
// of processes, share one Redis; none of them leads.
type Room struct {
	rdb     redis.UniversalClient
	seats   Seats
	opts    Options
	log     *slog.Logger
	scripts scripts
	tokens  placeTokens

	contacts singleflight.Group // first contacts and refreshes, by lecture
	unknown  unknownLectures
	paces    paces
	listed   spaced[int]
	warned   spaced[warning]

	mu     sync.Mutex
	hubs   map[int]*hub
	cached []int          // active lectures, when they were last read
	ending bool           // no new hubs: Run is over
	wg     sync.WaitGroup // hub loops
}

// New makes a Room on rdb, which must have ContextTimeoutEnabled. Nothing moves
// until Run.
func New(rdb redis.UniversalClient, seats Seats, o Options) *Room {
	o = o.withDefaults()
	return &Room{
		rdb: rdb, seats: seats, opts: o, log: o.Log, scripts: newScripts(),
		tokens: placeTokens{key: o.PlaceKey},
		hubs:   map[int]*hub{},
	}
}

// Run ticks every line until ctx is done: admission, the reconciler, and the
// rescan for lines that the cache of active lectures has lost. It ends the
// streams of Watch and returns when their loops have ended.
func (r *Room) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.runAdmission(ctx) })
	g.Go(func() error { return r.runReconciler(ctx) })
	g.Go(func() error { return r.runRescan(ctx) })
	err := g.Wait()
	r.endHubs()
	r.wg.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Ping asks Redis for a sign of life. lecture.ErrUnavailable without one.
func (r *Room) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := r.rdb.Ping(ctx).Err(); err != nil {
		return unavailable("ping", err)
	}
	return nil
}

// Join gives user a place in line, or returns the one there is; it never
// changes an existing place. placeToken may bring back a place of a line that
// was lost; one that does not apply is ignored. An enrolled person reads
// Enrolled and takes no place. lecture.ErrNotFound, lecture.ErrUnavailable.
func (r *Room) Join(ctx context.Context, id int, user, placeToken string) (Place, error) {
	restored, err := r.restorable(ctx, id, user, placeToken)
	if err != nil {
		return Place{}, err
	}
	answer, err := r.onLine(ctx, r.scripts.join, id, user, restored)
	if err != nil {
		return Place{}, err
	}
	r.list(ctx, id)
	if answer.text(0) == "WAITING" && answer.int64(4) == 1 {
		r.wake(ctx, id)
	}
	return r.read(ctx, id, user)
}

// Leave takes user out of the line, or gives their unused ticket back, whose
// seat goes to the next in line at once. An enrolment in flight stays, and is
// returned. lecture.ErrNotFound, lecture.ErrUnavailable.
func (r *Room) Leave(ctx context.Context, id int, user string) (Place, error) {
	answer, err := r.onLine(ctx, r.scripts.leave, id, user)
	if err != nil {
		return Place{}, err
	}
	if answer.text(0) == "TICKET" {
		r.admitNow(ctx, id)
	}
	return r.read(ctx, id, user)
}

// Place reads where user stands, and counts as a sign of life: for clients that
// poll. lecture.ErrNotFound, lecture.ErrUnavailable.
func (r *Room) Place(ctx context.Context, id int, user string) (Place, error) {
	if _, err := r.run(ctx, r.scripts.touch, id, user); err != nil {
		return Place{}, err
	}
	place, err := r.read(ctx, id, user)
	if err == nil {
		r.list(ctx, id)
	}
	return place, err
}

// Claim turns user's ticket into an enrolment in flight, for one attempt (16
// hex digits): the same attempt gets the same claim again.
// lecture.ErrNotFound; lecture.ErrUnavailable when nothing could be decided,
// the ticket being as it was.
func (r *Room) Claim(ctx context.Context, id int, user, attempt string) (lecture.Claim, error) {
	answer, err := r.onLine(ctx, r.scripts.claim, id, user, attempt, lecture.ClaimLife.Milliseconds())
	if err == nil && answer.text(0) == "STALE" {
		// The deadline passed while nobody could tell whether seats are free.
		r.wake(ctx, id)
		answer, err = r.onLine(ctx, r.scripts.claim, id, user, attempt, lecture.ClaimLife.Milliseconds())
	}
	if err != nil {
		return lecture.Claim{}, err
	}
	c := lecture.Claim{User: user, Attempt: attempt}
	switch answer.text(0) {
	case "OK":
		c.Status, c.Until = lecture.ClaimOK, answer.int64(3)
	case "BUSY":
		c.Status, c.Until = lecture.ClaimBusy, answer.int64(1)
	case "EXPIRED":
		c.Status = lecture.ClaimExpired
	case "CLOSED":
		c.Status = lecture.ClaimClosed
	case "NONE":
		c.Status = lecture.ClaimNone
	default:
		return lecture.Claim{}, fmt.Errorf("claim: %w: seats are stale", lecture.ErrUnavailable)
	}
	return c, nil
}

// Settle ends claims as the database decided; s is the seats of that decision.
// A claim that is not the one presented changes no person.
// lecture.ErrUnavailable: some may not be settled, the reconciler will.
func (r *Room) Settle(ctx context.Context, id int, s lecture.Seats, ends []lecture.Settlement) error {
	for len(ends) > 0 {
		n := min(len(ends), peopleChunk)
		args := make([]any, 0, 2+4*n)
		args = append(args, s.Version, s.Remaining)
		for _, e := range ends[:n] {
			args = append(args, e.User, e.Attempt, e.Until, string(e.Verdict))
		}
		if _, err := r.run(ctx, r.scripts.settle, id, args...); err != nil {
			return err
		}
		ends = ends[n:]
	}
	return nil
}

// Changed tells the line that the lecture's row was written, with the facts of
// that commit, and that the rows of these users were cancelled in it; what that
// frees is granted at once. lecture.ErrUnavailable: the reconciler will do it.
func (r *Room) Changed(ctx context.Context, f lecture.Facts, cancelled ...string) error {
	for _, user := range cancelled {
		if err := r.Unmark(ctx, f.ID, user, f.Version); err != nil {
			return err
		}
	}
	answer, err := r.sync(ctx, f, noVersion, 0)
	if err != nil {
		return err
	}
	if answer == "UNKNOWN" {
		if err := r.begin(ctx, f.ID); err != nil {
			return err
		}
	}
	r.list(ctx, f.ID) // it may have been reopened
	r.admitNow(ctx, f.ID)
	return nil
}

// Unmark forgets that user is enrolled, after a reading of the database at
// this seat_version found no active row. lecture.ErrUnavailable.
func (r *Room) Unmark(ctx context.Context, id int, user string, version int64) error {
	_, err := r.run(ctx, r.scripts.unmark, id, user, version)
	return err
}
