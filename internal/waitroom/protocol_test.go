package waitroom_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

// The tests that the protocol's model asks for (protocol.md section 5), each of
// which fails without its rule. They run side by side: most of them wait.

func realStores(t *testing.T) stores {
	t.Helper()
	t.Parallel()
	return stores{rdb: redisAt(t, testenv.Redis(t))}.withPostgres(t)
}

// behind puts a proxy between the instance and its database.
func behind(t *testing.T, s stores, dsn string) (stores, *testenv.Proxy) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testenv.NewProxy(t, u.Host)
	u.Host = proxy.Addr
	return s.withPostgresAt(t, u.String()), proxy
}

// 1: the answer to COMMIT is lost and COMMIT itself arrives 3 s late.
func TestCommitLateAndItsAnswerLost(t *testing.T) {
	t.Parallel()
	dsn := testenv.Postgres(t)
	direct := stores{rdb: redisAt(t, testenv.Redis(t))}.withPostgresAt(t, dsn)
	s, proxy := behind(t, direct, dsn)
	in := s.start(t, waitroom.Options{})
	id := in.newLecture(t, 1, nil)
	in.join(t, id, "first", "second")
	in.awaitStatus(t, id, "first", waitroom.Admitted, 5*time.Second)
	var once atomic.Bool
	proxy.Intercept(func(c *testenv.Chunk) testenv.Verdict {
		if !c.ToServer || !strings.Contains(strings.ToLower(string(c.Data)), "commit") || !once.CompareAndSwap(false, true) {
			return testenv.Pass
		}
		c.HangUp()
		<-time.After(3 * time.Second)
		return testenv.Pass
	})
	got, err := in.Enroll(t.Context(), id, "first")
	if err != nil && !errors.Is(err, lecture.ErrUnavailable) {
		t.Fatal(err)
	}
	if err == nil && got.Status != registrar.Enrolled {
		t.Errorf("enrols: %s", got.Status)
	}
	if !once.Load() {
		t.Fatal("no COMMIT was seen: the test tests nothing")
	}
	// Whoever asks again finds the one row, and never "ticket expired".
	testenv.Eventually(t, 25*time.Second, func() bool {
		got, err := in.Enroll(t.Context(), id, "first")
		if err != nil {
			return false
		}
		if got.Status != registrar.Enrolled && got.Status != registrar.AlreadyEnrolled {
			t.Fatalf("asks again: %s", got.Status)
		}
		return true
	}, "the enrolment never comes clear")
	if n := len(s.rows(t, id)); n != 1 {
		t.Errorf("%d rows", n)
	}
	s.invariants(t, id)
}

func (s stores) rows(t testing.TB, id int) []string {
	t.Helper()
	var users []string
	for _, l := range s.client.Enrollment.Query().AllX(t.Context()) {
		if l.LectureID == id && l.CancelledAt == nil {
			users = append(users, l.UserKey)
		}
	}
	return users
}

// 2: somebody holds the row lock for 20 s. Nobody is inserted late; the ticket
// comes back, with its deadline.
func TestRowLockHeld(t *testing.T) {
	s := realStores(t)
	in := s.start(t, waitroom.Options{})
	id := in.newLecture(t, 1, nil)
	in.join(t, id, "first")
	before := in.awaitStatus(t, id, "first", waitroom.Admitted, 5*time.Second)

	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM lectures WHERE id = $1 FOR UPDATE", id); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err = in.Enroll(t.Context(), id, "first")
	if !errors.Is(err, lecture.ErrUnavailable) {
		t.Fatalf("enrols under a held lock: %v", err)
	}
	if waited := time.Since(begun); waited > 10*time.Second {
		t.Errorf("the caller waited %v, want at most 8 s", waited)
	}
	if n := len(s.rows(t, id)); n != 0 {
		t.Errorf("%d rows while the lock is held", n)
	}
	<-time.After(time.Until(begun.Add(20 * time.Second)))
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 15*time.Second, func() bool { return len(s.line(t, id).claims) == 0 }, "the claim is never decided")
	if n := len(s.rows(t, id)); n != 0 {
		t.Errorf("%d rows inserted late", n)
	}
	after := in.place(t, id, "first")
	if after.Status != waitroom.Admitted || !after.TicketExpiresAt.Equal(*before.TicketExpiresAt) {
		t.Errorf("afterwards %s until %v, want the ticket until %v", after.Status, after.TicketExpiresAt, before.TicketExpiresAt)
	}
	in.enroll(t, id, "first", registrar.Enrolled)
	s.invariants(t, id)
}

