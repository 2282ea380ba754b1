package registrar_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"seatline/internal/lecture"
	"seatline/internal/registrar"
)

// Another process has the person's claim: its end decides.
func TestAClaimElsewhere(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(3)

		// It ends with a row.
		other := newDeskAt(t, b, registrar.Options{}, newLine(t))
		release := d.line.hold(id, "kim")
		asked := make(chan struct{}, 100)
		d.line.onClaim = func(string) error { asked <- struct{}{}; return nil }
		got := make(chan result, 1)
		go func() {
			outcome, err := d.Enroll(context.Background(), id, "kim")
			got <- result{"kim", outcome, err}
		}()
		<-asked
		other.line.admit(id, "kim")
		receipt := other.enroll(id, "kim", registrar.Enrolled)
		release(lecture.In)
		if r := <-got; r.err != nil || r.Status != registrar.AlreadyEnrolled || r.Receipt.ID != receipt.ID {
			t.Errorf("after the other's row: %+v", r)
		}

		// It gives the ticket back.
		release = d.line.hold(id, "lee")
		go func() {
			outcome, err := d.Enroll(context.Background(), id, "lee")
			got <- result{"lee", outcome, err}
		}()
		<-asked
		release(lecture.Back)
		if r := <-got; r.err != nil || r.Status != registrar.Enrolled {
			t.Errorf("after the other gave up: %+v", r)
		}

		// It does not end.
		d.line.hold(id, "park")
		start := time.Now()
		d.unavailable(id, "park")
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("gave up after %v", took)
		}
		d.audit(id)
	})
}

// A row is proof enough while a claim is in the way: a lost settlement does not
// make its person wait for the reconciler.
func TestASettlementLost(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(1)
		for name, fault := range map[string]func() error{
			"refused":  func() error { return fmt.Errorf("lost: %w", lecture.ErrUnavailable) },
			"panicked": func() error { panic("the line broke") },
		} {
			t.Run(name, func(t *testing.T) {
				id = d.lecture(1)
				d.line.onSettle = fault
				d.line.admit(id, "kim", "lee")
				receipt := d.enroll(id, "kim", registrar.Enrolled)
				d.enroll(id, "lee", registrar.SoldOut)
				if again := d.enroll(id, "kim", registrar.AlreadyEnrolled); again.ID != receipt.ID {
					t.Errorf("receipts %v and %v", receipt, again)
				}
				d.audit(id)
			})
		}
	})
}

func TestTheLineFails(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(1)
		d.line.admit(id, "kim")
		for _, c := range []struct {
			name        string
			fault       func(string) error
			unavailable bool
		}{
			{"unavailable", func(string) error { return fmt.Errorf("claim: %w", lecture.ErrUnavailable) }, true},
			{"too slow", func(string) error { return context.DeadlineExceeded }, true},
			{"broken", func(string) error { return errors.New("broken") }, false},
			{"panics", func(string) error { panic("broken") }, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				d.line.onClaim = c.fault
				_, err := d.Enroll(t.Context(), id, "kim")
				if err == nil || errors.Is(err, lecture.ErrUnavailable) != c.unavailable {
					t.Errorf("Enroll: %v", err)
				}
			})
		}
		d.line.onClaim = nil
		d.enroll(id, "kim", registrar.Enrolled)
	})
}

// A caller that leaves, and one that has waited long enough, change nothing for
// the batch.
func TestCallersLeave(t *testing.T) {
	d := newDesk(t, postgres(t), registrar.Options{Patience: 50 * time.Millisecond})
	id := d.lecture(2)
	d.line.admit(id, "kim", "lee")
	psql := lockRow(t, d.db, id)
	d.unavailable(id, "kim")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Enroll(ctx, id, "lee"); !errors.Is(err, context.Canceled) {
		t.Errorf("Enroll: %v", err)
	}
	if err := psql.Rollback(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are enrolled", func() bool {
		l, err := d.Lecture(context.Background(), id)
		return err == nil && l.EnrolledCount == 2 && d.line.inFlight() == 0
	})
	d.audit(id)
	eventually(t, "the receipt is there", func() bool {
		got, err := d.Enroll(context.Background(), id, "kim")
		return err == nil && got.Status == registrar.AlreadyEnrolled
	})
}

