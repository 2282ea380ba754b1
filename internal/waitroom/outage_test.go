package waitroom

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestManyTicketsAfterAnOutage: the database was away while many tickets ran
// out and nobody waited. All are good again by one tick, for 30 s, and never
// past the closing.
func TestManyTicketsAfterAnOutage(t *testing.T) {
	for name, closing := range map[string]time.Duration{"open": 0, "closing soon": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFeedWorld(t)
			const tickets = 700
			w.sync(t, 2, tickets)
			w.join(t, names("holder", tickets)...)
			k := keysOf(1)
			runOut := redis.NewScript(preludeLua + `
				local K = { lecture = KEYS[1], tickets = KEYS[2], holds = KEYS[3], mirrors = KEYS[4] }
				local now = clock()
				redis.call('HSET', K.lecture, 'synced', digits(now - 20000))
				for _, user in ipairs(redis.call('ZRANGE', K.tickets, 0, -1)) do
					write_ticket(K, user, read_hold(K, user).seq, digits(now - 1000), now)
				end
				return redis.call('ZCARD', K.tickets)`)
			if n, err := runOut.Run(t.Context(), w.room.rdb, []string{k.lecture, k.tickets, k.holds, k.mirrors}).Int(); err != nil || n != tickets {
				t.Fatalf("%d tickets, %v", n, err)
			}
			if p, err := w.room.Place(t.Context(), 1, "holder0"); err != nil || p.Status != Admitted {
				t.Fatalf("while the seats are stale: %s, %v", p.Status, err)
			}
			now := w.room.rdb.Time(t.Context()).Val()
			want, f := now.Add(29*time.Second), facts(3, tickets)
			if closing > 0 {
				f.ClosesAt = now.Add(closing)
				want = f.ClosesAt.Truncate(time.Millisecond)
			}
			if _, err := w.room.sync(t.Context(), f, noVersion, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := w.room.admit(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			deadlines, err := w.room.rdb.ZRangeWithScores(t.Context(), k.tickets, 0, -1).Result()
			if err != nil || len(deadlines) != tickets {
				t.Fatalf("%d tickets after the outage, %v; want %d", len(deadlines), err, tickets)
			}
			if at := time.UnixMilli(int64(deadlines[0].Score)); at.Before(want) {
				t.Errorf("a ticket lasts until %v, want at least %v", at, want)
			}
			if at := time.UnixMilli(int64(deadlines[tickets-1].Score)); closing > 0 && at.After(f.ClosesAt) {
				t.Errorf("a ticket lasts until %v, past the closing at %v", at, f.ClosesAt)
			}
		})
	}
}
