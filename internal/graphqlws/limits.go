package graphqlws

import "sync"

// census counts sockets against the limits on their number.
type census struct {
	max, maxPerPerson, maxPerAddress int

	mu        sync.Mutex
	closed    bool
	empty     chan struct{} // closed when the census is closed and counts nobody
	sockets   int
	byPerson  map[string]int
	byAddress map[string]int
	refused   uint64
}

func newCensus(o Options) *census {
	return &census{
		max: o.MaxSockets, maxPerPerson: o.MaxSocketsPerPerson, maxPerAddress: o.MaxSocketsPerAddress,
		empty:    make(chan struct{}),
		byPerson: map[string]int{}, byAddress: map[string]int{},
	}
}

// enter counts one more socket from address, or returns why not. What enter
// counted, leave takes back.
func (s *census) enter(address string) *Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		s.refused++
		return stopping
	case s.max >= 0 && s.sockets >= s.max:
		s.refused++
		return tooManyInAll
	case !claim(s.byAddress, address, s.maxPerAddress):
		s.refused++
		return tooManyHere
	}
	s.sockets++
	return nil
}

// identify counts a socket that has entered towards person, too, and tells
// whether that person may have one more.
func (s *census) identify(person string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !claim(s.byPerson, person, s.maxPerPerson) {
		s.refused++
		return false
	}
	return true
}

func (s *census) leave(address, person string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets--
	release(s.byAddress, address)
	release(s.byPerson, person)
	s.checkEmpty()
}

// close lets nobody enter any more.
func (s *census) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.checkEmpty()
}

func (s *census) checkEmpty() {
	if !s.closed || s.sockets > 0 {
		return
	}
	select {
	case <-s.empty:
	default:
		close(s.empty)
	}
}

func claim(counts map[string]int, key string, limit int) bool {
	if key == "" {
		return true
	}
	if limit >= 0 && counts[key] >= limit {
		return false
	}
	counts[key]++
	return true
}

func release(counts map[string]int, key string) {
	if key == "" {
		return
	}
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}
