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

// hurried are the lectures whose tokens would run over before the next tick
// comes: what burst cannot carry over would be lost, and the set rate never be
// reached, or only by more instances. They are looked after in between.
type hurried struct {
	mu       sync.Mutex
	lectures map[int]bool
	running  sync.WaitGroup
}

// start goes on from a step at the lecture, each time before its tokens run over,
// until the ticks are enough again.
func (h *hurried) start(ctx context.Context, r *Room, id int, step admission) {
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
		for idle := 0; idle < idleSteps && step.hurries(r.opts.Tick); {
			if !pause(ctx, max(step.best, shortestStep)) {
				return
			}
			var err error
			if step, err = r.admit(ctx, id); err != nil {
				r.warn(ctx, "lecture not ticked", id, err)
				return
			}
			if idle++; step.granted > 0 {
				idle = 0
			}
		}
	})
}

// wait waits for all of them, whose context has ended.
func (h *hurried) wait() { h.running.Wait() }
