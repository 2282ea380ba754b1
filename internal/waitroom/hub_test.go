package waitroom_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

// next is the next place of a stream.
func next(t testing.TB, w <-chan waitroom.Place) (waitroom.Place, bool) {
	t.Helper()
	select {
	case p, open := <-w:
		return p, open
	case <-time.After(10 * time.Second):
		t.Fatal("nothing comes")
		return waitroom.Place{}, false
	}
}

func awaitPlace(t testing.TB, w <-chan waitroom.Place, what string, ok func(waitroom.Place) bool) waitroom.Place {
	t.Helper()
	for {
		p, open := next(t, w)
		if !open {
			t.Fatalf("%s: the stream ended", what)
		}
		if ok(p) {
			return p
		}
	}
}

// TestStream follows one person from before joining to the seat.
func TestStream(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 0, nil)
		w, err := in.room.Watch(t.Context(), id, "u")
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := next(t, w); p.Status != waitroom.NotQueued || p.Reason != nil {
			t.Errorf("before joining %s %v", p.Status, p.Reason)
		}
		in.join(t, id, "ahead", "u")
		awaitPlace(t, w, "second", func(p waitroom.Place) bool { return p.Status == waitroom.Waiting && *p.Position == 2 })
		if _, err := in.room.Leave(t.Context(), id, "ahead"); err != nil {
			t.Fatal(err)
		}
		awaitPlace(t, w, "first", func(p waitroom.Place) bool { return p.Status == waitroom.Waiting && *p.Position == 1 })
		if _, err := in.room.Leave(t.Context(), id, "u"); err != nil {
			t.Fatal(err)
		}
		awaitPlace(t, w, "left", func(p waitroom.Place) bool { return p.Status == waitroom.NotQueued })
		in.join(t, id, "u")
		s.setCapacity(t, in, id, 1)
		awaitPlace(t, w, "admitted", func(p waitroom.Place) bool { return p.Status == waitroom.Admitted && p.TicketExpiresAt != nil })
		in.enroll(t, id, "u", registrar.Enrolled)
		awaitPlace(t, w, "enrolled", func(p waitroom.Place) bool { return p.Status == waitroom.Enrolled })
		if _, open := next(t, w); open {
			t.Error("the stream goes on after ENROLLED")
		}
		// A client that cancels subscribes again.
		if _, err := in.Cancel(t.Context(), id, "u"); err != nil {
			t.Fatal(err)
		}
		w, err = in.room.Watch(t.Context(), id, "u")
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := next(t, w); p.Status != waitroom.NotQueued {
			t.Errorf("after cancelling %s", p.Status)
		}
		s.invariants(t, id)
	})
}

// TestSlowReader: who does not read misses what is between, never the end, and
// holds up nobody.
func TestSlowReader(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 0, nil)
		in.join(t, id, "slow", "quick")
		slow, err := in.room.Watch(t.Context(), id, "slow")
		if err != nil {
			t.Fatal(err)
		}
		quick, err := in.room.Watch(t.Context(), id, "quick")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			message := fmt.Sprint("word ", i)
			if _, err := in.Update(t.Context(), id, registrar.LectureChange{
				Settings: registrar.SettingsChange{Message: registrar.Some(message)},
			}); err != nil {
				t.Fatal(err)
			}
			awaitPlace(t, quick, message, func(p waitroom.Place) bool { return p.Line.Message != nil && *p.Line.Message == message })
		}
		s.setCapacity(t, in, id, 1)
		in.awaitStatus(t, id, "slow", waitroom.Admitted, 5*time.Second)
		in.enroll(t, id, "slow", registrar.Enrolled)
		awaitPlace(t, quick, "sold out", func(p waitroom.Place) bool { return p.Line.State == waitroom.SoldOut })
		// Who is enrolled is watched no more; which of the two is told first is open.
		testenv.Eventually(t, 10*time.Second, func() bool { return in.room.Watchers() == 1 }, "the slow one's story is not over")
		if p, _ := next(t, slow); p.Status != waitroom.Enrolled {
			t.Errorf("the one place in the mailbox is %s, want the last", p.Status)
		}
		if _, open := next(t, slow); open {
			t.Error("more comes after the end")
		}
	})
}

