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

// age makes a claim one that ended a second ago, and returns its new end.
func (s stores) age(t testing.TB, id int, c lecture.Claim) int64 {
	t.Helper()
	tag := fmt.Sprintf("lecture:{%d}", id)
	var seq, deadline, until int64
	var attempt string
	hold := s.rdb.HGet(t.Context(), "holds:"+tag, c.User).Val()
	if _, err := fmt.Sscan(hold, &seq, &deadline, &attempt, &until); err != nil || until != c.Until {
		t.Fatalf("hold %q of %+v: %v", hold, c, err)
	}
	until = s.rdb.Time(t.Context()).Val().UnixMilli() - 1000
	_, err := s.rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.ZAdd(t.Context(), "claims:"+tag, redis.Z{Score: float64(until), Member: c.User})
		p.HSet(t.Context(), "holds:"+tag, c.User, fmt.Sprint(seq, " ", deadline, " ", attempt, " ", until))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return until
}

// TestReconcilerLeavesANewerClaim: between the moment at which the reconciler
// finds a claim overdue and the one at which it decides, another instance
// settles it and its person tries again. The new claim is not the reconciler's
// to end: its row may be on the way.
func TestReconcilerLeavesANewerClaim(t *testing.T) {
	s := realStores(t)
	seats := registrar.Open(s.client, registrar.Options{})
	elsewhere := &instance{Registrar: registrar.New(seats, nil), room: waitroom.New(s.rdb, seats, waitroom.Options{})}
	id := elsewhere.newLecture(t, 1, nil)
	elsewhere.join(t, id, "first")
	claim := func(attempt string) lecture.Claim {
		t.Helper()
		c, err := elsewhere.room.Claim(t.Context(), id, "first", attempt)
		if err != nil || c.Status != lecture.ClaimOK {
			t.Fatalf("claims: %+v, %v", c, err)
		}
		return c
	}
	old := claim("00000000000000aa")
	old.Until = s.age(t, id, old)

	rounds := make(chan struct{})
	var newer sync.Once
	asked := &delayedSeats{Seats: seats, afterFacts: func(ids []int) {
		if !slices.Contains(ids, id) {
			return
		}
		newer.Do(func() {
			end := lecture.Settlement{User: "first", Attempt: old.Attempt, Until: old.Until, Verdict: lecture.Back}
			if err := elsewhere.room.Settle(t.Context(), id, lecture.Seats{Remaining: -1}, []lecture.Settlement{end}); err != nil {
				t.Error(err)
			}
			claim("00000000000000bb")
		})
		select {
		case rounds <- struct{}{}:
		case <-t.Context().Done():
		}
	}}
	s.startWith(t, waitroom.Options{}, seats, asked)
	for range 2 { // the second round begins when the first has decided
		select {
		case <-rounds:
		case <-time.After(10 * time.Second):
			t.Fatal("the reconciler does not come by")
		}
	}
	if l := s.line(t, id); !slices.Equal(l.claims, []string{"first"}) || len(l.tickets) != 0 {
		t.Errorf("claims %v, tickets %v: the newer claim was ended by who had not seen it", l.claims, l.tickets)
	}
	testenv.Eventually(t, 20*time.Second, func() bool {
		select {
		case <-rounds:
		default:
		}
		return len(s.line(t, id).tickets) == 1
	}, "nor is it ended when it is overdue itself")
}

