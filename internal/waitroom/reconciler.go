package waitroom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
		if err := r.reconcile(ctx, missing); err != nil {
			r.warn(ctx, "lectures not reconciled", 0, err)
		}
		if !pause(ctx, jitter(reconcileEvery)) {
			return ctx.Err()
		}
	}
}

// inFlight is what the reconciler looks at in Redis before it asks the
// database, lecture by lecture.
type inFlight struct {
	version *redis.StringCmd
	claims  *redis.ZSliceCmd
}

func (r *Room) reconcile(ctx context.Context, missing map[int]bool) error {
	ids, err := r.active(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	looks, now, err := r.look(ctx, ids)
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
		return r.decide(ctx, id, overdue(looks[id].claims.Val(), now), now)
	})
	return r.dropMissing(ctx, ids, found, missing)
}

// look reads, in one pipeline, each line's version and its oldest claims.
func (r *Room) look(ctx context.Context, ids []int) (map[int]inFlight, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	looks := make(map[int]inFlight, len(ids))
	var now *redis.TimeCmd
	_, err := r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		now = p.Time(ctx)
		for _, id := range ids {
			k := keysOf(id)
			looks[id] = inFlight{
				version: p.HGet(ctx, k.lecture, "version"),
				claims:  p.ZRangeWithScores(ctx, k.claims, 0, peopleChunk-1),
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		// One lecture's broken key must not hide the others: each is asked for
		// its own error later. Without the time nothing can be judged.
		if now.Err() != nil {
			return nil, time.Time{}, unavailable("reconcile", err)
		}
	}
	return looks, now.Val(), nil
}

func overdue(claims []redis.Z, now time.Time) []string {
	var users []string
	for _, c := range claims {
		if int64(c.Score) <= now.UnixMilli() {
			users = append(users, c.Member.(string))
		}
	}
	return users
}

// decide settles the claims of users that are overdue at now, from one locked
// reading: a row means enrolled, be it cancelled since; no row gives the ticket
// back.
func (r *Room) decide(ctx context.Context, id int, users []string, now time.Time) error {
	if len(users) == 0 {
		return nil
	}
	claims, err := r.claims(ctx, id, users, now)
	if err != nil || len(claims) == 0 {
		return err
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
	r.log.InfoContext(ctx, "overdue enrolments decided", "lecture", id, "people", len(ends), "enrolled", len(used))
	return r.Settle(ctx, id, facts.Seats(), ends)
}

// claims reads the identities of these people's overdue claims, before the
// database is asked about them. Whose claim was settled since it was found
// overdue may have another one by now, which is still on its way to a row.
func (r *Room) claims(ctx context.Context, id int, users []string, now time.Time) ([]lecture.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	values, err := r.rdb.HMGet(ctx, keysOf(id).holds, users...).Result()
	if err != nil {
		return nil, unavailable("overdue claims", err)
	}
	var claims []lecture.Claim
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			continue
		}
		var seq, deadline, until int64
		var attempt string
		if _, err := fmt.Fscan(strings.NewReader(text), &seq, &deadline, &attempt, &until); err != nil || until == 0 || until > now.UnixMilli() {
			continue
		}
		claims = append(claims, lecture.Claim{User: users[i], Attempt: attempt, Until: until})
	}
	return claims, nil
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