// The queue has an end, and a refusal costs no ticket. Other lectures have
// queues of their own.
func TestAFullQueue(t *testing.T) {
	b := sqlite(t)
	d := newDesk(t, b, registrar.Options{})
	const room = 4000
	full, other := d.lecture(1), d.lecture(1)
	users := people(room + 1)
	claiming := make(chan struct{}, room)
	open := make(chan struct{})
	d.line.onClaim = func(user string) error {
		switch user {
		case "elsewhere":
			return nil
		case users[room]:
			t.Error("somebody for whom there was no room claimed a ticket")
		}
		claiming <- struct{}{}
		<-open
		return fmt.Errorf("closed: %w", lecture.ErrUnavailable)
	}
	var callers sync.WaitGroup
	for _, user := range users[:room] {
		callers.Go(func() { d.unavailable(full, user) })
	}
	for range room {
		<-claiming
	}
	d.line.admit(full, users[room])
	d.unavailable(full, users[room])
	if !d.line.ticket(full, users[room]) {
		t.Error("the refusal cost a ticket")
	}
	if len(claiming) > 0 {
		t.Error("the line was asked before there was room")
	}
	d.line.admit(other, "elsewhere")
	d.enroll(other, "elsewhere", registrar.Enrolled)
	close(open)
	callers.Wait()
	d.line.onClaim = nil
	d.enroll(full, users[room], registrar.Enrolled)
}

// Who asks again while their enrolment is in flight here shares it: the line is
// asked once, though the callers have long gone.
func TestAnAttemptIsShared(t *testing.T) {
	d := newDesk(t, sqlite(t), registrar.Options{})
	id := d.lecture(1)
	d.line.admit(id, "kim")
	claiming, open := make(chan struct{}, 100), make(chan struct{})
	d.line.onClaim = func(string) error {
		claiming <- struct{}{}
		<-open
		return nil
	}
	var first sync.WaitGroup
	first.Go(func() { d.enroll(id, "kim", registrar.Enrolled) })
	<-claiming
	gone, leave := context.WithCancel(context.Background())
	leave()
	for range 10 {
		if _, err := d.Enroll(gone, id, "kim"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has gone: %v", err)
		}
	}
	close(open)
	first.Wait()
	if n := len(claiming); n > 0 {
		t.Errorf("the line was asked %d times more", n)
	}
	d.audit(id)
}

// Run's end takes nothing new and waits for what is in flight.
func TestStop(t *testing.T) {
	d := newDesk(t, postgres(t), registrar.Options{})
	id := d.lecture(2)
	d.line.admit(id, "kim", "lee")
	psql := lockRow(t, d.db, id)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	var kim sync.WaitGroup
	kim.Go(func() { d.enroll(id, "kim", registrar.Enrolled) })
	eventually(t, "the batch waits for the lock", func() bool { return waitsForLock(t, d.db) })
	stop()
	eventually(t, "nothing new is taken", func() bool {
		_, err := d.Enroll(context.Background(), id, "somebody")
		return errors.Is(err, lecture.ErrUnavailable)
	})
	d.unavailable(id, "lee")
	if !d.line.ticket(id, "lee") {
		t.Error("a refusal at the stop cost a ticket")
	}
	select {
	case err := <-ended:
		t.Fatalf("Run ended with an enrolment in flight: %v", err)
	default:
	}
	if err := psql.Rollback(); err != nil {
		t.Fatal(err)
	}
	kim.Wait()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if rows := d.audit(id); len(rows) != 1 || d.line.inFlight() != 0 {
		t.Errorf("%d rows, %d claims", len(rows), d.line.inFlight())
	}
}

// What does not end in time is cut short, and Run ends all the same.
func TestStopUnderALock(t *testing.T) {
	d := newDesk(t, postgres(t, "lock_timeout=0", "statement_timeout=0"), registrar.Options{})
	id := d.lecture(1)
	d.line.admit(id, "kim")
	lockRow(t, d.db, id)
	ctx, stop := context.WithCancel(t.Context())
	var kim sync.WaitGroup
	kim.Go(func() { d.unavailable(id, "kim") })
	eventually(t, "the batch waits for the lock", func() bool { return waitsForLock(t, d.db) })
	stop()
	if err := d.Run(ctx); err == nil {
		t.Error("Run does not tell that it cut an enrolment short")
	}
	kim.Wait()
	if !d.line.ticket(id, "kim") {
		t.Error("the ticket did not come back")
	}
}