// 3: a transaction commits between the reconciler's two readings. No second
// ticket comes of it.
func TestReconcilerBetweenItsReadings(t *testing.T) {
	s := realStores(t)
	writer := s.start(t, waitroom.Options{Tick: time.Hour})
	id := writer.newLecture(t, 1, nil)
	writer.join(t, id, "first", "second")
	if p := writer.place(t, id, "first"); p.Status != waitroom.Admitted {
		t.Fatalf("first reads %s", p.Status)
	}

	seats := registrar.Open(s.client, registrar.Options{})
	var once sync.Once
	asked := &delayedSeats{Seats: seats, afterFacts: func(ids []int) {
		if slices.Contains(ids, id) {
			once.Do(func() { writer.enroll(t, id, "first", registrar.Enrolled) })
		}
	}}
	s.startWith(t, waitroom.Options{}, seats, asked)
	testenv.Eventually(t, 10*time.Second, func() bool { return len(s.rows(t, id)) == 1 }, "nothing was enrolled between the readings")
	for range 40 { // two rounds of the reconciler
		if p := writer.place(t, id, "second"); p.Status != waitroom.Waiting {
			t.Fatalf("second reads %s with no seat free", p.Status)
		}
		<-time.After(100 * time.Millisecond)
	}
	s.invariants(t, id)
}

// 4: an enrolled person joins from a second tab.
func TestEnrolledJoinsAgain(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 2, nil)
		in.join(t, id, "first")
		in.awaitStatus(t, id, "first", waitroom.Admitted, 5*time.Second)
		in.enroll(t, id, "first", registrar.Enrolled)
		p, err := in.room.Join(t.Context(), id, "first", "")
		if err != nil || p.Status != waitroom.Enrolled {
			t.Errorf("second tab: %s, %v", p.Status, err)
		}
		state := s.line(t, id)
		if n := len(state.queue) + len(state.tickets) + len(state.claims) + len(state.parked); n != 0 {
			t.Errorf("the second tab takes a place: %+v", state)
		}
		s.invariants(t, id)
	})
}

// 5: capacity changed by SQL, and a database that went back in time.
func TestSeatsChangedBehindOurBack(t *testing.T) {
	s := realStores(t)
	in := s.start(t, waitroom.Options{})
	id := in.newLecture(t, 0, nil)
	in.join(t, id, people(3)...)
	exec := func(sql string) {
		t.Helper()
		if _, err := s.db.ExecContext(t.Context(), sql, id); err != nil {
			t.Fatal(err)
		}
	}
	exec("UPDATE lectures SET capacity = 1 WHERE id = $1")
	in.awaitStatus(t, id, "student-1", waitroom.Admitted, 6*time.Second)
	for range 5 { // so that there is something to go back from
		if _, err := in.Update(t.Context(), id, registrar.LectureChange{Title: registrar.Some("Another title")}); err != nil {
			t.Fatal(err)
		}
	}
	exec("UPDATE lectures SET capacity = 3, seat_version = seat_version - 5 WHERE id = $1")
	in.awaitStatus(t, id, "student-3", waitroom.Admitted, 6*time.Second)
	testenv.Eventually(t, 6*time.Second, func() bool { return s.line(t, id).hash["remaining"] == "3" }, "remaining is never right")
}

