package waitroom_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/lecture"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

func TestRate(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		ctx := t.Context()
		take := func(r *waitroom.Rate, who string, n int) time.Duration {
			t.Helper()
			wait, err := r.Take(ctx, who, n)
			if err != nil {
				t.Fatal(err)
			}
			return wait
		}
		// One token in 1000 s: what is taken here stays taken.
		slow := waitroom.NewRate(s.rdb, "slow", 1, 1000)
		for range 3 {
			if wait := take(slow, "kim", 333); wait != 0 {
				t.Errorf("within the burst: wait %v", wait)
			}
		}
		if wait := take(slow, "kim", 100); wait < 60*time.Second || wait > 99*time.Second {
			t.Errorf("99 tokens are missing, at one a second: wait %v", wait)
		}
		if wait := take(slow, "kim", 1); wait != 0 {
			t.Errorf("a refusal took something: wait %v", wait)
		}
		if wait := take(slow, "kim", 5000); wait < 900*time.Second || wait > 1000*time.Second {
			t.Errorf("more than can ever be: wait %v", wait)
		}
		if slow.Burst() != 1000 {
			t.Errorf("burst %d", slow.Burst())
		}
		// Nobody else has taken anything, however alike the names are.
		for _, who := range []string{"Kim", "kim ", "{kim}", "kim}", "%", "%25", "서울"} {
			if wait := take(slow, who, 1000); wait != 0 {
				t.Errorf("%q: wait %v", who, wait)
			}
		}
		if wait := take(waitroom.NewRate(s.rdb, "other", 1, 1000), "kim", 1000); wait != 0 {
			t.Errorf("another kind: wait %v", wait)
		}
		// Less allowed than before leaves no debt of hours.
		if wait := take(waitroom.NewRate(s.rdb, "slow", 10, 20), "Kim", 1); wait < 1 || wait > 100*time.Millisecond {
			t.Errorf("after the burst was lowered: wait %v", wait)
		}
		testenv.Eventually(t, 10*time.Second, func() bool { return take(waitroom.NewRate(s.rdb, "slow", 10, 20), "Kim", 1) == 0 }, "a token")
		// What was taken comes back, after the wait and not before.
		quick := waitroom.NewRate(s.rdb, "quick", 10, 10)
		if wait := take(quick, "lee", 10); wait != 0 {
			t.Fatalf("wait %v", wait)
		}
		wait := take(quick, "lee", 1)
		if wait <= 0 || wait > 100*time.Millisecond {
			t.Fatalf("wait %v", wait)
		}
		timer := time.NewTimer(wait + 5*time.Millisecond)
		defer timer.Stop()
		<-timer.C
		if wait := take(quick, "lee", 1); wait != 0 {
			t.Errorf("after waiting as told: wait %v more", wait)
		}
		if wait := take(waitroom.NewRate(s.rdb, "none", 0, 0), "kim", 1_000_000); wait != 0 {
			t.Errorf("without a limit: wait %v", wait)
		}
		for _, kind := range []string{"slow", "quick"} {
			if ttl, err := s.rdb.PTTL(ctx, "rate:{"+kind+":"+map[string]string{"slow": "kim", "quick": "lee"}[kind]+"}").Result(); err != nil || ttl <= 0 || ttl > 1000*time.Second {
				t.Errorf("%s: a bucket's key lives for %v, %v", kind, ttl, err)
			}
		}
	})
}

// TestRateIsOneForAllInstances: however many ask at once, wherever, together
// they get what one would.
func TestRateIsOneForAllInstances(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		const instances, asks, burst = 3, 100, 50
		var taken atomic.Int64
		var all sync.WaitGroup
		for i := range instances {
			rate := waitroom.NewRate(s.rdb, "shared", 1, burst)
			for range 4 {
				all.Go(func() {
					for range asks / 4 {
						if wait, err := rate.Take(t.Context(), "kim", 1); err != nil {
							t.Errorf("instance %d: %v", i, err)
						} else if wait == 0 {
							taken.Add(1)
						}
					}
				})
			}
		}
		begun := time.Now()
		all.Wait()
		most := int64(burst + 2 + time.Since(begun).Seconds())
		if n := taken.Load(); n < burst || n > most {
			t.Errorf("%d taken, want %d to %d", n, burst, most)
		}
	})
}

func TestRateWithoutRedis(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, ContextTimeoutEnabled: true})
	defer rdb.Close()
	_, err := waitroom.NewRate(rdb, "person", 1, 1).Take(t.Context(), "kim", 1)
	if !errors.Is(err, lecture.ErrUnavailable) {
		t.Error(fmt.Errorf("want unavailable, got %w", err))
	}
}
