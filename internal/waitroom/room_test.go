package waitroom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

// TestFirstComeFirstServed is the main job: stand in line, be admitted in
// order, enrol, and a cancelled seat goes to the head.
func TestFirstComeFirstServed(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 2, nil)
		users := people(5)
		in.join(t, id, users...)
		for _, u := range users[:2] {
			p := in.awaitStatus(t, id, u, waitroom.Admitted, 5*time.Second)
			if left := p.TicketExpiresAt.Sub(p.Line.ServerTime); left < 50*time.Second || left > time.Minute {
				t.Errorf("%s has %v left, want about a minute", u, left)
			}
		}
		for i, u := range users[2:] {
			if p := in.place(t, id, u); p.Status != waitroom.Waiting || *p.Position != i+1 || p.Line.State != waitroom.AllHeld || p.PlaceToken == nil {
				t.Errorf("%s reads %+v, want place %d while all seats are held", u, p, i+1)
			}
		}
		in.enroll(t, id, users[2], registrar.NotAdmitted)
		in.enroll(t, id, users[0], registrar.Enrolled)
		in.enroll(t, id, users[1], registrar.Enrolled)
		in.enroll(t, id, users[1], registrar.AlreadyEnrolled)
		if p := in.place(t, id, users[2]); p.Line.State != waitroom.SoldOut || *p.SeatChance != 0 || p.PollAfterMs != 30000 {
			t.Errorf("after the last seat %+v", p)
		}
		if _, err := in.Cancel(t.Context(), id, users[0]); err != nil {
			t.Fatal(err)
		}
		in.awaitStatus(t, id, users[2], waitroom.Admitted, 5*time.Second)
		if p := in.place(t, id, users[0]); p.Status != waitroom.NotQueued {
			t.Errorf("the canceller reads %s", p.Status)
		}
		in.join(t, id, users[0])
		if p := in.place(t, id, users[0]); *p.Position != 3 {
			t.Errorf("the canceller is back at %d, want the end", *p.Position)
		}
		s.invariants(t, id)
		s.heldWithin(t, id, 1)
	})
}

// TestPlaceNeverChanges: leaving the page, joining again and again, a second
// device: place 5 stays place 5, and everybody else's stays too.
func TestPlaceNeverChanges(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in, other := s.start(t, waitroom.Options{}), s.start(t, waitroom.Options{})
		id := in.newLecture(t, 0, nil)
		users := people(8)
		in.join(t, id, users...)
		ctx, leave := context.WithCancel(t.Context())
		if _, err := in.room.Watch(ctx, id, users[4]); err != nil {
			t.Fatal(err)
		}
		leave()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				device := in
				if i%2 == 0 {
					device = other
				}
				if p, err := device.room.Join(t.Context(), id, users[4], ""); err != nil || *p.Position != 5 {
					t.Errorf("joins again: %+v, %v", p, err)
				}
			})
		}
		wg.Wait()
		for i, u := range users {
			if p := other.place(t, id, u); *p.Position != i+1 || p.Line.Waiting != len(users) {
				t.Errorf("%s is at %d of %d, want %d of %d", u, *p.Position, p.Line.Waiting, i+1, len(users))
			}
		}
	})
}

// TestAbsentHead: who is away does not block the line, keeps the number, and
// comes back to it.
func TestAbsentHead(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{PresenceGrace: time.Second})
		id := in.newLecture(t, 0, nil)
		in.join(t, id, "absent", "present", "third")
		stay := t.Context()
		for _, u := range []string{"present", "third"} {
			if _, err := in.room.Watch(stay, id, u); err != nil {
				t.Fatal(err)
			}
		}
		testenv.Eventually(t, 5*time.Second, func() bool {
			seen := s.rdb.ZScore(stay, fmt.Sprintf("seen:lecture:{%d}", id), "absent").Val()
			return s.rdb.Time(stay).Val().UnixMilli()-int64(seen) > 1500
		}, "the absent never becomes absent")
		s.setCapacity(t, in, id, 1)
		in.awaitStatus(t, id, "present", waitroom.Admitted, 5*time.Second)
		if parked := s.line(t, id).parked; !slices.Equal(parked, []string{"absent"}) {
			t.Errorf("parked: %v", parked)
		}
		// Coming back is enough: a subscription, without a join.
		w, err := in.room.Watch(stay, id, "absent")
		if err != nil {
			t.Fatal(err)
		}
		if p := <-w; p.Status != waitroom.Waiting || *p.Position != 1 {
			t.Errorf("back: %+v, want the first place", p)
		}
		s.setCapacity(t, in, id, 2)
		in.awaitStatus(t, id, "absent", waitroom.Admitted, 5*time.Second)
		s.invariants(t, id)
	})
}

