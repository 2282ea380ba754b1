package waitroom

import (
	"context"
	"fmt"
	"sync"

	"seatline/internal/lecture"
)

// hub watches one lecture for all who watch it on this instance: one peek a
// tick, however many they are. It lives while anybody watches.
type hub struct {
	room *Room
	id   int
	stop context.CancelFunc

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	byUser   map[string]map[*watcher]struct{}
	stats    map[chan Stats]struct{}
	over     bool // the loop has ended, or is about to: join another hub

	peeked bool  // cursor and epoch hold
	cursor int64 // change number up to which the loop has looked
	epoch  int64
}

// Watch streams user's place: the first one at once, then on change, at most
// one a tick, each whole, the latest winning. The stream is closed after
// Enrolled, after the lecture closed or is gone, and when ctx or Run ends.
// Watching counts as a sign of life; it does not join.
// lecture.ErrNotFound, lecture.ErrUnavailable.
func (r *Room) Watch(ctx context.Context, id int, user string) (<-chan Place, error) {
	if err := r.known(ctx, id); err != nil {
		return nil, err
	}
	w := &watcher{user: user, out: make(chan Place, 1)}
	h, err := r.hubFor(id, func(h *hub) { h.add(w) })
	if err != nil {
		return nil, err
	}
	// Registered first, read second: what changes in between is not missed.
	if err := h.first(ctx, w); err != nil {
		h.remove(w)
		return nil, err
	}
	r.list(ctx, id)
	context.AfterFunc(ctx, func() { h.remove(w) })
	return w.out, nil
}

// WatchStats streams the line's figures, once a tick, until ctx or Run ends.
// lecture.ErrNotFound, lecture.ErrUnavailable.
func (r *Room) WatchStats(ctx context.Context, id int) (<-chan Stats, error) {
	answer, err := r.onLine(ctx, r.scripts.people, id)
	if err != nil {
		return nil, err
	}
	out := make(chan Stats, 1)
	out <- r.statsOf(id, readingOf(answer.list(1)))
	h, err := r.hubFor(id, func(h *hub) { h.stats[out] = struct{}{} })
	if err != nil {
		return nil, err
	}
	r.list(ctx, id)
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, ok := h.stats[out]; ok {
			delete(h.stats, out)
			close(out)
		}
	})
	return out, nil
}

// known makes sure that there is such a lecture, before anything is kept for it.
func (r *Room) known(ctx context.Context, id int) error {
	r.mu.Lock()
	watched := r.hubs[id] != nil
	r.mu.Unlock()
	if watched {
		return nil
	}
	_, err := r.onLine(ctx, r.scripts.people, id)
	return err
}

func (r *Room) statsOf(id int, rd reading) Stats {
	p := r.paces.look(id)
	return Stats{
		Line: rd.line(), AdmitPerSecond: rd.rate,
		AdmittedPerMinute: p.admittedPerMinute(), ClaimRate: p.claimRate,
	}
}

// hubFor registers at the lecture's hub, starting one where there is none.
func (r *Room) hubFor(id int, register func(*hub)) (*hub, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return nil, fmt.Errorf("watch: %w: shutting down", lecture.ErrUnavailable)
	}
	if h := r.hubs[id]; h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.over {
			register(h)
			return h, nil
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &hub{
		room: r, id: id, stop: stop,
		watchers: map[*watcher]struct{}{}, byUser: map[string]map[*watcher]struct{}{}, stats: map[chan Stats]struct{}{},
	}
	register(h)
	r.hubs[id] = h
	r.wg.Go(func() { h.run(ctx) })
	return h, nil
}

// endHubs ends all streams; Watch refuses from here on.
func (r *Room) endHubs() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	for _, h := range r.hubs {
		h.stop()
	}
}

// Lectures is how many lines are ticked here.
func (r *Room) Lectures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.cached)
}

// Watchers is how many streams of places and figures are open here.
func (r *Room) Watchers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, h := range r.hubs {
		h.mu.Lock()
		n += len(h.watchers) + len(h.stats)
		h.mu.Unlock()
	}
	return n
}

func (h *hub) add(w *watcher) {
	h.watchers[w] = struct{}{}
	if h.byUser[w.user] == nil {
		h.byUser[w.user] = map[*watcher]struct{}{}
	}
	h.byUser[w.user][w] = struct{}{}
}

func (h *hub) remove(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(w)
}

func (h *hub) forget(w *watcher) {
	w.end()
	delete(h.watchers, w)
	delete(h.byUser[w.user], w)
	if len(h.byUser[w.user]) == 0 {
		delete(h.byUser, w.user)
	}
}

// first reads and sends a new watcher's place.
func (h *hub) first(ctx context.Context, w *watcher) error {
	r := h.room
	if _, err := r.run(ctx, r.scripts.touch, h.id, w.user); err != nil {
		return err
	}
	answer, err := r.onLine(ctx, r.scripts.people, h.id, w.user)
	if err != nil {
		return err
	}
	rd := readingOf(answer.list(1))
	p := r.paces.look(h.id)
	h.mu.Lock()
	defer h.mu.Unlock()
	w.touched = rd.now
	w.accept(standingOf(answer.list(2)), rd)
	// What the loop has already passed over, it must look at again.
	w.dirty = h.peeked && (rd.chg < h.cursor || rd.epoch != h.epoch)
	h.show(w, rd, rank{ahead: w.st.rank, exact: true}, &p)
	if w.ended {
		h.forget(w)
	}
	return nil
}

// run is the hub's loop.
func (h *hub) run(ctx context.Context) {
	defer h.close()
	for pause(ctx, jitter(h.room.opts.Tick)) {
		switch err := h.tick(ctx); {
		case isNotFound(err):
			return
		case err != nil:
			h.room.warn(ctx, "positions not updated", h.id, err)
		}
		if h.isEmpty() {
			return
		}
	}
}

// isEmpty ends the hub when nobody watches any more.
func (h *hub) isEmpty() bool {
	h.room.mu.Lock()
	defer h.room.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = len(h.watchers) == 0 && len(h.stats) == 0
	return h.over
}

// close ends what is left of the hub.
func (h *hub) close() {
	h.stop()
	r := h.room
	r.mu.Lock()
	defer r.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for w := range h.watchers {
		h.forget(w)
	}
	for out := range h.stats {
		close(out)
	}
	clear(h.stats)
	if r.hubs[h.id] == h {
		delete(r.hubs, h.id)
	}
}