// TestWatchWhileBeingAdmitted: a stream opened at the very moment of admission
// never misses it.
func TestWatchWhileBeingAdmitted(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{Tick: 5 * time.Millisecond})
		const people, at = 100, 10
		id := in.newLecture(t, 0, nil)
		users := make([]string, people)
		for i := range users {
			users[i] = fmt.Sprint("u", i)
		}
		in.join(t, id, users...)
		for capacity, part := at, users; len(part) > 0; capacity, part = capacity+at, part[at:] {
			var wg sync.WaitGroup
			wg.Go(func() { s.setCapacity(t, in, id, capacity) })
			for _, u := range part[:at] {
				wg.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w, err := in.room.Watch(ctx, id, u)
					if err != nil {
						t.Error(err)
						return
					}
					for p := range w {
						if p.Status == waitroom.Admitted {
							return
						}
					}
					t.Errorf("%s is never told", u)
				})
			}
			wg.Wait()
		}
	})
}

// TestSentOnlyOnChange: a line in which nothing happens is silent.
func TestSentOnlyOnChange(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 0, nil)
		in.join(t, id, "u", "v")
		w, err := in.room.Watch(t.Context(), id, "v")
		if err != nil {
			t.Fatal(err)
		}
		stats, err := in.room.WatchStats(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		next(t, w)
		for range 20 { // ticks, by what is sent every tick
			<-stats
		}
		select {
		case p := <-w:
			t.Errorf("sent without a change: %+v", p)
		default:
		}
	})
}

// TestStats are the operator's figures.
func TestStats(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 2, func(n *registrar.NewLecture) { n.Settings.AdmitPerSecond = registrar.Some(500.0) })
		in.join(t, id, "a", "b", "c", "d")
		in.awaitStatus(t, id, "b", waitroom.Admitted, 5*time.Second)
		in.enroll(t, id, "a", registrar.Enrolled)
		ctx, leave := context.WithCancel(t.Context())
		stats, err := in.room.WatchStats(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		deadline := time.After(10 * time.Second)
		for done := false; !done; {
			select {
			case st := <-stats:
				l := st.Line
				done = l.Waiting == 2 && l.Held == 1 && l.InFlight == 0 && l.Remaining == 1 && l.State == waitroom.AllHeld &&
					st.AdmitPerSecond == 500 && st.ClaimRate != nil && *st.ClaimRate == 1
			case <-deadline:
				t.Fatal("the figures never come right")
			}
		}
		leave()
		for range stats {
			continue
		}
		testenv.Eventually(t, 5*time.Second, func() bool { return in.room.Watchers() == 0 }, "watchers stay")
	})
}

// TestTheLastWordAtTheClosing: a stream that ends with the lecture ends with what
// became of the person, not with a ticket that is over, nor before an enrolment
// that is in flight.
func TestTheLastWordAtTheClosing(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 2, nil)
		in.join(t, id, "holds", "enrols", "waits")
		streams := map[string]<-chan waitroom.Place{}
		for _, user := range []string{"holds", "enrols", "waits"} {
			w, err := in.room.Watch(t.Context(), id, user)
			if err != nil {
				t.Fatal(err)
			}
			streams[user] = w
		}
		claim, err := in.room.Claim(t.Context(), id, "enrols", "00000000000000aa")
		if err != nil || claim.Status != lecture.ClaimOK {
			t.Fatalf("claims: %+v, %v", claim, err)
		}
		closes := s.rdb.Time(t.Context()).Val().Add(time.Second)
		if _, err := in.Update(t.Context(), id, registrar.LectureChange{ClosesAt: registrar.Some(closes)}); err != nil {
			t.Fatal(err)
		}
		lastOf := func(user string) (last waitroom.Place) {
			for {
				p, open := next(t, streams[user])
				if !open {
					return last
				}
				last = p
			}
		}
		for user, want := range map[string]waitroom.Status{"holds": waitroom.Expired, "waits": waitroom.Waiting} {
			if last := lastOf(user); last.Status != want || last.Line.State != waitroom.Closed {
				t.Errorf("who %s is told at last: %s, %s", user, last.Status, last.Line.State)
			}
		}
		// Who comes back only now hears the same.
		if streams["back"], err = in.room.Watch(t.Context(), id, "enrols"); err != nil {
			t.Fatal(err)
		}
		end := lecture.Settlement{User: "enrols", Attempt: claim.Attempt, Until: claim.Until, Verdict: lecture.In}
		if err := in.room.Settle(t.Context(), id, lecture.Seats{Version: 9, Remaining: 1}, []lecture.Settlement{end}); err != nil {
			t.Fatal(err)
		}
		for _, user := range []string{"enrols", "back"} {
			if last := lastOf(user); last.Status != waitroom.Enrolled {
				t.Errorf("who %s is told at last: %s, %s", user, last.Status, last.Line.State)
			}
		}
	})
}

