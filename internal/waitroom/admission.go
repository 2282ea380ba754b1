package waitroom

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"seatline/internal/lecture"
)

const (
	lecturesAtOnce = 8 // one instance works on this many lectures at a time
	admitSteps     = 25
	idleFor        = 10 * time.Minute // a lecture without anybody leaves the cache after this
	rescanEvery    = 10 * time.Second
)

// runAdmission admits at every active lecture, every tick. Any number of
// instances may do so: the script holds the rate.
func (r *Room) runAdmission(ctx context.Context) error {
	idle := idleLectures{since: map[int]time.Time{}}
	hurry := hurried{lectures: map[int]bool{}}
	defer hurry.wait()
	for {
		ids, err := r.activeOrCached(ctx)
		if err != nil {
			r.warn(ctx, "active lectures not read", 0, err)
		}
		r.eachLecture(ctx, ids, func(ctx context.Context, id int) error {
			step, err := r.admit(ctx, id)
			if err != nil {
				return err
			}
			if step.hurries(r.opts.Tick) {
				hurry.start(ctx, r, id, step)
			}
			if idle.note(id, step.idle()) {
				return r.retire(ctx, id)
			}
			return nil
		})
		if err == nil {
			r.paces.keep(ids)
			idle.keep(ids)
		}
		if !pause(ctx, jitter(r.opts.Tick)) {
			return ctx.Err()
		}
	}
}

// admission is what one call of admit.lua did.
type admission struct {
	granted, waiting, held int
	closed                 bool
	full, best             time.Duration // until tokens run over, and until the next step had best be; 0 = not for want of tokens
}

// idle reports whether nothing will happen here by itself: nobody is in line,
// or the line has outlived its lecture.
func (a admission) idle() bool { return a.held == 0 && (a.waiting == 0 || a.closed) }

// hurries reports whether the next tick, late as it may be, comes too late for
// the tokens.
func (a admission) hurries(tick time.Duration) bool { return a.full > 0 && a.full < tick*11/10 }

// admit runs steps of admission until nothing is left to do now.
func (r *Room) admit(ctx context.Context, id int) (admission, error) {
	gap := max(10*time.Second, 3*r.opts.Tick)
	var sum admission
	for range admitSteps {
		a, err := r.onLine(ctx, r.scripts.admit, id,
			gap.Milliseconds(), r.opts.PresenceGrace.Milliseconds(), r.opts.ParkedFor.Milliseconds())
		if err != nil {
			return sum, err
		}
		sum.granted += a.int(1)
		sum.waiting, sum.held, sum.closed = a.int(5), a.int(6), a.int(14) == 1
		sum.full, sum.best = time.Duration(a.int64(15))*time.Millisecond, time.Duration(a.int64(16))*time.Millisecond
		r.paces.feed(id, sample{
			at: a.int64(12), granted: a.int64(8), departed: a.int64(9), used: a.int64(10), lapsed: a.int64(11),
			admitting: a.int64(13) == 1,
		})
		if a.int64(7) == 0 {
			break
		}
	}
	return sum, nil
}

// admitNow admits out of turn, since something was freed. The next tick makes
// up for a failure.
func (r *Room) admitNow(ctx context.Context, id int) {
	if _, err := r.admit(ctx, id); err != nil {
		r.warn(ctx, "admission out of turn failed", id, err)
	}
}

