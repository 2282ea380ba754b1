package waitroom

import (
	"context"
	"sync"
	"time"
)

// shortestStep is how soon one instance looks after a line again, however
// small the burst.
const shortestStep = 10 * time.Millisecond

// idleSteps in a row admit nobody before the ticks are left to it: another
// instance may have been there first.
const idleSteps = 5

// hurried are the lectures whose tokens are full before the next tick comes:
// a rate that burst cannot carry over a whole tick. Without looking in between
// they would admit burst a tick, and the more the more instances there are.
type hurried struct {
	mu       sync.Mutex
	lectures map[int]bool
	running  sync.WaitGroup
}

// start admits at the lecture each time its tokens are nearly full, until nobody
// is admitted any more; then the ticks are enough again.
func (h *hurried) start(ctx context.Context, r *Room, id int, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lectures[id] {
		return
	}
	h.lectures[id] = true
	h.running.Go(func() {
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.lectures, id)
		}()
		for idle := 0; idle < idleSteps; {
			// Half of it, since a late look loses what was earned meanwhile.
			if !pause(ctx, max(every/2, shortestStep)) {
				return
			}
			step, err := r.admit(ctx, id)
			if err != nil {
				r.warn(ctx, "lecture not ticked", id, err)
				return
			}
			if every = step.full; every >= r.opts.Tick {
				return // other settings: the ticks are enough
			}
			if idle++; step.granted > 0 {
				idle = 0
			}
		}
	})
}

// wait waits for all of them, whose context has ended.
func (h *hurried) wait() { h.running.Wait() }
