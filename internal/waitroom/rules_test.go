package waitroom

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/lecture"
)

// What protocol.md rules, one script at a time, where the whole program would
// hardly ever show the difference.

const attemptA, attemptB = "00000000000000aa", "00000000000000bb"

func (w *feedWorld) claim(t *testing.T, user, attempt string, want lecture.ClaimStatus) lecture.Claim {
	t.Helper()
	c, err := w.room.Claim(t.Context(), 1, user, attempt)
	if err != nil || c.Status != want {
		t.Fatalf("claim of %s: %+v, %v; want %d", user, c, err, want)
	}
	return c
}

func (w *feedWorld) settle(t *testing.T, s lecture.Seats, c lecture.Claim, v lecture.Verdict) {
	t.Helper()
	end := lecture.Settlement{User: c.User, Attempt: c.Attempt, Until: c.Until, Verdict: v}
	if err := w.room.Settle(t.Context(), 1, s, []lecture.Settlement{end}); err != nil {
		t.Fatal(err)
	}
}

func (w *feedWorld) stands(t *testing.T, user string, want Status) Place {
	t.Helper()
	p, err := w.room.read(t.Context(), 1, user)
	if err != nil || p.Status != want {
		t.Fatalf("%s reads %s, %v; want %s", user, p.Status, err, want)
	}
	return p
}

// set writes fields of the line's hash.
func (w *feedWorld) set(t *testing.T, pairs ...any) {
	t.Helper()
	if err := w.room.rdb.HSet(t.Context(), keysOf(1).lecture, pairs...).Err(); err != nil {
		t.Fatal(err)
	}
}

func (w *feedWorld) ago(t *testing.T, d time.Duration) int64 {
	t.Helper()
	return w.room.rdb.Time(t.Context()).Val().Add(-d).UnixMilli()
}

// Rule 4: a reading without a row forgets only an enrolment that it can know of.
func TestUnmarkOnlyWhatIsOlder(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.sync(t, 2, 1)
	w.join(t, "u")
	c := w.claim(t, "u", attemptA, lecture.ClaimOK)
	w.settle(t, lecture.Seats{Version: 5, Remaining: 0}, c, lecture.In)
	if err := w.room.Unmark(t.Context(), 1, "u", 4); err != nil {
		t.Fatal(err)
	}
	w.stands(t, "u", Enrolled)
	if err := w.room.Unmark(t.Context(), 1, "u", 5); err != nil {
		t.Fatal(err)
	}
	w.stands(t, "u", NotQueued)
}

