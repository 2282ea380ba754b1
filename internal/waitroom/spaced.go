package waitroom

import (
	"sync"
	"time"
)

// spaced spaces out what would otherwise be done again and again for a key.
type spaced[K comparable] struct {
	mu sync.Mutex
	at map[K]time.Time
}

// maxSpaced bounds what is remembered; beyond it all is due again.
const maxSpaced = 10_000

// due reports whether key was not due within the last while, and makes it so.
func (s *spaced[K]) due(key K, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at[key]) < every {
		return false
	}
	if s.at == nil || len(s.at) >= maxSpaced {
		s.at = map[K]time.Time{}
	}
	s.at[key] = time.Now()
	return true
}

func (s *spaced[K]) forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, key)
}
