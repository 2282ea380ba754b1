package waitroom_test

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

// BenchmarkTick measures what one lecture costs Redis a tick, with 10, 1,000
// and 5,000 subscribers on one instance and always 5,000 people in line: the
// round trips, and Redis's own time, as ratios to 10 subscribers.
func BenchmarkTick(b *testing.B) {
	s := stores{rdb: redisAt(b, testenv.StartRedis(b).URL)}.withPostgres(b)
	in := s.start(b, waitroom.Options{})
	const waiting = 5000
	id := in.newLecture(b, 0, nil)
	users := people(waiting)
	inParts(users, func(part []string) { in.join(b, id, part...) })
	in.stop()

	var first tickCost
	for _, subscribers := range []int{10, 1000, 5000} {
		b.Run(fmt.Sprint(subscribers), func(b *testing.B) {
			var cost tickCost
			for range b.N {
				cost = s.tickCost(b, id, users[:subscribers])
			}
			if first == (tickCost{}) {
				first = cost
			}
			b.ReportMetric(cost.roundTrips, "round-trips/tick")
			b.ReportMetric(cost.redis, "redis-us/tick")
			b.ReportMetric(cost.roundTrips/first.roundTrips, "round-trips/10-subscribers")
			b.ReportMetric(cost.redis/first.redis, "redis-time/10-subscribers")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// tickCost is what one lecture costs Redis a tick.
type tickCost struct{ roundTrips, redis float64 }

func (s stores) tickCost(b *testing.B, id int, users []string) tickCost {
	b.Helper()
	const tick, ticks = 100 * time.Millisecond, 50
	var asked counter
	rdb := redis.NewClient(s.rdb.(*redis.Client).Options())
	defer rdb.Close()
	ctx, leave := context.WithCancel(b.Context())
	defer leave()
	room := waitroom.New(rdb, registrar.Open(s.client, registrar.Options{}), waitroom.Options{Tick: tick})
	inParts(users, func(part []string) {
		for _, user := range part {
			if _, err := room.Watch(ctx, id, user); err != nil {
				b.Error(err)
			}
		}
	})
	rdb.AddHook(&asked)
	<-time.After(10 * tick) // what newcomers cost is over
	asked.n.Store(0)
	before, begun := s.scriptTime(b), time.Now()
	<-time.After(ticks * tick)
	passed := float64(time.Since(begun)) / float64(tick)
	cost := tickCost{roundTrips: float64(asked.n.Load()) / passed, redis: (s.scriptTime(b) - before) / passed}
	leave()
	testenv.Eventually(b, 10*time.Second, func() bool { return room.Watchers() == 0 }, "watchers stay")
	return cost
}

// scriptTime is the µs that Redis has spent on scripts so far.
func (s stores) scriptTime(b *testing.B) float64 {
	b.Helper()
	info, err := s.rdb.Info(b.Context(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	total := 0.0
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		name, fields, _ := strings.Cut(lines.Text(), ":")
		if name != "cmdstat_evalsha" && name != "cmdstat_eval" {
			continue
		}
		_, usec, _ := strings.Cut(fields, "usec=")
		usec, _, _ = strings.Cut(usec, ",")
		n, err := strconv.ParseFloat(usec, 64)
		if err != nil {
			b.Fatal(err)
		}
		total += n
	}
	return total
}