func (s stores) setCapacity(t testing.TB, in *instance, id, capacity int) {
	t.Helper()
	if _, err := in.Update(t.Context(), id, registrar.LectureChange{Capacity: registrar.Some(capacity)}); err != nil {
		t.Fatal(err)
	}
}

// TestAwayForGood: a place is not kept for ever.
func TestAwayForGood(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{PresenceGrace: 500 * time.Millisecond, ParkedFor: 500 * time.Millisecond})
		id := in.newLecture(t, 0, nil)
		in.join(t, id, "absent", "present")
		if _, err := in.room.Watch(t.Context(), id, "present"); err != nil {
			t.Fatal(err)
		}
		// Nobody is parked while nobody could be let in.
		testenv.Eventually(t, 5*time.Second, func() bool {
			seen := s.rdb.ZScore(t.Context(), fmt.Sprintf("seen:lecture:{%d}", id), "absent").Val()
			return s.rdb.Time(t.Context()).Val().UnixMilli()-int64(seen) > 1200
		}, "time stands still")
		s.setCapacity(t, in, id, 1)
		testenv.Eventually(t, 5*time.Second, func() bool {
			return s.rdb.ZScore(t.Context(), fmt.Sprintf("expired:lecture:{%d}", id), "absent").Err() == nil
		}, "the absent keeps the place for ever")
		p := in.place(t, id, "absent")
		if p.Status != waitroom.Expired || *p.Reason != waitroom.Away {
			t.Errorf("reads %s %v, want EXPIRED, AWAY", p.Status, p.Reason)
		}
		in.enroll(t, id, "absent", registrar.NotAdmitted)
		in.join(t, id, "absent")
		if p := in.place(t, id, "absent"); p.Status != waitroom.Waiting || *p.Position != 1 {
			t.Errorf("after joining again %+v", p)
		}
	})
}

// TestTicketRunsOut: an unused ticket goes on to the next, whose holder reads
// EXPIRED and can only start again at the end.
func TestTicketRunsOut(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 1, func(n *registrar.NewLecture) { n.Settings.TicketTTLSeconds = registrar.Some(1) })
		in.join(t, id, "first", "second", "third")
		w, err := in.room.Watch(t.Context(), id, "first")
		if err != nil {
			t.Fatal(err)
		}
		in.awaitStatus(t, id, "second", waitroom.Admitted, 5*time.Second)
		in.enroll(t, id, "first", registrar.TicketExpired)
		for p := range w {
			if p.Status == waitroom.Expired {
				if *p.Reason != waitroom.TicketExpired {
					t.Errorf("reason %s", *p.Reason)
				}
				break
			}
		}
		in.join(t, id, "first")
		if p := in.place(t, id, "first"); p.Status == waitroom.Waiting && *p.Position != 2 && *p.Position != 1 {
			t.Errorf("joined again at %d, want the end", *p.Position)
		}
		if q := s.line(t, id).queue; len(q) > 0 && q[len(q)-1] != "first" {
			t.Errorf("line %v, want first at its end", q)
		}
		s.invariants(t, id)
	})
}

// TestLeavingFreesAtOnce: the seat of a ticket given back is the next one's
// without waiting for a tick.
func TestLeavingFreesAtOnce(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{Tick: time.Hour})
		id := in.newLecture(t, 1, nil)
		in.join(t, id, "first", "second", "third")
		if p := in.place(t, id, "first"); p.Status != waitroom.Admitted {
			t.Fatalf("the first of a quiet lecture reads %s", p.Status)
		}
		p, err := in.room.Leave(t.Context(), id, "first")
		if err != nil || p.Status != waitroom.NotQueued {
			t.Fatalf("leaves: %+v, %v", p, err)
		}
		if p := in.place(t, id, "second"); p.Status != waitroom.Admitted {
			t.Errorf("second reads %s", p.Status)
		}
		if p, err = in.room.Leave(t.Context(), id, "third"); err != nil || p.Status != waitroom.NotQueued {
			t.Errorf("leaves the line: %+v, %v", p, err)
		}
		if p, err = in.room.Leave(t.Context(), id, "stranger"); err != nil || p.Status != waitroom.NotQueued {
			t.Errorf("a stranger leaves: %+v, %v", p, err)
		}
		s.invariants(t, id)
	})
}

