package waitroom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/lecture"
)

const reconcileEvery = 2 * time.Second

// runReconciler keeps the line true to the database: seats and settings of all
// active lectures in one lock-free query, and then, lecture by lecture, what
// was left in flight (protocol.md rules 1, 3, 5).
func (r *Room) runReconciler(ctx context.Context) error {
	missing := map[int]bool{}
	for {
		ids, err := r.activeOrCached(ctx)
		if len(ids) > 0 {
			err = r.reconcile(ctx, ids, missing)
		}
		if err != nil {
			r.warn(ctx, "lectures not reconciled", 0, err)
		}
		if !pause(ctx, jitter(reconcileEvery)) {
			return ctx.Err()
		}
	}
}

// look is what the reconciler sees of a line before it asks the database.
type look struct {
	version *redis.StringCmd
	claims  *redis.IntCmd // how many
}

func (r *Room) reconcile(ctx context.Context, ids []int, missing map[int]bool) error {
	looks, err := r.look(ctx, ids)
	if err != nil {
		return err
	}
	facts, err := r.seats.Facts(ctx, ids)
	if err != nil {
		return err
	}
	found := make(map[int]lecture.Facts, len(facts))
	for _, f := range facts {
		found[f.ID] = f
	}
	r.eachLecture(ctx, ids, func(ctx context.Context, id int) error {
		f, ok := found[id]
		if !ok {
			return nil
		}
		seen, err := looks[id].version.Int64()
		if errors.Is(err, redis.Nil) {
			return r.begin(ctx, id)
		}
		if err != nil {
			return unavailable("reconcile", err)
		}
		if _, err := r.sync(ctx, f, seen, 0); err != nil {
			return err
		}
		if looks[id].claims.Val() == 0 {
			return nil
		}
		return r.decide(ctx, id)
	})
	return r.dropMissing(ctx, ids, found, missing)
}

// look reads, in one pipeline, each line's version and whether anything is in
// flight there. A line that could not be read has an error of its own.
func (r *Room) look(ctx context.Context, ids []int) (map[int]look, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	looks := make(map[int]look, len(ids))
	_, err := r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range ids {
			k := keysOf(id)
			looks[id] = look{version: p.HGet(ctx, k.lecture, "version"), claims: p.ZCard(ctx, k.claims)}
		}
		return nil
	})
	for _, l := range looks {
		if l.version.Err() == nil || errors.Is(l.version.Err(), redis.Nil) {
			return looks, nil
		}
	}
	return nil, unavailable("reconcile", err)
}

// decide settles the claims that are overdue, from one locked reading: a row
// means enrolled, be it cancelled since; no row gives the ticket back. Their
// identities are read before the database is asked: whose claim was settled
// meanwhile may have another one by now, still on its way to a row.
func (r *Room) decide(ctx context.Context, id int) error {
	overdue, err := r.call(ctx, r.scripts.overdue, id)
	if err != nil || len(overdue) == 0 {
		return err
	}
	var claims []lecture.Claim
	for i := 0; i < len(overdue); i += 3 {
		claims = append(claims, lecture.Claim{User: overdue.text(i), Attempt: overdue.text(i + 1), Until: overdue.int64(i + 2)})
	}
	facts, used, err := r.seats.Decide(ctx, id, claims)
	if err != nil {
		return fmt.Errorf("overdue claims: %w", err)
	}
	ends := make([]lecture.Settlement, len(claims))
	for i, c := range claims {
		ends[i] = lecture.Settlement{User: c.User, Attempt: c.Attempt, Until: c.Until, Verdict: lecture.Back}
		if slices.Contains(used, c) {
			ends[i].Verdict = lecture.In
		}
	}
	r.log.InfoContext(ctx, "overdue enrolments decided", "lecture", id, "people", len(ends), "used", len(used))
	return r.Settle(ctx, id, facts.Seats(), ends)
}

// dropMissing forgets lectures that the database was found twice not to have,
// and ends their streams.
func (r *Room) dropMissing(ctx context.Context, ids []int, found map[int]lecture.Facts, missing map[int]bool) error {
	for _, id := range ids {
		if _, ok := found[id]; ok {
			delete(missing, id)
			continue
		}
		if !missing[id] {
			missing[id] = true
			continue
		}
		delete(missing, id)
		if _, err := r.run(ctx, r.scripts.drop, id); err != nil {
			return err
		}
		if err := r.retire(ctx, id); err != nil {
			return err
		}
		r.log.WarnContext(ctx, "lecture is gone from the database: its line is dropped", "lecture", id)
	}
	return nil
}