// TestReconcilerSettlesFromOneReading: a row comes to be between the lock-free
// reading and the decision about its claim. The claim leaves together with the
// seat that it took, so nobody is admitted for it.
func TestReconcilerSettlesFromOneReading(t *testing.T) {
	s := realStores(t)
	seats := registrar.Open(s.client, registrar.Options{})
	elsewhere := &instance{Registrar: registrar.New(seats, nil), room: waitroom.New(s.rdb, seats, waitroom.Options{})}
	id := elsewhere.newLecture(t, 1, nil)
	elsewhere.join(t, id, "first", "second")
	c, err := elsewhere.room.Claim(t.Context(), id, "first", "00000000000000aa")
	if err != nil || c.Status != lecture.ClaimOK {
		t.Fatalf("claims: %+v, %v", c, err)
	}
	s.age(t, id, c)
	var once sync.Once
	asked := &delayedSeats{Seats: seats, afterFacts: func(ids []int) {
		if !slices.Contains(ids, id) {
			return
		}
		once.Do(func() {
			_, err := s.db.ExecContext(t.Context(), `WITH seat AS (
				UPDATE lectures SET enrolled_count = 1, last_number = 1, seat_version = seat_version + 1 WHERE id = $1 RETURNING id
			) INSERT INTO enrollments (id, lecture_id, user_key, number, created_at)
				SELECT gen_random_uuid(), id, 'first', 1, now() FROM seat`, id)
			if err != nil {
				t.Error(err)
			}
		})
	}}
	in := s.startWith(t, waitroom.Options{}, seats, asked)
	testenv.Eventually(t, 10*time.Second, func() bool { return len(s.line(t, id).claims) == 0 }, "the claim is never decided")
	stats, err := in.room.WatchStats(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 { // ticks before the reconciler's next round
		if st := <-stats; st.Line.Held > 0 || st.Line.Remaining > 0 {
			t.Fatalf("%d seats held, %d free after the only one was taken", st.Line.Held, st.Line.Remaining)
		}
	}
	if p := in.place(t, id, "first"); p.Status != waitroom.Enrolled {
		t.Errorf("first reads %s", p.Status)
	}
	s.invariants(t, id)
}

// TestReconcilerGivesTheTicketBack: an overdue claim without a row is the old
// ticket again, with its deadline.
func TestReconcilerGivesTheTicketBack(t *testing.T) {
	s := realStores(t)
	seats := registrar.Open(s.client, registrar.Options{})
	elsewhere := &instance{Registrar: registrar.New(seats, nil), room: waitroom.New(s.rdb, seats, waitroom.Options{})}
	id := elsewhere.newLecture(t, 1, nil)
	elsewhere.join(t, id, "first", "second")
	before := elsewhere.place(t, id, "first")
	c, err := elsewhere.room.Claim(t.Context(), id, "first", "00000000000000aa")
	if err != nil || c.Status != lecture.ClaimOK {
		t.Fatalf("claims: %+v, %v", c, err)
	}
	s.age(t, id, c)
	in := s.start(t, waitroom.Options{})
	testenv.Eventually(t, 10*time.Second, func() bool { return len(s.line(t, id).claims) == 0 }, "the claim is never decided")
	if after := in.place(t, id, "first"); after.Status != waitroom.Admitted || !after.TicketExpiresAt.Equal(*before.TicketExpiresAt) {
		t.Errorf("afterwards %s until %v, want the ticket until %v", after.Status, after.TicketExpiresAt, before.TicketExpiresAt)
	}
	if p := in.place(t, id, "second"); p.Status != waitroom.Waiting {
		t.Errorf("second reads %s", p.Status)
	}
	in.enroll(t, id, "first", registrar.Enrolled)
	s.invariants(t, id)
}

// unsettled is a line as a registrar has it whose process ends once its
// enrolment is committed: it has this claim, and settles nothing.
type unsettled struct {
	*waitroom.Room
	claim lecture.Claim
}

func (u unsettled) Claim(context.Context, int, string, string) (lecture.Claim, error) {
	return u.claim, nil
}

func (u unsettled) Settle(context.Context, int, lecture.Seats, []lecture.Settlement) error {
	return lecture.ErrUnavailable
}

// TestCancelledBeforeTheSettlement: a settlement is lost, and the person cancels
// before the reconciler comes by. The seat is the next one's; the canceller has
// neither it nor the ticket that was used for it.
func TestCancelledBeforeTheSettlement(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		seats := registrar.Open(s.client, registrar.Options{})
		room := waitroom.New(s.rdb, seats, waitroom.Options{})
		elsewhere := &instance{Registrar: registrar.New(seats, room), room: room}
		id := elsewhere.newLecture(t, 1, nil)
		elsewhere.join(t, id, "first", "second")
		c, err := room.Claim(t.Context(), id, "first", "00000000000000aa")
		if err != nil || c.Status != lecture.ClaimOK {
			t.Fatalf("claims: %+v, %v", c, err)
		}
		c.Until = s.age(t, id, c)
		lost := &instance{Registrar: registrar.New(seats, unsettled{room, c}), room: room}
		lost.enroll(t, id, "first", registrar.Enrolled)
		if receipt, err := elsewhere.Cancel(t.Context(), id, "first"); err != nil || receipt == nil {
			t.Fatalf("cancels: %v, %v", receipt, err)
		}
		in := s.start(t, waitroom.Options{})
		in.awaitStatus(t, id, "second", waitroom.Admitted, 10*time.Second)
		if p := in.place(t, id, "first"); p.Status == waitroom.Admitted || p.Status == waitroom.Waiting {
			t.Errorf("who cancelled reads %s", p.Status)
		}
		s.heldWithin(t, id, 1)
		in.enroll(t, id, "second", registrar.Enrolled)
		s.invariants(t, id)
	})
}

// TestOverdueAmongNonsense: what somebody else wrote in a hold's place keeps no
// other claim from being settled.
func TestOverdueAmongNonsense(t *testing.T) {
	s := realStores(t)
	seats := registrar.Open(s.client, registrar.Options{})
	elsewhere := &instance{Registrar: registrar.New(seats, nil), room: waitroom.New(s.rdb, seats, waitroom.Options{})}
	id := elsewhere.newLecture(t, 3, nil)
	users := []string{"before", "bad", "later"}
	elsewhere.join(t, id, users...)
	for _, user := range users {
		c, err := elsewhere.room.Claim(t.Context(), id, user, "00000000000000aa")
		if err != nil || c.Status != lecture.ClaimOK {
			t.Fatalf("%s claims: %+v, %v", user, c, err)
		}
		s.age(t, id, c)
	}
	if err := s.rdb.HSet(t.Context(), fmt.Sprintf("holds:lecture:{%d}", id), "bad", "nonsense").Err(); err != nil {
		t.Fatal(err)
	}
	s.start(t, waitroom.Options{})
	testenv.Eventually(t, 10*time.Second, func() bool { return slices.Equal(s.line(t, id).claims, []string{"bad"}) }, "the others are never decided")
}
