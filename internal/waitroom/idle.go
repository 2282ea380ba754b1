package waitroom

import (
	"slices"
	"sync"
	"time"
)

// idleLectures knows since when this instance has found a lecture without
// anybody. Only what it has itself watched idle for long may leave the cache.
type idleLectures struct {
	mu    sync.Mutex
	since map[int]time.Time
}

// note reports whether the lecture has been idle for idleFor by now.
func (l *idleLectures) note(id int, idle bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !idle {
		delete(l.since, id)
		return false
	}
	since, ok := l.since[id]
	if !ok {
		l.since[id] = time.Now()
		return false
	}
	if time.Since(since) < idleFor {
		return false
	}
	delete(l.since, id)
	return true
}

// keep forgets all lectures but these.
func (l *idleLectures) keep(ids []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.since {
		if !slices.Contains(ids, id) {
			delete(l.since, id)
		}
	}
}