// TestSettingsAreLive: pausing, hours, capacity and the operator's word reach
// the line and who watches it; places survive all of it.
func TestSettingsAreLive(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 1, func(n *registrar.NewLecture) { n.Settings.Paused = registrar.Some(true) })
		in.join(t, id, "first", "second")
		w, err := in.room.Watch(t.Context(), id, "second")
		if err != nil {
			t.Fatal(err)
		}
		await := func(what string, ok func(waitroom.Place) bool) {
			t.Helper()
			deadline := time.After(5 * time.Second)
			for {
				select {
				case p, open := <-w:
					if !open {
						t.Fatalf("%s: the stream ended", what)
					}
					if ok(p) {
						return
					}
				case <-deadline:
					t.Fatalf("%s: never seen", what)
				}
			}
		}
		change := func(c registrar.LectureChange) {
			t.Helper()
			if _, err := in.Update(t.Context(), id, c); err != nil {
				t.Fatal(err)
			}
		}
		await("paused", func(p waitroom.Place) bool { return p.Line.State == waitroom.Paused && *p.Position == 2 })
		change(registrar.LectureChange{Settings: registrar.SettingsChange{Message: registrar.Some("Back at noon")}})
		await("message", func(p waitroom.Place) bool { return p.Line.Message != nil && *p.Line.Message == "Back at noon" })
		later := time.Now().Add(time.Hour)
		change(registrar.LectureChange{
			OpensAt:  registrar.Some(later),
			Settings: registrar.SettingsChange{Paused: registrar.Some(false), Message: registrar.Null[string]()},
		})
		await("upcoming", func(p waitroom.Place) bool { return p.Line.State == waitroom.Upcoming && p.Line.Message == nil })
		change(registrar.LectureChange{OpensAt: registrar.Null[time.Time]()})
		await("all held", func(p waitroom.Place) bool { return p.Line.State == waitroom.AllHeld && *p.Position == 1 })
		in.enroll(t, id, "first", registrar.Enrolled)
		await("sold out", func(p waitroom.Place) bool { return p.Line.State == waitroom.SoldOut })
		if _, err := in.Update(t.Context(), id, registrar.LectureChange{Capacity: registrar.Some(0)}); !isInvalid(err) {
			t.Errorf("capacity below the enrolled: %v", err)
		}
		change(registrar.LectureChange{Capacity: registrar.Some(2)})
		await("admitted", func(p waitroom.Place) bool { return p.Status == waitroom.Admitted })
		change(registrar.LectureChange{ClosesAt: registrar.Some(time.Now().Add(-time.Second))})
		in.enroll(t, id, "second", registrar.Closed)
		for p := range w {
			if p.Line.State == waitroom.Closed {
				break
			}
		}
		if _, open := <-w; open {
			t.Error("the stream goes on after CLOSED")
		}
		p, err := in.room.Join(t.Context(), id, "late", "")
		if err != nil || p.Status != waitroom.NotQueued || p.Line.State != waitroom.Closed {
			t.Errorf("joins a closed lecture: %+v, %v", p, err)
		}
		s.invariants(t, id)
	})
}

func isInvalid(err error) bool {
	var invalid *registrar.InvalidError
	return errors.As(err, &invalid)
}

// TestUnknownLecture: an id without a lecture is not found, whatever is asked.
func TestUnknownLecture(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		for name, ask := range map[string]func() error{
			"join":  func() error { _, err := in.room.Join(t.Context(), 999, "u", ""); return err },
			"leave": func() error { _, err := in.room.Leave(t.Context(), 999, "u"); return err },
			"place": func() error { _, err := in.room.Place(t.Context(), 999, "u"); return err },
			"watch": func() error { _, err := in.room.Watch(t.Context(), 999, "u"); return err },
			"stats": func() error { _, err := in.room.WatchStats(t.Context(), 999); return err },
			"claim": func() error { _, err := in.room.Claim(t.Context(), 999, "u", "0123456789abcdef"); return err },
		} {
			if err := ask(); !errors.Is(err, lecture.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		keys, err := s.rdb.Keys(t.Context(), "*{999}*").Result()
		if err != nil || len(keys) > 0 {
			t.Errorf("left behind: %v, %v", keys, err)
		}
	})
}

// TestEmptiedScriptCache: Redis may forget the scripts at any time.
func TestEmptiedScriptCache(t *testing.T) {
	t.Parallel()
	s := stores{rdb: redisAt(t, testenv.Redis(t))}.withPostgres(t)
	in := s.start(t, waitroom.Options{})
	id := in.newLecture(t, 30, nil)
	for i, u := range people(30) {
		if i%3 == 0 {
			if err := s.rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		in.join(t, id, u)
		in.awaitStatus(t, id, u, waitroom.Admitted, 5*time.Second)
		in.enroll(t, id, u, registrar.Enrolled)
	}
	s.invariants(t, id)
}

// TestDeletedLecture: a lecture that SQL deleted loses its line, and who
// watches it is told by the end of the stream.
func TestDeletedLecture(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 1, nil)
		in.join(t, id, "first", "second")
		w, err := in.room.Watch(t.Context(), id, "second")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.client.Lecture.DeleteOneID(id).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 15*time.Second, func() bool {
			keys, err := s.rdb.Keys(t.Context(), fmt.Sprintf("*{%d}*", id)).Result()
			return err == nil && len(keys) == 0
		}, "the line of a deleted lecture stays")
		for range w {
			continue
		}
	})
}
