package waitroom_test

import (
	"slices"
	"testing"
	"time"

	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

// TestEightAdmitAsOne: any number of instances admit at the set rate, in order.
func TestEightAdmitAsOne(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		const rate, burst, waiting = 20, 5, 200
		id := in.newLecture(t, waiting, func(n *registrar.NewLecture) {
			n.Settings.AdmitPerSecond, n.Settings.Burst = registrar.Some(float64(rate)), registrar.Some(burst)
			n.Settings.Paused = registrar.Some(true)
			n.Settings.TicketTTLSeconds = registrar.Some(3600)
		})
		in.join(t, id, people(waiting)...)
		for range 7 {
			s.start(t, waitroom.Options{})
		}
		begun := s.rdb.Time(t.Context()).Val()
		if _, err := in.Update(t.Context(), id, registrar.LectureChange{
			Settings: registrar.SettingsChange{Paused: registrar.Some(false)},
		}); err != nil {
			t.Fatal(err)
		}
		var admitted []string
		testenv.Eventually(t, 10*time.Second, func() bool {
			admitted = s.line(t, id).tickets
			return len(admitted) >= 50
		}, "the line does not move")
		elapsed := s.rdb.Time(t.Context()).Val().Sub(begun).Seconds()
		if most := burst + rate*elapsed + 1; float64(len(admitted)) > most {
			t.Errorf("%d admitted in %.2f s, want at most %.0f", len(admitted), elapsed, most)
		}
		state := s.line(t, id)
		numbers := map[string]int{}
		for i, u := range people(waiting) {
			numbers[u] = i
		}
		last := -1
		for _, u := range state.tickets {
			last = max(last, numbers[u])
		}
		if want := people(waiting)[last+1:]; !slices.Equal(state.queue, want) {
			t.Errorf("admitted out of order: the last admitted is number %d, %d still wait", last+1, len(state.queue))
		}
		s.invariants(t, id)
	})
}

// TestRateIsReached: the rate that is set is the rate that people are admitted
// at, by one instance or by two, even where burst is less than a tick's worth or
// does not last from one tick to the next; and never a higher one.
func TestRateIsReached(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		for _, c := range []struct {
			rate                     float64
			burst, people, instances int
			tick                     time.Duration
			within                   float64 // seconds
		}{
			{60, 3, 120, 2, time.Second, 8},             // 2; by ticks alone: 20
			{1.8, 1, 20, 1, 500 * time.Millisecond, 15}, // 10.6; by ticks alone, every other of which admits: 19
		} {
			s.rateIsReached(t, c.rate, c.burst, c.people, c.tick, c.instances, c.within)
		}
	})
}

func (s stores) rateIsReached(t *testing.T, rate float64, burst, enough int, tick time.Duration, instances int, within float64) {
	t.Helper()
	var in *instance
	for range instances {
		in = s.start(t, waitroom.Options{Tick: tick})
		defer in.stop()
	}
	id := in.newLecture(t, enough+30, func(n *registrar.NewLecture) {
		n.Settings.AdmitPerSecond, n.Settings.Burst = registrar.Some(rate), registrar.Some(burst)
		n.Settings.Paused = registrar.Some(true)
		n.Settings.TicketTTLSeconds = registrar.Some(3600)
	})
	in.join(t, id, people(enough+30)...)
	begun := s.rdb.Time(t.Context()).Val()
	if _, err := in.Update(t.Context(), id, registrar.LectureChange{
		Settings: registrar.SettingsChange{Paused: registrar.Some(false)},
	}); err != nil {
		t.Fatal(err)
	}
	admitted := 0
	testenv.Eventually(t, 30*time.Second, func() bool {
		admitted = len(s.line(t, id).tickets)
		return admitted >= enough
	}, "the line does not move")
	elapsed := s.rdb.Time(t.Context()).Val().Sub(begun).Seconds()
	if most := float64(burst) + rate*elapsed + 1; float64(admitted) > most {
		t.Errorf("rate %v: %d admitted in %.2f s, want at most %.0f", rate, admitted, elapsed, most)
	}
	if elapsed > within {
		t.Errorf("rate %v: %d admitted in %.2f s, want at most %v", rate, admitted, elapsed, within)
	}
}

// TestRateThatChanges: a line that needed looking after between the ticks, then
// did not, and then does again, is looked after again.
func TestRateThatChanges(t *testing.T) {
	s := embeddedStores(t)
	in := s.start(t, waitroom.Options{Tick: time.Second})
	set := func(id int, rate float64) {
		t.Helper()
		if _, err := in.Update(t.Context(), id, registrar.LectureChange{
			Settings: registrar.SettingsChange{AdmitPerSecond: registrar.Some(rate)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	const fast, slow, waiting = 60, 0.01, 200
	id := in.newLecture(t, waiting, func(n *registrar.NewLecture) {
		n.Settings.AdmitPerSecond, n.Settings.Burst = registrar.Some(float64(fast)), registrar.Some(3)
		n.Settings.TicketTTLSeconds = registrar.Some(3600)
	})
	in.join(t, id, people(waiting)...)
	admitted := func() int { return len(s.line(t, id).tickets) }
	testenv.Eventually(t, 20*time.Second, func() bool { return admitted() >= 20 }, "the line does not move")
	set(id, slow) // the next token is a hundred seconds away
	before := admitted()
	for range 2 {
		beat := s.line(t, id).hash["beat"]
		testenv.Eventually(t, 20*time.Second, func() bool { return s.line(t, id).hash["beat"] != beat }, "nobody ticks")
	}
	if more := admitted() - before; more > 3 {
		t.Errorf("%d more were admitted at a rate of %v", more, slow)
	}
	set(id, fast)
	from := s.rdb.Time(t.Context()).Val()
	testenv.Eventually(t, 20*time.Second, func() bool { return admitted() >= before+60 }, "the line does not move again")
	// Ticks alone would take twenty seconds for sixty people.
	if took := s.rdb.Time(t.Context()).Val().Sub(from); took > 10*time.Second {
		t.Errorf("sixty more took %v", took)
	}
	s.invariants(t, id)
}