// activeOrCached is the active lectures, or, with the error, those that were so
// when the cache was last read and those that are watched here: the cache is in
// one slot of a cluster, and lines in the others go on without it.
func (r *Room) activeOrCached(ctx context.Context) ([]int, error) {
	ids, err := r.active(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.cached = ids
		return ids, nil
	}
	ids = slices.AppendSeq(slices.Clone(r.cached), maps.Keys(r.hubs))
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// active is the lectures to tick. What is not an id is dropped, never fatal, nor
// is a cache that is none.
func (r *Room) active(ctx context.Context) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	members, err := r.rdb.SMembers(ctx, activeKey).Result()
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		r.log.WarnContext(ctx, "the active lectures are no set, made anew", "error", r.renew(ctx))
	}
	if err != nil {
		return nil, unavailable("active lectures", err)
	}
	ids := make([]int, 0, len(members))
	for _, member := range members {
		id, ok := lecture.ParseID(member)
		if !ok {
			r.log.WarnContext(ctx, "not a lecture, dropped from the active ones", "member", strconv.Quote(member))
			r.rdb.SRem(ctx, activeKey, member)
			continue
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// renew puts the cache of active lectures, as it was when it was last read, in the
// place of what is none.
func (r *Room) renew(ctx context.Context) error {
	r.mu.Lock()
	ids := make([]any, len(r.cached))
	for i, id := range r.cached {
		ids[i] = id
	}
	r.mu.Unlock()
	err := r.rdb.Del(ctx, activeKey).Err()
	if err == nil && len(ids) > 0 {
		err = r.rdb.SAdd(ctx, activeKey, ids...).Err()
	}
	return err
}

// retire takes a lecture out of the cache.
func (r *Room) retire(ctx context.Context, id int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r.listed.forget(id)
	if err := r.rdb.SRem(ctx, activeKey, id).Err(); err != nil {
		return unavailable("retire", err)
	}
	return nil
}

// eachLecture runs do for every lecture, some at a time. One lecture's failure
// is logged and never stops the others.
func (r *Room) eachLecture(ctx context.Context, ids []int, do func(context.Context, int) error) {
	var g errgroup.Group
	g.SetLimit(lecturesAtOnce)
	for _, id := range ids {
		g.Go(func() error {
			err := do(ctx, id)
			if isNotFound(err) {
				err = r.retire(ctx, id)
			}
			if err != nil {
				r.warn(ctx, "lecture not ticked", id, err)
			}
			return nil
		})
	}
	_ = g.Wait()
}

// runRescan lists again what the cache of active lectures should hold: those
// of the database that have anybody in line, or a seat held (rule 7).
func (r *Room) runRescan(ctx context.Context) error {
	for {
		if err := r.rescan(ctx); err != nil {
			r.warn(ctx, "lectures not rescanned", 0, err)
		}
		if !pause(ctx, jitter(rescanEvery)) {
			return ctx.Err()
		}
	}
}

func (r *Room) rescan(ctx context.Context) error {
	ids, err := r.seats.Running(ctx)
	if err != nil {
		return err
	}
	const chunk = 500
	for len(ids) > 0 {
		n := min(chunk, len(ids))
		if err := r.relist(ctx, ids[:n]); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

func (r *Room) relist(ctx context.Context, ids []int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sizes := make([][3]*redis.IntCmd, len(ids))
	_, err := r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			k := keysOf(id)
			sizes[i] = [3]*redis.IntCmd{p.ZCard(ctx, k.queue), p.ZCard(ctx, k.tickets), p.ZCard(ctx, k.claims)}
		}
		return nil
	})
	if err != nil {
		return unavailable("rescan", err)
	}
	var busy []any
	for i, id := range ids {
		if sizes[i][0].Val()+sizes[i][1].Val()+sizes[i][2].Val() > 0 {
			busy = append(busy, id)
		}
	}
	if len(busy) == 0 {
		return nil
	}
	if err := r.rdb.SAdd(ctx, activeKey, busy...).Err(); err != nil {
		return unavailable("rescan", err)
	}
	return nil
}

// warning is one thing that goes wrong at one lecture; 0 = at all of them.
type warning struct {
	what string
	id   int
}

// warnAgain spaces out warnings: a store that is away fails every tick.
const warnAgain = 10 * time.Second

// warn logs what a loop survives; at the loop's own end there is nothing to say.
func (r *Room) warn(ctx context.Context, what string, id int, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || !r.warned.due(warning{what, id}, warnAgain) {
		return
	}
	r.log.WarnContext(ctx, what, "lecture", id, "error", err)
}

// jitter is d ± 10 %, so that instances do not march in step.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}

// pause waits for d; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
