package waitroom

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/lecture"
)

// read is where user stands, by one reading of the line.
func (r *Room) read(ctx context.Context, id int, user string) (Place, error) {
	answer, err := r.onLine(ctx, r.scripts.people, id, user)
	if err != nil {
		return Place{}, err
	}
	rd, st := readingOf(answer.list(1)), standingOf(answer.list(2))
	p := r.paces.look(id)
	place := placeOf(rd, st, rank{ahead: st.rank, exact: true}, &p)
	if st.status == Waiting {
		place.PlaceToken = r.tokenFor(id, user, st, rd)
	}
	return place, nil
}

// lostFor is how long people who have no place are told that the line was
// begun anew: for who had one this is the reason.
const lostFor = time.Hour

// placeOf puts together what one person sees.
func placeOf(rd reading, st standing, rk rank, p *pace) Place {
	line := rd.line()
	place := Place{Line: line, Status: st.status, PollAfterMs: pollAfter(line.State, st.status, rk.ahead)}
	switch st.status {
	case Waiting:
		position := rk.ahead + 1
		place.Position, place.Approximate = &position, !rk.exact
		place.EstimatedWaitSeconds = p.wait(rk.ahead, line.State)
		place.SeatChance = p.chance(rk.ahead, line.Held, line.Remaining)
	case Admitted:
		at := time.UnixMilli(rd.lastMoment(st.deadline)).UTC()
		place.TicketExpiresAt = &at
	case NotQueued:
		if rd.lost > 0 && rd.now.UnixMilli()-rd.lost < lostFor.Milliseconds() {
			lost := LineLost
			place.Reason = &lost
		}
	}
	if st.reason != "" {
		place.Reason = &st.reason
	}
	return place
}

// pollAfter is when a client that polls should ask again, in ms: often near
// the head, rarely where nothing can happen soon.
func pollAfter(state LineState, status Status, ahead int) int {
	const near, far, still = 1000, 15_000, 30_000
	switch {
	case status == Admitted:
		return near
	case status == Enrolled || state == Closed || state == SoldOut:
		return still
	case status != Waiting:
		return far
	case ahead < 20:
		return near
	}
	return min(far, near+ahead*10)
}

// Lines reads the lines of many lectures, in one round trip to each node of
// Redis; a lecture whose line was never begun is judged by its facts.
// lecture.ErrUnavailable.
func (r *Room) Lines(ctx context.Context, facts []lecture.Facts) (map[int]Line, error) {
	if len(facts) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var now *redis.TimeCmd
	looks := make([]lineLook, len(facts))
	_, err := r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		now = p.Time(ctx)
		for i, f := range facts {
			k := keysOf(f.ID)
			looks[i] = lineLook{
				hash:    p.HMGet(ctx, k.lecture, "version", "remaining", "opens_at", "closes_at", "paused", "overbook", "message"),
				waiting: p.ZCard(ctx, k.queue), parked: p.ZCard(ctx, k.parked),
				tickets: p.ZCard(ctx, k.tickets), claims: p.ZCard(ctx, k.claims),
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, unavailable("lines", err)
	}
	lines := make(map[int]Line, len(facts))
	for i, f := range facts {
		lines[f.ID] = looks[i].line(f, now.Val())
	}
	return lines, nil
}

// lineLook is one line read by plain commands.
type lineLook struct {
	hash                             *redis.SliceCmd
	waiting, parked, tickets, claims *redis.IntCmd
}

func (l lineLook) line(f lecture.Facts, now time.Time) Line {
	rd := reading{
		now: now.UTC(), version: f.Version, remaining: f.Remaining, opensAt: millis(f.OpensAt), closesAt: millis(f.ClosesAt),
		paused: f.Settings.Paused, overbook: f.Settings.OverbookPercent,
		waiting: int(l.waiting.Val()), parked: int(l.parked.Val()), tickets: int(l.tickets.Val()), claims: int(l.claims.Val()),
	}
	if f.Settings.Message != nil {
		rd.message = *f.Settings.Message
	}
	h := l.hash.Val()
	version, known := h[0].(string)
	if v, _ := strconv.ParseInt(version, 10, 64); known && v > f.Version {
		// The line has a newer reading of the row than the caller.
		r := reply(h)
		rd.version, rd.remaining, rd.opensAt, rd.closesAt = r.int64(0), r.int(1), r.int64(2), r.int64(3)
		rd.paused, rd.overbook, rd.message = r.int64(4) != 0, r.int(5), r.text(6)
	}
	return rd.line()
}
