package waitroom_test

import (
	"slices"
	"testing"
	"time"

	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

// TestManySeatsAtOnce: a long line has watched a sold-out lecture for longer
// than the grace, and many seats come at once. All who watch are there: the
// seats go to the first of them, and nobody is set aside.
func TestManySeatsAtOnce(t *testing.T) {
	s := realStores(t)
	const waiting, seats, grace = 1000, 800, time.Second
	in := s.start(t, waitroom.Options{PresenceGrace: grace})
	id := in.newLecture(t, 0, func(n *registrar.NewLecture) {
		n.Settings.AdmitPerSecond, n.Settings.Burst = registrar.Some(0.01), registrar.Some(seats)
	})
	users := people(waiting)
	in.join(t, id, users...)
	for _, u := range users {
		if _, err := in.room.Watch(t.Context(), id, u); err != nil {
			t.Fatal(err)
		}
	}
	begun := s.rdb.Time(t.Context()).Val()
	testenv.Eventually(t, 10*time.Second, func() bool {
		return s.rdb.Time(t.Context()).Val().Sub(begun) > 2*grace
	}, "time stands still")
	s.setCapacity(t, in, id, seats)
	testenv.Eventually(t, 10*time.Second, func() bool { return len(s.line(t, id).tickets) == seats }, "the seats are not granted")
	admitted := s.line(t, id).tickets
	for i, u := range users[:seats] {
		if !slices.Contains(admitted, u) {
			t.Fatalf("number %d of the line watches and has no ticket; %d seats went to others", i+1, seats)
		}
	}
	if parked := s.line(t, id).parked; len(parked) > 0 {
		t.Errorf("%d who watch are set aside", len(parked))
	}
}