// 6: a claim is repeated by something on the way, long after.
func TestClaimRepeatedLate(t *testing.T) {
	s := realStores(t)
	in := s.start(t, waitroom.Options{})
	id := in.newLecture(t, 1, nil)
	in.join(t, id, "first")
	in.awaitStatus(t, id, "first", waitroom.Admitted, 5*time.Second)
	const attempt = "00000000000000aa"
	claim, err := in.room.Claim(t.Context(), id, "first", attempt)
	if err != nil || claim.Status != lecture.ClaimOK {
		t.Fatalf("claims: %+v, %v", claim, err)
	}
	end := lecture.Settlement{User: "first", Attempt: attempt, Until: claim.Until, Verdict: lecture.Back}
	if err := in.room.Settle(t.Context(), id, lecture.Seats{Remaining: -1}, []lecture.Settlement{end}); err != nil {
		t.Fatal(err)
	}
	in.enroll(t, id, "first", registrar.Enrolled)
	if _, err := in.Cancel(t.Context(), id, "first"); err != nil {
		t.Fatal(err)
	}
	in.join(t, id, "first")
	in.awaitStatus(t, id, "first", waitroom.Admitted, 5*time.Second)

	again, err := in.room.Claim(t.Context(), id, "first", attempt)
	if err != nil || again.Status != lecture.ClaimOK || again.Until == claim.Until {
		t.Fatalf("the repeated claim: %+v, %v", again, err)
	}
	// The late end of the first life of that attempt changes nothing.
	end.Verdict = lecture.Full
	if err := in.room.Settle(t.Context(), id, lecture.Seats{Remaining: -1}, []lecture.Settlement{end}); err != nil {
		t.Fatal(err)
	}
	if claims := s.line(t, id).claims; len(claims) != 1 {
		t.Fatalf("claims %v, want the repeated one", claims)
	}
	// Nobody finishes it: the ticket comes back, and is good.
	testenv.Eventually(t, 25*time.Second, func() bool { return len(s.line(t, id).tickets) == 1 }, "the ticket is lost")
	in.enroll(t, id, "first", registrar.Enrolled)
	s.invariants(t, id)
}

// 7: the cache of active lectures loses a waiting line.
func TestActiveLecturesLost(t *testing.T) {
	s := realStores(t)
	in := s.start(t, waitroom.Options{})
	id := in.newLecture(t, 0, nil)
	in.join(t, id, "first")
	s.setCapacity(t, in, id, 0)
	if _, err := s.db.ExecContext(t.Context(), "UPDATE lectures SET capacity = 1 WHERE id = $1", id); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.SRem(t.Context(), "lectures:active", id).Err(); err != nil {
		t.Fatal(err)
	}
	// Looking at the raw keys: asking for the place would list the lecture.
	testenv.Eventually(t, 40*time.Second, func() bool { return len(s.line(t, id).tickets) == 1 }, "the line never moves again")
}

// 8: the database stops for longer than a ticket lasts. Nobody loses one.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	server := testenv.StartPostgres(t)
	s := stores{rdb: redisAt(t, testenv.Redis(t))}.withPostgresAt(t, server.URL)
	in := s.start(t, waitroom.Options{})
	id := in.newLecture(t, 1, func(n *registrar.NewLecture) { n.Settings.TicketTTLSeconds = registrar.Some(14) })
	in.join(t, id, "first", "second")
	in.awaitStatus(t, id, "first", waitroom.Admitted, 5*time.Second)
	w, err := in.room.Watch(t.Context(), id, "first")
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	away := time.After(25 * time.Second)
	for waiting := true; waiting; {
		select {
		case p, open := <-w:
			if !open || p.Status != waitroom.Admitted {
				t.Fatalf("while the database is away: %s, %v", p.Status, p.Reason)
			}
		case <-away:
			waiting = false
		}
	}
	if _, err := in.Enroll(t.Context(), id, "first"); !errors.Is(err, lecture.ErrUnavailable) {
		t.Errorf("enrols with the database away: %v", err)
	}
	server.Cont()
	testenv.Eventually(t, 20*time.Second, func() bool {
		p := in.place(t, id, "first")
		if p.Status != waitroom.Admitted {
			t.Fatalf("after the outage: %s", p.Status)
		}
		return p.TicketExpiresAt.After(p.Line.ServerTime.Add(15 * time.Second))
	}, "the outage is not made up for")
	testenv.Eventually(t, 20*time.Second, func() bool {
		got, err := in.Enroll(t.Context(), id, "first")
		return err == nil && got.Status == registrar.Enrolled
	}, "the ticket is of no use after the outage")
	s.invariants(t, id)
}