// Rule 5: seats of an older reading are not taken over, whoever brings them.
func TestLateReadings(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.sync(t, 5, 3)
	if err := w.room.Settle(t.Context(), 1, lecture.Seats{Version: 4, Remaining: 9}, []lecture.Settlement{{User: "nobody"}}); err != nil {
		t.Fatal(err)
	}
	if p := w.stands(t, "u", NotQueued); p.Line.Remaining != 3 || p.Line.Version != 5 {
		t.Errorf("a late settlement: %d free by version %d", p.Line.Remaining, p.Line.Version)
	}
	late := facts(4, 9)
	late.Settings.Paused = true
	if err := w.room.Changed(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if p := w.stands(t, "u", NotQueued); p.Line.Remaining != 3 || p.Line.State != Open {
		t.Errorf("a late change: %d free, %s", p.Line.Remaining, p.Line.State)
	}
	// A database that lost its last commits is believed, once it was asked after the line.
	if _, err := w.room.sync(t.Context(), facts(4, 9), 5, 0); err != nil {
		t.Fatal(err)
	}
	if p := w.stands(t, "u", NotQueued); p.Line.Remaining != 9 || p.Line.Version != 4 {
		t.Errorf("a database gone back: %d free by version %d", p.Line.Remaining, p.Line.Version)
	}
}

// Rule 6: the same attempt has the same claim, however often it asks; another
// one has none while it lives.
func TestOneClaimAnAttempt(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.sync(t, 2, 1)
	w.join(t, "u")
	ticket := w.stands(t, "u", Admitted).TicketExpiresAt
	c := w.claim(t, "u", attemptA, lecture.ClaimOK)
	if again := w.claim(t, "u", attemptA, lecture.ClaimOK); again != c {
		t.Errorf("asks again: %+v, want %+v", again, c)
	}
	if busy := w.claim(t, "u", attemptB, lecture.ClaimBusy); busy.Until != c.Until {
		t.Errorf("busy until %d, want %d", busy.Until, c.Until)
	}
	if p, err := w.room.Leave(t.Context(), 1, "u"); err != nil || p.Status != Admitted || !p.TicketExpiresAt.Equal(*ticket) || p.Line.InFlight != 1 {
		t.Errorf("leaves in flight: %+v, %v", p, err)
	}
}

// Rule 8: only a first contact begins a line.
func TestOnlyFirstContactBegins(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	if err := w.room.rdb.(*redis.Client).FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	answer, err := w.room.sync(t.Context(), facts(7, 3), noVersion, 0)
	if err != nil || answer != "UNKNOWN" {
		t.Errorf("a sync without an epoch: %s, %v", answer, err)
	}
	for name, call := range map[string]func() (reply, error){
		"join":  func() (reply, error) { return w.room.call(t.Context(), w.room.scripts.join, 1, "u", 0) },
		"claim": func() (reply, error) { return w.room.call(t.Context(), w.room.scripts.claim, 1, "u", attemptA, 15000) },
		"admit": func() (reply, error) { return w.room.call(t.Context(), w.room.scripts.admit, 1, 10000, 60000, 600000) },
	} {
		if answer, err := call(); err != nil || answer.text(0) != "UNKNOWN" {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
	}
	if keys := w.room.rdb.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left behind: %v", keys)
	}
}

// Rule 9: while the seats are stale nothing is granted, nothing runs out,
// nobody is parked.
func TestStaleSeats(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.sync(t, 2, 1)
	w.join(t, "holder", "absent")
	w.sync(t, 3, 2)
	k := keysOf(1)
	w.set(t, "synced", w.ago(t, 11*time.Second), "steady", 0)
	past := float64(w.ago(t, time.Second))
	if err := w.room.rdb.ZAdd(t.Context(), k.tickets, redis.Z{Score: past, Member: "holder"}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.room.rdb.ZAdd(t.Context(), k.seen, redis.Z{Score: 0, Member: "absent"}).Err(); err != nil {
		t.Fatal(err)
	}
	a, err := w.room.admit(t.Context(), 1)
	if err != nil || a.granted != 0 || a.waiting != 1 || a.held != 1 {
		t.Errorf("admits with stale seats: %+v, %v", a, err)
	}
	w.stands(t, "holder", Admitted)
	answer, err := w.room.call(t.Context(), w.room.scripts.claim, 1, "holder", attemptA, 15000)
	if err != nil || answer.text(0) != "STALE" {
		t.Errorf("claims with stale seats: %v, %v", answer, err)
	}
	answer, err = w.room.call(t.Context(), w.room.scripts.join, 1, "newcomer", 0)
	if err != nil || answer.text(0) != "WAITING" || answer.text(4) != "1" {
		t.Errorf("joins with stale seats: %v, %v", answer, err)
	}
	// Fresh again, and not yet made up for: still nothing runs out.
	w.sync(t, 4, 2)
	answer, err = w.room.call(t.Context(), w.room.scripts.claim, 1, "holder", attemptA, 15000)
	if err != nil || answer.text(0) != "STALE" {
		t.Errorf("claims before the outage is made up for: %v, %v", answer, err)
	}
	w.room.admitNow(t.Context(), 1)
	w.claim(t, "holder", attemptA, lecture.ClaimOK)
}

// Rule 10: nobody is absent before the doors have been open for the grace.
func TestNobodyIsAbsentAtTheOpening(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]time.Duration{"just opened": 0, "open for long": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFeedWorld(t)
			w.join(t, "early")
			f := facts(2, 1)
			f.OpensAt = time.UnixMilli(w.ago(t, open))
			if _, err := w.room.sync(t.Context(), f, noVersion, 0); err != nil {
				t.Fatal(err)
			}
			w.set(t, "steady", 0, "beat", w.ago(t, 0))
			if err := w.room.rdb.ZAdd(t.Context(), keysOf(1).seen, redis.Z{Score: 0, Member: "early"}).Err(); err != nil {
				t.Fatal(err)
			}
			a, err := w.room.admit(t.Context(), 1)
			if absent := a.granted == 0; err != nil || absent != (open > time.Minute) {
				t.Errorf("absent: %v, %v", absent, err)
			}
		})
	}
}

// Rule 7: whoever comes lists the lecture.
func TestComingListsTheLecture(t *testing.T) {
	t.Parallel()
	for name, come := range map[string]func(*testing.T, *feedWorld){
		"join": func(t *testing.T, w *feedWorld) { w.join(t, "u") },
		"poll": func(t *testing.T, w *feedWorld) {
			if _, err := w.room.Place(t.Context(), 1, "u"); err != nil {
				t.Fatal(err)
			}
		},
		"tick": func(t *testing.T, w *feedWorld) { w.tick(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFeedWorld(t)
			come(t, w)
			if !w.room.rdb.SIsMember(t.Context(), activeKey, 1).Val() {
				t.Error("the lecture is not listed")
			}
		})
	}
}

