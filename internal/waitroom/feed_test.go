package waitroom

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/lecture"
	"seatline/internal/testenv"
)

// feedWorld is a line in a real Redis and a hub whose ticks the test makes.
type feedWorld struct {
	room *Room
	hub  *hub
}

func newFeedWorld(t *testing.T) *feedWorld {
	t.Helper()
	o, err := redis.ParseURL(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	o.ContextTimeoutEnabled = true
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	room := New(rdb, nil, Options{Tick: time.Hour})
	_, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	w := &feedWorld{room: room, hub: &hub{
		room: room, id: 1, stop: stop,
		watchers: map[*watcher]struct{}{}, byUser: map[string]map[*watcher]struct{}{}, stats: map[chan Stats]struct{}{},
	}}
	w.sync(t, 1, 0)
	return w
}

// sync gives the line this many free seats.
func (w *feedWorld) sync(t *testing.T, version int64, remaining int) {
	t.Helper()
	if _, err := w.room.sync(t.Context(), facts(version, remaining), noVersion, 1); err != nil {
		t.Fatal(err)
	}
}

func facts(version int64, remaining int) lecture.Facts {
	return lecture.Facts{ID: 1, Version: version, Capacity: remaining, Remaining: remaining, Settings: lecture.Settings{
		AdmitPerSecond: 10000, Burst: 10000, TicketTTLSeconds: 60, OverbookPercent: 100,
	}}
}

func (w *feedWorld) join(t *testing.T, users ...string) {
	t.Helper()
	for _, u := range users {
		if _, err := w.room.Join(t.Context(), 1, u, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *feedWorld) watch(t *testing.T, user string) *watcher {
	t.Helper()
	wt := &watcher{user: user, out: make(chan Place, 1)}
	w.hub.mu.Lock()
	w.hub.add(wt)
	w.hub.mu.Unlock()
	if err := w.hub.first(t.Context(), wt); err != nil {
		t.Fatal(err)
	}
	return wt
}

func (w *feedWorld) tick(t *testing.T) {
	t.Helper()
	if err := w.hub.tick(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// told is what the watcher was told last.
func (w *feedWorld) told(wt *watcher) Status {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return wt.shown.Status
}

// snapshot keeps all keys of the line; the function it returns puts them back,
// as a failover to a replica that was behind does.
func (w *feedWorld) snapshot(t *testing.T) (back func()) {
	t.Helper()
	ctx, rdb := t.Context(), w.room.rdb
	keys, err := rdb.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, key := range keys {
		kept[key] = rdb.Dump(ctx, key).Val()
	}
	return func() {
		if err := rdb.(*redis.Client).FlushDB(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		for key, value := range kept {
			if err := rdb.Restore(ctx, key, 0, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func names(what string, n int) []string {
	users := make([]string, n)
	for i := range users {
		users[i] = fmt.Sprint(what, i)
	}
	return users
}

// TestFeedOverrun: more changes than the feed keeps happen between two ticks.
// Nobody's change is lost.
func TestFeedOverrun(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.join(t, "first", "second")
	first, second, later := w.watch(t, "first"), w.watch(t, "second"), w.watch(t, "later")
	w.tick(t)
	w.sync(t, 2, 1)
	w.room.admitNow(t.Context(), 1)
	w.sync(t, 3, 0)
	w.join(t, "later")
	// Others than these two fill the feed.
	fill := redis.NewScript(preludeLua + `
		local K = { lecture = KEYS[1], changed = KEYS[2] }
		for i = 1, tonumber(ARGV[1]) do note(K, 'other' .. i) end
		return 1`)
	k := keysOf(1)
	if err := fill.Run(t.Context(), w.room.rdb, []string{k.lecture, k.changed}, 10_100).Err(); err != nil {
		t.Fatal(err)
	}
	if n := w.room.rdb.ZCard(t.Context(), k.changed).Val(); n > 10_000 {
		t.Errorf("the feed keeps %d entries", n)
	}
	if err := w.room.rdb.ZScore(t.Context(), k.changed, "first").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("the feed still knows of the first: the test tests nothing (%v)", err)
	}
	for range 5 {
		w.tick(t)
	}
	if got := w.told(first); got != Admitted {
		t.Errorf("first was told %s, want ADMITTED", got)
	}
	if got := w.told(later); got != Waiting {
		t.Errorf("later was told %s, want WAITING", got)
	}
	if got := w.told(second); got != Waiting {
		t.Errorf("second was told %s, want WAITING", got)
	}
}

// TestFeedInChunks: more changes than one peek returns, and the one that
// matters is the last of them.
func TestFeedInChunks(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.join(t, "first")
	first := w.watch(t, "first")
	w.tick(t)
	w.join(t, names("early", 700)...)
	w.sync(t, 2, 1)
	w.room.admitNow(t.Context(), 1)
	w.join(t, names("late", 700)...)
	w.tick(t)
	if got := w.told(first); got != Admitted {
		t.Errorf("first was told %s, want ADMITTED", got)
	}
}

// TestLineGoneBackInTime: a replica that was behind takes over, and lives on.
// Whether or not it has caught up with the hub's cursor by the next tick, who
// was admitted in the meantime is told.
func TestLineGoneBackInTime(t *testing.T) {
	for name, newcomers := range map[string]int{"behind the cursor": 0, "beyond the cursor": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFeedWorld(t)
			w.join(t, "first", "second")
			first, second, later := w.watch(t, "first"), w.watch(t, "second"), w.watch(t, "later")
			w.tick(t)
			back := w.snapshot(t)
			w.join(t, names("lost", 20)...)
			w.tick(t)
			back()
			w.sync(t, 2, 1)
			w.room.admitNow(t.Context(), 1)
			w.join(t, "later")
			w.join(t, names("new", newcomers)...)
			for range 3 {
				w.tick(t)
			}
			if got := w.told(first); got != Admitted {
				t.Errorf("first was told %s, want ADMITTED", got)
			}
			if got := w.told(second); got != Waiting {
				t.Errorf("second was told %s, want WAITING", got)
			}
			if got := w.told(later); newcomers == 0 && got != Waiting {
				t.Errorf("later was told %s, want WAITING", got)
			}
		})
	}
}

// TestLineBegunAnew: the line is lost, and the new one has had more changes
// than the old one by the next tick.
func TestLineBegunAnew(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.join(t, "first")
	first := w.watch(t, "first")
	w.tick(t)
	if err := w.room.rdb.(*redis.Client).FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.room.sync(t.Context(), facts(2, 0), noVersion, 2); err != nil {
		t.Fatal(err)
	}
	w.join(t, names("new", 20)...)
	for range 3 {
		w.tick(t)
	}
	if got := w.told(first); got != NotQueued {
		t.Errorf("first was told %s, want NOT_QUEUED", got)
	}
}

// TestLineOfAnEarlierEpoch: a line that was begun anew gives way to the one
// before it, which was not lost after all.
func TestLineOfAnEarlierEpoch(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.join(t, "first", "second")
	back := w.snapshot(t)
	k := keysOf(1)
	if err := w.room.rdb.HSet(t.Context(), k.lecture, "epoch", 2, "chg", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.room.rdb.Del(t.Context(), k.queue, k.changed, k.seen).Err(); err != nil {
		t.Fatal(err)
	}
	first := w.watch(t, "first")
	w.tick(t)
	if got := w.told(first); got != NotQueued {
		t.Fatalf("in the empty line first was told %s", got)
	}
	back()
	for range 3 {
		w.tick(t)
	}
	if got := w.told(first); got != Waiting {
		t.Errorf("first was told %s, want WAITING", got)
	}
}

// TestFeedDuringTheFirstReading: the hub looks at the feed between the first
// reading of a newcomer and its use. What the hub has passed over is read again.
func TestFeedDuringTheFirstReading(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.join(t, "first", "other")
	w.watch(t, "other")
	w.tick(t)
	first := &watcher{user: "first", out: make(chan Place, 1)}
	w.hub.mu.Lock()
	w.hub.add(first)
	w.hub.mu.Unlock()
	// The first reading is answered only after a whole tick.
	w.room.rdb.AddHook(&delayedReply{of: w.room.scripts.people.lua.Hash(), then: func() {
		w.sync(t, 2, 1)
		w.room.admitNow(t.Context(), 1)
		w.tick(t)
	}})
	if err := w.hub.first(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.tick(t)
	if got := w.told(first); got != Admitted {
		t.Errorf("first was told %s, want ADMITTED", got)
	}
}

// delayedReply does something else between the answer to one call of a script
// and the caller's getting it.
type delayedReply struct {
	of   string
	then func()
	done bool
}

func (d *delayedReply) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *delayedReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *delayedReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); !d.done && len(args) > 1 && args[1] == d.of {
			d.done = true
			d.then()
		}
		return err
	}
}
