package waitroom_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"seatline/internal/lecture"
)

// fakeSeats is a database in memory, for tests of the line alone and for
// faults that a real one cannot be made to show.
type fakeSeats struct {
	mu       sync.Mutex
	lectures map[int]*fakeLecture
	down     error // every call fails with it
}

type fakeLecture struct {
	facts lecture.Facts
	rows  map[string]bool
}

func newFakeSeats(facts ...lecture.Facts) *fakeSeats {
	s := &fakeSeats{lectures: map[int]*fakeLecture{}}
	for _, f := range facts {
		f.Version = max(f.Version, 1)
		f.Remaining = f.Capacity
		s.lectures[f.ID] = &fakeLecture{facts: f, rows: map[string]bool{}}
	}
	return s
}

func standard(id, capacity int) lecture.Facts {
	return lecture.Facts{ID: id, Capacity: capacity, Settings: lecture.Settings{
		AdmitPerSecond: 10000, Burst: 10000, TicketTTLSeconds: 60, OverbookPercent: 100,
	}}
}

func (s *fakeSeats) setDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// change writes the row, as the registrar would.
func (s *fakeSeats) change(id int, f func(*fakeLecture)) lecture.Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lectures[id]
	f(l)
	l.facts.Version++
	l.facts.Remaining = l.facts.Capacity - len(l.rows)
	return l.facts
}

func (s *fakeSeats) Facts(_ context.Context, ids []int) ([]lecture.Facts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	var facts []lecture.Facts
	for _, id := range ids {
		if l := s.lectures[id]; l != nil {
			facts = append(facts, l.facts)
		}
	}
	return facts, nil
}

func (s *fakeSeats) Decide(_ context.Context, id int, users []string) (lecture.Facts, []string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return lecture.Facts{}, nil, s.down
	}
	l := s.lectures[id]
	if l == nil {
		return lecture.Facts{}, nil, lecture.ErrNotFound
	}
	var enrolled []string
	for _, u := range users {
		if l.rows[u] {
			enrolled = append(enrolled, u)
		}
	}
	return l.facts, enrolled, nil
}

func (s *fakeSeats) Begin(_ context.Context, id int) (lecture.Facts, []string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return lecture.Facts{}, nil, s.down
	}
	l := s.lectures[id]
	if l == nil {
		return lecture.Facts{}, nil, lecture.ErrNotFound
	}
	l.facts.Epoch++
	l.facts.Version++
	var users []string
	for u := range l.rows {
		users = append(users, u)
	}
	slices.Sort(users)
	return l.facts, users, nil
}

func (s *fakeSeats) MovedSince(context.Context, int, string, time.Time) (bool, error) {
	return false, nil
}

func (s *fakeSeats) Running(context.Context) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []int
	for id := range s.lectures {
		ids = append(ids, id)
	}
	return ids, nil
}