// Rule 7: only what was idle for long leaves the cache.
func TestOnlyLongIdleLecturesLeave(t *testing.T) {
	idle := idleLectures{since: map[int]time.Time{}}
	for range 2 {
		if idle.note(1, true) {
			t.Error("leaves at once")
		}
	}
	idle.since[1] = time.Now().Add(-idleFor)
	if !idle.note(1, true) {
		t.Error("stays for ever")
	}
	idle.note(2, true)
	idle.since[2] = time.Now().Add(-idleFor)
	if idle.note(2, false) || idle.note(2, true) {
		t.Error("leaves although somebody was there")
	}
	idle.since[2] = time.Now().Add(-idleFor)
	idle.keep([]int{1})
	if idle.note(2, true) {
		t.Error("leaves although it was not watched all the time")
	}
}

// The table of events: what closing, the end of a failed enrolment, and
// overbooking do to tickets.
func TestTicketsAndTheClosing(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	f := facts(2, 2)
	f.ClosesAt = time.UnixMilli(w.ago(t, -20*time.Second))
	if _, err := w.room.sync(t.Context(), f, noVersion, 0); err != nil {
		t.Fatal(err)
	}
	w.join(t, "u", "claims")
	if p := w.stands(t, "u", Admitted); !p.TicketExpiresAt.Equal(f.ClosesAt) {
		t.Errorf("a ticket until %v, the lecture closes at %v", p.TicketExpiresAt, f.ClosesAt)
	}
	if at := w.room.rdb.ZScore(t.Context(), keysOf(1).tickets, "u").Val(); int64(at) != f.ClosesAt.UnixMilli() {
		t.Errorf("the ticket itself lasts until %.0f, the lecture closes at %d", at, f.ClosesAt.UnixMilli())
	}
	c := w.claim(t, "claims", attemptA, lecture.ClaimOK)
	f.Version, f.ClosesAt = 3, time.UnixMilli(w.ago(t, time.Second))
	if _, err := w.room.sync(t.Context(), f, noVersion, 0); err != nil {
		t.Fatal(err)
	}
	w.claim(t, "u", attemptB, lecture.ClaimClosed)
	a, err := w.room.admit(t.Context(), 1)
	if err != nil || a.held != 1 {
		t.Errorf("%d held after the closing, %v; want the claim made before", a.held, err)
	}
	w.stands(t, "u", Expired)
	w.settle(t, lecture.Seats{Version: 4, Remaining: 1}, c, lecture.In)
	w.stands(t, "claims", Enrolled)
}

func TestOverbooking(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.join(t, names("u", 10)...)
	f := facts(2, 3)
	f.Settings.OverbookPercent = 150
	if _, err := w.room.sync(t.Context(), f, noVersion, 0); err != nil {
		t.Fatal(err)
	}
	w.room.admitNow(t.Context(), 1)
	p := w.stands(t, "u3", Admitted)
	if p.Line.Held != 4 || p.Line.State != AllHeld {
		t.Errorf("%d held for 3 seats at 150 percent, %s", p.Line.Held, p.Line.State)
	}
	c := w.claim(t, "u3", attemptA, lecture.ClaimOK)
	w.settle(t, lecture.Seats{Version: 3, Remaining: 0}, c, lecture.Full)
	if p := w.stands(t, "u3", Waiting); *p.Position != 1 {
		t.Errorf("sold out, and back at %d", *p.Position)
	}
}

// Rule 3: an enrolment that came to nothing near the ticket's end leaves time
// to try again.
func TestFailedNearTheDeadline(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	f := facts(2, 1)
	f.Settings.TicketTTLSeconds = 1
	if _, err := w.room.sync(t.Context(), f, noVersion, 0); err != nil {
		t.Fatal(err)
	}
	w.join(t, "u")
	c := w.claim(t, "u", attemptA, lecture.ClaimOK)
	w.settle(t, lecture.Seats{Remaining: -1}, c, lecture.Back)
	p := w.stands(t, "u", Admitted)
	if left := p.TicketExpiresAt.Sub(p.Line.ServerTime); left < 5*time.Second {
		t.Errorf("%v left after a failure, want 10 s", left)
	}
}

// Section 4: a place of an earlier line comes back, but not to who has let
// another one run out in this line.
func TestPlacesOfAnEarlierLine(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.set(t, "epoch", 3)
	now := float64(w.ago(t, time.Minute))
	if err := w.room.rdb.ZAdd(t.Context(), keysOf(1).expired, redis.Z{Score: now, Member: "late"}).Err(); err != nil {
		t.Fatal(err)
	}
	const earlier, same = 2_000_000_007, 3_000_000_007
	for _, c := range []struct {
		user     string
		restored int64
		restores bool
	}{{"u", earlier, true}, {"late", earlier, false}, {"v", same, false}} {
		answer, err := w.room.call(t.Context(), w.room.scripts.join, 1, c.user, c.restored)
		if err != nil || answer.text(0) != "WAITING" || (answer.int64(1) == c.restored) != c.restores {
			t.Errorf("%s joins with %d: %v, %v; restored: want %v", c.user, c.restored, answer, err, c.restores)
		}
	}
}
