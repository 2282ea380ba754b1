package waitroom_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/alicebob/miniredis/v2"

	"seatline/internal/lecture"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

func TestSmoke(t *testing.T) {
	mr := miniredis.RunT(t)
	mr.ClockTTL(true)
	opt, _ := redis.ParseURL(testenv.Redis(t))
	for name, rdb := range map[string]redis.UniversalClient{
		"redis": redis.NewClient(opt), "mini": redis.NewClient(&redis.Options{Addr: mr.Addr()}),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			seats := newFakeSeats(standard(1, 2))
			room := waitroom.New(rdb, seats, waitroom.Options{Tick: 50 * time.Millisecond, PlaceKey: []byte("k")})
			done := make(chan error)
			rctx, stop := context.WithCancel(ctx)
			go func() { done <- room.Run(rctx) }()
			for i := range 4 {
				p, err := room.Join(ctx, 1, fmt.Sprint("u", i), "")
				t.Log(p.Status, p.Line.State, p.Position, err)
			}
			w, err := room.Watch(ctx, 1, "u2")
			if err != nil {
				t.Fatal(err)
			}
			p := <-w
			t.Logf("%+v pos %v", p, *p.Position)
			c, err := room.Claim(ctx, 1, "u0", "0123456789abcdef")
			t.Log(c, err)
			f := seats.change(1, func(l *fakeLecture) { l.rows["u0"] = true })
			t.Log(room.Settle(ctx, 1, f.Seats(), []lecture.Settlement{{User: "u0", Attempt: c.Attempt, Until: c.Until, Verdict: lecture.In}}))
			pl, err := room.Leave(ctx, 1, "u1")
			t.Log(pl.Status, err)
			p = <-w
			t.Logf("%+v", p)
			p, err = room.Place(ctx, 1, "u0")
			t.Log(p.Status, err)
			l, err := room.Lines(ctx, []lecture.Facts{f})
			t.Logf("%+v %v", l, err)
			_, err = room.Join(ctx, 77, "x", "")
			t.Log(err)
			stop()
			t.Log(<-done)
			for p := range w {
				t.Log(p)
			}
		})
	}
}