// 9: the only instance stands still for long. Nobody is parked for it.
func TestStandstill(t *testing.T) {
	s := realStores(t)
	const grace = 4 * time.Second
	in := s.start(t, waitroom.Options{PresenceGrace: grace})
	id := in.newLecture(t, 0, nil)
	in.join(t, id, people(5)...)
	in.stop()
	<-time.After(11 * time.Second) // longer than the gap that counts as a standstill

	in = s.start(t, waitroom.Options{PresenceGrace: grace})
	begun := time.Now()
	s.setCapacity(t, in, id, 3)
	testenv.Eventually(t, grace, func() bool {
		if parked := s.line(t, id).parked; len(parked) > 0 && time.Since(begun) < grace-time.Second {
			t.Fatalf("%v are parked %v after the standstill", parked, time.Since(begun))
		}
		return len(s.line(t, id).tickets) == 3
	}, "the line does not move after the standstill")
	if tickets := s.line(t, id).tickets; !slices.Contains(tickets, "student-1") {
		t.Errorf("tickets %v, want the first three", tickets)
	}
}

// 10 is TestAbsentHead.

// 11: many watch on one instance while another admits. They are told within
// two ticks, and that takes a handful of commands a tick.
func TestManyWatchers(t *testing.T) {
	s := realStores(t)
	admitting := s.start(t, waitroom.Options{})
	const watching, admitted, most = 50_000, 100, 5
	id := admitting.newLecture(t, 0, nil)
	users := people(watching)
	admitting.join(t, id, users[:admitted]...)
	inParts(users[admitted:], func(part []string) { admitting.join(t, id, part...) })

	// B only watches: its loops do not run, so that all it asks is its hub's.
	var asked counter
	rdb := redis.NewClient(s.rdb.(*redis.Client).Options())
	defer rdb.Close()
	const ticks = time.Second
	b := waitroom.New(rdb, registrar.Open(s.client, registrar.Options{}), waitroom.Options{Tick: ticks})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	streams := make(chan (<-chan waitroom.Place), admitted)
	inParts(users, func(part []string) {
		for _, user := range part {
			w, err := b.Watch(ctx, id, user)
			if err != nil {
				t.Errorf("%s watches: %v", user, err)
				return
			}
			if slices.Contains(users[:admitted], user) {
				streams <- w
			}
		}
	})
	if t.Failed() {
		return
	}
	rdb.AddHook(&asked)
	<-time.After(2 * ticks) // what is left to do for the newcomers
	asked.n.Store(0)
	begun := time.Now()
	<-time.After(10 * ticks)
	if rate := float64(asked.n.Load()) / (float64(time.Since(begun)) / float64(ticks)); rate > most {
		t.Errorf("%.1f commands a tick for one lecture with %d watchers, want at most %d", rate, watching, most)
	}

	begun = time.Now()
	s.setCapacity(t, admitting, id, admitted)
	deadline := time.After(20 * ticks)
	for range admitted {
		awaitAdmitted(t, <-streams, deadline)
	}
	told := time.Since(begun)
	t.Logf("%d of %d watchers, admitted elsewhere, were told within %v", admitted, watching, told.Round(time.Millisecond))
	if told > 5*ticks { // two ticks, on a machine that does other things too
		t.Errorf("told after %v", told)
	}
	leave()
	testenv.Eventually(t, 20*time.Second, func() bool { return b.Watchers() == 0 }, "watchers stay")
}

func awaitAdmitted(t testing.TB, w <-chan waitroom.Place, deadline <-chan time.Time) {
	t.Helper()
	for {
		select {
		case p, open := <-w:
			if !open {
				t.Fatal("a stream ended early")
			}
			if p.Status == waitroom.Admitted {
				return
			}
		case <-deadline:
			t.Fatal("somebody admitted elsewhere is never told")
		}
	}
}

// inParts works on people from 50 goroutines.
func inParts(users []string, work func([]string)) {
	var wg sync.WaitGroup
	for part := range slices.Chunk(users, max(1, len(users)/50)) {
		wg.Go(func() { work(part) })
	}
	wg.Wait()
}

// counter counts what is asked of Redis.
type counter struct{ n atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmds)
	}
}
