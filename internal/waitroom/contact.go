package waitroom

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/lecture"
)

const (
	contactTimeout = 8 * time.Second // a first contact or refresh, shared by all who wait for it
	wakeWithin     = time.Second     // how long who joins a quiet lecture waits for it
	unknownFor     = 2 * time.Second // an id without a lecture is remembered this long
	listAgain      = 5 * time.Second
	markChunk      = 500
	peopleChunk    = 200
	noVersion      = -1 // sync without having looked at the line's version before
)

// onLine calls a script, after making the line's first contact with the
// lecture where it does not know it yet (protocol.md rule 8).
func (r *Room) onLine(ctx context.Context, s script, id int, args ...any) (reply, error) {
	answer, err := r.call(ctx, s, id, args...)
	if err != nil || answer.text(0) != "UNKNOWN" {
		return answer, err
	}
	if err := r.begin(ctx, id); err != nil {
		return nil, err
	}
	answer, err = r.call(ctx, s, id, args...)
	if err == nil && answer.text(0) == "UNKNOWN" {
		return nil, fmt.Errorf("%s: %w: the line was lost again", s.name, lecture.ErrUnavailable)
	}
	return answer, err
}

// begin starts the lecture's line from the database: once, however many ask.
func (r *Room) begin(ctx context.Context, id int) error {
	if r.unknown.has(id) {
		return lecture.ErrNotFound
	}
	return r.shared(ctx, "begin", id, func(ctx context.Context) error {
		facts, enrolled, err := r.seats.Begin(ctx, id)
		if err != nil {
			r.unknown.remember(id, err)
			return fmt.Errorf("first contact: %w", err)
		}
		// The marks come before the hash: a line that is known is complete.
		for users := range slices.Chunk(enrolled, markChunk) {
			marks := make([]redis.Z, len(users))
			for i, user := range users {
				marks[i] = redis.Z{Score: float64(facts.Version), Member: user}
			}
			if err := r.rdb.ZAddGT(ctx, keysOf(id).enrolled, marks...).Err(); err != nil {
				return unavailable("marks", err)
			}
		}
		_, err = r.sync(ctx, facts, noVersion, facts.Epoch)
		return err
	})
}

// refresh brings one lecture's seats and settings up to date: once, however
// many ask.
func (r *Room) refresh(ctx context.Context, id int) error {
	return r.shared(ctx, "refresh", id, func(ctx context.Context) (err error) {
		defer func() { // once, however many wait for it
			if err != nil {
				r.warn(ctx, "lecture not refreshed", id, err)
			}
		}()
		seen, err := r.rdb.HGet(ctx, keysOf(id).lecture, "version").Int64()
		if err != nil {
			return unavailable("refresh", err)
		}
		facts, err := r.seats.Facts(ctx, []int{id})
		if err != nil {
			return fmt.Errorf("refresh: %w", err)
		}
		if len(facts) == 0 {
			return fmt.Errorf("refresh: %w", lecture.ErrNotFound)
		}
		_, err = r.sync(ctx, facts[0], seen, 0)
		return err
	})
}

// wake refreshes a quiet lecture and lets its head in. That it could not, or
// not soon, is no failure of who asked: the loops go on trying.
func (r *Room) wake(ctx context.Context, id int) {
	soon, cancel := context.WithTimeout(ctx, wakeWithin)
	defer cancel()
	if r.refresh(soon, id) == nil {
		r.admitNow(ctx, id)
	}
}

// shared runs do for the first who asks, and gives all who ask meanwhile its
// outcome. One caller's end does not end it for the others.
func (r *Room) shared(ctx context.Context, what string, id int, do func(context.Context) error) error {
	done := r.contacts.DoChan(what+strconv.Itoa(id), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), contactTimeout)
		defer cancel()
		return nil, do(ctx)
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sync presents a reading of the lecture's row to the line. seen is the
// version the line had before the database was asked, or noVersion; epoch ≠ 0
// begins a line that is not there. It returns OK, OLD or UNKNOWN.
func (r *Room) sync(ctx context.Context, f lecture.Facts, seen, epoch int64) (string, error) {
	paused, message := 0, ""
	if f.Settings.Paused {
		paused = 1
	}
	if f.Settings.Message != nil {
		message = *f.Settings.Message
	}
	answer, err := r.call(ctx, r.scripts.sync, f.ID, seen, f.Version, epoch,
		"remaining", f.Remaining, "opens_at", millis(f.OpensAt), "closes_at", millis(f.ClosesAt),
		"paused", paused, "rate", f.Settings.AdmitPerSecond, "burst", f.Settings.Burst,
		"ttl_ms", f.Settings.TicketTTLSeconds*1000, "overbook", f.Settings.OverbookPercent, "message", message)
	if err != nil {
		return "", err
	}
	return answer.text(0), nil
}

// millis is t as the line writes it: ms since 1970, 0 = none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// unknownLectures remembers for a moment that an id has no lecture, so that
// asking for it again and again costs the database nothing.
type unknownLectures struct {
	mu    sync.Mutex
	until map[int]time.Time
}

const maxUnknown = 10_000

func (u *unknownLectures) has(id int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Now().Before(u.until[id])
}

func (u *unknownLectures) remember(id int, err error) {
	if !isNotFound(err) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil || len(u.until) >= maxUnknown {
		u.until = map[int]time.Time{}
	}
	u.until[id] = time.Now().Add(unknownFor)
}

// list puts the lecture among those that are ticked. What this process has put
// there lately it does not put again, so that a join costs one call and not
// two; what another process takes out meanwhile the rescan puts back.
func (r *Room) list(ctx context.Context, id int) {
	if !r.listed.due(id, listAgain) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := r.rdb.SAdd(ctx, activeKey, id).Err(); err != nil {
		// Nor is it tried at once again, or whoever comes to a line on a node
		// that is well would wait for the one that holds the cache.
		r.log.WarnContext(ctx, "lecture not listed as active", "lecture", id, "error", err)
	}
}