// TestStreamsEndWithTheRoom: nothing is left of streams when the room stops.
func TestStreamsEndWithTheRoom(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 0, nil)
		w, err := in.room.Watch(t.Context(), id, "u")
		if err != nil {
			t.Fatal(err)
		}
		in.stop()
		for range w {
			continue
		}
		if _, err := in.room.Watch(t.Context(), id, "u"); err == nil {
			t.Error("a stopped room still watches")
		}
	})
}

func (s stores) flush(t testing.TB) {
	t.Helper()
	var err error
	if cluster, ok := s.rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			return node.FlushAll(ctx).Err()
		})
	} else {
		err = s.rdb.FlushDB(t.Context()).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLineLost: Redis loses everything. Who watches is told, a place token
// brings the place back, and nobody else's.
func TestLineLost(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 2, nil)
		other := in.newLecture(t, 0, nil)
		in.join(t, id, "seated", "cancelled")
		in.awaitStatus(t, id, "cancelled", waitroom.Admitted, 5*time.Second)
		in.enroll(t, id, "seated", registrar.Enrolled)
		in.enroll(t, id, "cancelled", registrar.Enrolled)
		in.join(t, id, "a", "b", "c", "d")
		in.join(t, other, "a")
		tokens := map[string]string{}
		for _, u := range []string{"a", "b", "c", "d"} {
			tokens[u] = *in.place(t, id, u).PlaceToken
		}
		foreign := *in.place(t, other, "a").PlaceToken
		w, err := in.room.Watch(t.Context(), id, "b")
		if err != nil {
			t.Fatal(err)
		}
		// A token of the line as it is changes nothing.
		if p, err := in.room.Join(t.Context(), id, "b", tokens["a"]); err != nil || *p.Position != 2 {
			t.Errorf("joins again with another's token: %+v, %v", p, err)
		}

		s.flush(t)
		awaitPlace(t, w, "lost", func(p waitroom.Place) bool {
			return p.Status == waitroom.NotQueued && p.Reason != nil && *p.Reason == waitroom.LineLost
		})
		if p := in.place(t, id, "seated"); p.Status != waitroom.Enrolled {
			t.Errorf("the enrolled read %s after the loss", p.Status)
		}
		restore := func(user, token string, want int) {
			t.Helper()
			p, err := in.room.Join(t.Context(), id, user, token)
			if err != nil || p.Status != waitroom.Waiting || *p.Position != want {
				t.Fatalf("%s comes back: %s at %v, %v; want place %d", user, p.Status, p.Position, err, want)
			}
		}
		restore("newcomer", "", 1)
		restore("d", tokens["d"], 1)
		restore("b", tokens["b"], 1)
		restore("a", tokens["a"], 1)
		restore("c", tokens["c"], 3)
		restore("thief", tokens["a"], 6)
		restore("forger", tokens["a"]+"x", 7)
		restore("stray", foreign, 8)
		want := []string{"a", "b", "c", "d", "newcomer", "thief", "forger", "stray"}
		if got := s.line(t, id).queue; !slices.Equal(got, want) {
			t.Errorf("line %v, want %v", got, want)
		}
		s.invariants(t, id)
	})
}

// TestTokenWorthlessAfterASeat: who enrolled or cancelled since has used the
// place up.
func TestTokenWorthlessAfterASeat(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 0, nil)
		in.join(t, id, "u", "v")
		token := *in.place(t, id, "u").PlaceToken
		s.setCapacity(t, in, id, 1)
		in.awaitStatus(t, id, "u", waitroom.Admitted, 5*time.Second)
		in.enroll(t, id, "u", registrar.Enrolled)
		s.setCapacity(t, in, id, 1)
		if _, err := in.Cancel(t.Context(), id, "u"); err != nil {
			t.Fatal(err)
		}
		in.awaitStatus(t, id, "v", waitroom.Admitted, 5*time.Second)
		s.flush(t)
		in.join(t, id, "x")
		in.awaitStatus(t, id, "x", waitroom.Admitted, 5*time.Second)
		in.join(t, id, "y")
		p, err := in.room.Join(t.Context(), id, "u", token)
		if err != nil || p.Status != waitroom.Waiting || *p.Position != 2 {
			t.Errorf("comes back with a used place: %s at %v, %v; want the end", p.Status, p.Position, err)
		}
	})
}