// A second call of the same person shares the first one's attempt: it asks the
// line for nothing, and gets the outcome.
func TestASecondCallSharesTheAttempt(t *testing.T) {
	d := newDesk(t, sqlite(t), registrar.Options{})
	id := d.lecture(1)
	d.line.admit(id, "kim")
	claims := make(chan struct{}, 100)
	open := make(chan struct{})
	d.line.onClaim = func(string) error {
		claims <- struct{}{}
		<-open
		return nil
	}
	var first, last sync.WaitGroup
	first.Go(func() { d.enroll(id, "kim", registrar.Enrolled) })
	<-claims
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := d.Enroll(ctx, id, "kim"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Enroll: %v", err)
		}
		cancel()
	}
	shared := make(chan registrar.Outcome, 1)
	ctx := &watched{Context: t.Context(), waiting: make(chan struct{})}
	last.Go(func() {
		outcome, err := d.Enroll(ctx, id, "kim")
		if err != nil {
			t.Error(err)
		}
		shared <- outcome
	})
	<-ctx.waiting
	close(open)
	first.Wait()
	last.Wait()
	if got := <-shared; got.Status != registrar.AlreadyEnrolled || got.Receipt == nil || got.Receipt.Number != 1 {
		t.Errorf("the shared outcome is %+v", got)
	}
	if n := len(claims); n != 0 {
		t.Errorf("%d more claims were sent", n)
	}
}

// watched is a context that tells when somebody begins to wait for its end.
type watched struct {
	context.Context
	once    sync.Once
	waiting chan struct{}
}

func (w *watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waiting) })
	return w.Context.Done()
}

// A settlement is lost, and the person cancels before the reconciler comes by:
// the claim was used, and is not a ticket that comes back to the canceller. A
// later attempt of the same person is another claim.
func TestCancelledBeforeTheReconcilerCame(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(3)
		d.line.admit(id, "kim", "lee")
		d.line.onSettle = func() error { return lecture.ErrUnavailable }
		receipt := d.enroll(id, "kim", registrar.Enrolled)
		d.line.onSettle = nil
		used := d.line.claimOf(id, "kim")
		if used.Attempt == "" {
			t.Fatal("the claim was settled")
		}
		if row, err := d.Cancel(t.Context(), id, "kim"); err != nil || row == nil || row.ID != receipt.ID {
			t.Fatalf("Cancel: %v, %v", row, err)
		}
		again, later, garbled := used, used, used
		again.Attempt, later.Until, garbled.Attempt = "00000000000000aa", used.Until+1, "-"
		_, got, err := d.Decide(t.Context(), id, []lecture.Claim{again, used, later, garbled})
		if err != nil || !slices.Equal(got, []lecture.Claim{used}) {
			t.Errorf("Decide: %+v, %v; used was %+v", got, err, used)
		}
		d.audit(id)
	})
}

// A receipt's id is a UUIDv7, as others may rely on.
func TestReceiptIDs(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(50)
		now := time.Date(2026, 11, 30, 10, 0, 0, 123e6, time.UTC)
		d.line.until = now.Add(lecture.ClaimLife).UnixMilli()
		users := people(50)
		d.line.admit(id, users...)
		enrollAll(id, users, d)
		seen := map[uuid.UUID]bool{}
		for _, row := range d.audit(id) {
			sec, nsec := row.ID.Time().UnixTime()
			if at := time.Unix(sec, nsec); row.ID.Version() != 7 || row.ID.Variant() != uuid.RFC4122 || at.Before(now) || at.After(now.Add(time.Second)) {
				t.Errorf("%v: version %d, %v, %v", row.ID, row.ID.Version(), row.ID.Variant(), at)
			}
			seen[row.ID] = true
		}
		if len(seen) != 50 {
			t.Errorf("%d ids of 50", len(seen))
		}
	})
}
