package waitroom_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
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

// countedSeats counts first contacts, and may hold them up.
type countedSeats struct {
	*registrar.Seats
	begins atomic.Int64
	hold   chan struct{}
}

func (s *countedSeats) Begin(ctx context.Context, id int) (lecture.Facts, []string, error) {
	s.begins.Add(1)
	if s.hold != nil {
		<-s.hold
	}
	return s.Seats.Begin(ctx, id)
}

// TestOneFirstContact: however many come at once, the database is asked once.
func TestOneFirstContact(t *testing.T) {
	s := realStores(t)
	seats := &countedSeats{Seats: registrar.Open(s.client, registrar.Options{}), hold: make(chan struct{})}
	in := &instance{Registrar: registrar.New(seats.Seats, nil), room: waitroom.New(s.rdb, seats, waitroom.Options{})}
	id := in.newLecture(t, 0, nil)
	var wg sync.WaitGroup
	users := people(20)
	for _, u := range users {
		wg.Go(func() { in.join(t, id, u) })
	}
	// Who has asked the line but does not wait yet would be late, and ask the database again.
	stacks := make([]byte, 4<<20)
	testenv.Eventually(t, 10*time.Second, func() bool {
		all := string(stacks[:runtime.Stack(stacks, true)])
		return strings.Count(all, "\nseatline/internal/waitroom.(*Room).shared(") == len(users)
	}, "they do not all wait")
	close(seats.hold)
	wg.Wait()
	if n := seats.begins.Load(); n != 1 {
		t.Errorf("the database was asked %d times", n)
	}
	if p := in.place(t, id, users[0]); p.Line.Waiting != len(users) {
		t.Errorf("%d wait, want %d", p.Line.Waiting, len(users))
	}
}

// TestUnknownIsRemembered: asking again and again for a lecture that does not
// exist does not ask the database each time.
func TestUnknownIsRemembered(t *testing.T) {
	s := realStores(t)
	seats := &countedSeats{Seats: registrar.Open(s.client, registrar.Options{})}
	room := waitroom.New(s.rdb, seats, waitroom.Options{})
	const asked = 20
	for range asked {
		if _, err := room.Join(t.Context(), 999, "u", ""); !errors.Is(err, lecture.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if n := seats.begins.Load(); n > asked/2 {
		t.Errorf("the database was asked %d times of %d", n, asked)
	}
}

// TestQuietLectureWakes: nobody has looked after the line for long. The first
// who comes waits for no loop.
func TestQuietLectureWakes(t *testing.T) {
	s := realStores(t)
	seats := registrar.Open(s.client, registrar.Options{})
	in := &instance{Registrar: registrar.New(seats, nil), room: waitroom.New(s.rdb, seats, waitroom.Options{})}
	id := in.newLecture(t, 0, nil)
	in.place(t, id, "stranger")
	if err := s.rdb.HSet(t.Context(), fmt.Sprintf("lecture:{%d}", id), "synced", 1).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), "UPDATE lectures SET capacity = 1 WHERE id = $1", id); err != nil {
		t.Fatal(err)
	}
	if p, err := in.room.Join(t.Context(), id, "first", ""); err != nil || p.Status != waitroom.Admitted {
		t.Errorf("the first reads %s, %v", p.Status, err)
	}
}

// TestOneBrokenLecture: a line that cannot be ticked is in nobody else's way.
func TestOneBrokenLecture(t *testing.T) {
	s := realStores(t)
	in := s.start(t, waitroom.Options{})
	broken, sound := in.newLecture(t, 1, nil), in.newLecture(t, 0, nil)
	in.join(t, broken, "u")
	in.join(t, sound, "first", "second")
	for _, key := range []string{"queue", "tickets", "claims"} {
		if err := s.rdb.Set(t.Context(), fmt.Sprintf("%s:lecture:{%d}", key, broken), "not a set", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.ExecContext(t.Context(), "UPDATE lectures SET capacity = 1 WHERE id = $1", sound); err != nil {
		t.Fatal(err)
	}
	in.awaitStatus(t, sound, "first", waitroom.Admitted, 6*time.Second)
}
