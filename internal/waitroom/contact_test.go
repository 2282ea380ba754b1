package waitroom_test

import (
	"context"
	"sync"
	"testing"

	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/waitroom"
)

// slowBegin holds the first contact up between the database and the line.
type slowBegin struct {
	*registrar.Seats
	begun, goOn chan struct{}
}

func (s *slowBegin) Begin(ctx context.Context, id int) (lecture.Facts, []string, error) {
	facts, users, err := s.Seats.Begin(ctx, id)
	close(s.begun)
	<-s.goOn
	return facts, users, err
}

// TestFirstContactOfTwo: two instances make the first contact at once, and the
// one that asked the database last comes first. There is one line, with both
// places, and nobody is told that a line was lost.
func TestFirstContactOfTwo(t *testing.T) {
	s := realStores(t)
	seats := registrar.Open(s.client, registrar.Options{})
	slow := &slowBegin{Seats: seats, begun: make(chan struct{}), goOn: make(chan struct{})}
	a := &instance{Registrar: registrar.New(seats, nil), room: waitroom.New(s.rdb, slow, waitroom.Options{})}
	b := &instance{Registrar: registrar.New(seats, nil), room: waitroom.New(s.rdb, seats, waitroom.Options{})}
	id := a.newLecture(t, 0, nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := a.room.Join(t.Context(), id, "second", ""); err != nil {
			t.Error(err)
		}
	})
	<-slow.begun
	b.join(t, id, "first")
	close(slow.goOn)
	wg.Wait()
	for i, u := range []string{"first", "second"} {
		if p := b.place(t, id, u); p.Status != waitroom.Waiting || *p.Position != i+1 {
			t.Errorf("%s reads %+v, want place %d", u, p, i+1)
		}
	}
	if p := b.place(t, id, "stranger"); p.Status != waitroom.NotQueued || p.Reason != nil {
		t.Errorf("a stranger to a new lecture reads %s, with a reason: %v", p.Status, p.Reason != nil)
	}
}

// TestStrangeLecturesAreNotListed: asking after a lecture that does not exist
// makes no work for the loops.
func TestStrangeLecturesAreNotListed(t *testing.T) {
	s := realStores(t)
	seats := registrar.Open(s.client, registrar.Options{})
	room := waitroom.New(s.rdb, seats, waitroom.Options{})
	if _, err := room.Place(t.Context(), 999, "u"); err == nil {
		t.Fatal("there is a lecture 999")
	}
	if listed := s.rdb.SMembers(t.Context(), "lectures:active").Val(); len(listed) > 0 {
		t.Errorf("listed as active: %v", listed)
	}
}
