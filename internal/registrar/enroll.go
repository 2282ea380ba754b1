package registrar

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"seatline/ent"
	"seatline/internal/lecture"
)

const (
	claimWithin  = 5 * time.Second // one call of Line.Claim
	busyWithin   = 5 * time.Second // another process's attempt of the same person
	settleWithin = 3 * time.Second // one call of Line.Settle
	tellWithin   = 1 * time.Second // one call of Line.Changed, which the reconciler makes up for
	drainWithin  = 6 * time.Second // enrolments in flight when Run's context ends
	haltWithin   = 1 * time.Second // the same, after they were told to stop

	busyStep    = 50 * time.Millisecond
	busyMaxStep = 500 * time.Millisecond
)

// Line is what the registrar asks of the waiting line; *waitroom.Room
// satisfies it.
type Line interface {
	// Claim turns the person's ticket into an enrolment in flight.
	Claim(ctx context.Context, id int, user, attempt string) (lecture.Claim, error)
	// Settle ends claims, and carries the seats of the reading that ended them.
	Settle(ctx context.Context, id int, s lecture.Seats, ends []lecture.Settlement) error
	// Changed tells that the lecture's row was written, and whose rows were
	// cancelled.
	Changed(ctx context.Context, f lecture.Facts, cancelled ...string) error
}

// EnrollStatus is how an Enroll ended; the values are the API's.
type EnrollStatus string

// The ways an Enroll ends.
const (
	Enrolled        EnrollStatus = "ENROLLED"
	AlreadyEnrolled EnrollStatus = "ALREADY_ENROLLED"
	NotAdmitted     EnrollStatus = "NOT_ADMITTED"
	TicketExpired   EnrollStatus = "TICKET_EXPIRED"
	SoldOut         EnrollStatus = "SOLD_OUT"
	Closed          EnrollStatus = "CLOSED"
)

// Outcome is what an Enroll came to. Receipt, with Edges.Lecture, is there
// with Enrolled and AlreadyEnrolled only.
type Outcome struct {
	Status  EnrollStatus
	Receipt *ent.Enrollment
}

// Registrar takes seats and gives them back. Its methods may be called at any
// time, whether or not Run has been.
type Registrar struct {
	*Seats
	line Line

	// Batches belong to no caller: they run on a context of their own, which
	// ends only when a stop has waited long enough.
	base context.Context // the root of what outlives its callers
	halt context.CancelFunc

	mu       sync.Mutex
	stopped  bool
	queues   map[int]*queue      // lectures with work
	attempts map[person]*attempt // enrolments running here
	inFlight sync.WaitGroup      // attempts, queues at work, settlements

	ended  map[EnrollStatus]uint64
	failed uint64
}

// person is somebody at one lecture.
type person struct {
	lecture int
	user    string
}

// attempt is one enrolment running here, which several callers may share.
type attempt struct {
	ended   chan struct{}
	outcome Outcome // these two once ended is closed
	err     error
}

// New makes a registrar over seats and the line that admits to them.
func New(seats *Seats, line Line) *Registrar {
	base, halt := context.WithCancel(context.Background())
	return &Registrar{
		Seats:    seats,
		line:     line,
		base:     base,
		halt:     halt,
		queues:   make(map[int]*queue),
		attempts: make(map[person]*attempt),
		ended:    make(map[EnrollStatus]uint64),
	}
}

// Run keeps the registrar until ctx is done, then takes no new enrolments and
// returns when those in flight have ended. Those that have not within seconds
// are cut short; their claims are then the line's reconciler's to settle.
func (r *Registrar) Run(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		r.inFlight.Wait()
		close(ended)
	}()
	defer r.halt()
	select {
	case <-ended:
		return nil
	case <-time.After(drainWithin):
	}
	r.halt()
	select {
	case <-ended:
	case <-time.After(haltWithin):
	}
	return errors.New("registrar: enrolments in flight were cut short")
}

// Enroll uses the person's ticket. It is idempotent: however often, at the same
// time or from wherever it is called, there is one row and one receipt.
//
// lecture.ErrUnavailable says that nothing was decided, or that the caller has
// waited long enough; asking again tells. lecture.ErrNotFound. A caller whose
// ctx ends leaves the enrolment running.
func (r *Registrar) Enroll(ctx context.Context, id int, user string) (Outcome, error) {
	if !validUserKey(user) {
		return Outcome{}, &InvalidError{Field: "userKey", Reason: "is not a valid user key"}
	}
	running, mine, err := r.join(person{id, user})
	if err != nil {
		return Outcome{}, err
	}
	patience := time.NewTimer(r.patience)
	defer patience.Stop()
	select {
	case <-running.ended:
	case <-ctx.Done():
		return Outcome{}, fmt.Errorf("enroll: %w", ctx.Err())
	case <-patience.C:
		return Outcome{}, fmt.Errorf("enroll: %w: no outcome within %v", lecture.ErrUnavailable, r.patience)
	}
	outcome := running.outcome
	if !mine && outcome.Status == Enrolled {
		outcome.Status = AlreadyEnrolled // one caller of all is told that it is new
	}
	return outcome, running.err
}

// join returns the person's running attempt, or starts one if the lecture's
// queue has room. Room is asked for before a ticket is touched, so that a
// refusal costs none.
func (r *Registrar) join(p person) (a *attempt, mine bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.attempts[p]; a != nil {
		return a, false, nil
	}
	if r.stopped {
		return nil, false, fmt.Errorf("enroll: %w: shutting down", lecture.ErrUnavailable)
	}
	q := r.queues[p.lecture]
	if q == nil {
		q = &queue{}
		r.queues[p.lecture] = q
	}
	if q.room == maxWaiting {
		return nil, false, fmt.Errorf("enroll: %w: %d are waiting already", lecture.ErrUnavailable, maxWaiting)
	}
	q.room++
	a = &attempt{ended: make(chan struct{})}
	r.attempts[p] = a
	r.inFlight.Go(func() { r.run(p, q, a) })
	return a, true, nil
}

// run takes an attempt to its end.
func (r *Registrar) run(p person, q *queue, a *attempt) {
	defer func() {
		if v := recover(); v != nil {
			a.err = fmt.Errorf("enroll: %w", &panicError{value: v, stack: debug.Stack()})
			r.logFailure("an enrolment panicked", p.lecture, a.err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.attempts, p)
		r.tally(a)
		q.room--
		if q.room == 0 {
			delete(r.queues, p.lecture)
		}
		close(a.ended)
	}()
	a.outcome, a.err = r.enroll(r.base, p, q)
}

// enroll claims the ticket and sees the claim through a batch.
func (r *Registrar) enroll(ctx context.Context, p person, q *queue) (Outcome, error) {
	deadline := time.Now().Add(busyWithin)
	for wait := busyStep; ; wait = min(2*wait, busyMaxStep) {
		since := r.clock()
		claim, err := r.claim(ctx, p)
		if err != nil {
			return Outcome{}, err
		}
		switch claim.Status {
		case lecture.ClaimOK:
			m := &member{claim: claim, user: p.user, since: since, settled: make(chan struct{})}
			r.push(p.lecture, q, m)
			<-m.settled
			return m.outcome, m.err
		case lecture.ClaimExpired:
			return r.withoutTicket(ctx, p, TicketExpired)
		case lecture.ClaimClosed:
			return r.withoutTicket(ctx, p, Closed)
		case lecture.ClaimNone:
			return r.withoutTicket(ctx, p, NotAdmitted)
		case lecture.ClaimBusy:
		default:
			return Outcome{}, fmt.Errorf("enroll: unknown answer %d to a claim", claim.Status)
		}
		// Another process has the person's claim. Its end may be known here
		// before the line hears of it.
		outcome, err := r.withoutTicket(ctx, p, "")
		if err != nil || outcome.Receipt != nil {
			return outcome, err
		}
		if time.Now().Add(wait).After(deadline) {
			return Outcome{}, fmt.Errorf("enroll: %w: another attempt is in flight", lecture.ErrUnavailable)
		}
		if err := sleep(ctx, wait); err != nil {
			return Outcome{}, fmt.Errorf("enroll: %w: %w", lecture.ErrUnavailable, err)
		}
	}
}

// claim asks the line for the person's ticket, under an identity that is used
// for this call alone.
func (r *Registrar) claim(ctx context.Context, p person) (lecture.Claim, error) {
	var random [8]byte
	rand.Read(random[:]) // never fails
	ctx, cancel := context.WithTimeout(ctx, claimWithin)
	defer cancel()
	claim, err := r.line.Claim(ctx, p.lecture, p.user, hex.EncodeToString(random[:]))
	switch {
	case err == nil:
		return claim, nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		// The bound was ours, not the caller's.
		return claim, fmt.Errorf("enroll: claim: %w: %w", lecture.ErrUnavailable, err)
	}
	return claim, fmt.Errorf("enroll: claim: %w", err)
}

// withoutTicket answers somebody whom the line gave no claim: a row wins over
// whatever the line says.
func (r *Registrar) withoutTicket(ctx context.Context, p person, status EnrollStatus) (Outcome, error) {
	row, _, err := r.Standing(ctx, p.lecture, p.user)
	switch {
	case err != nil && ctx.Err() != nil:
		return Outcome{}, fmt.Errorf("enroll: %w: %w", lecture.ErrUnavailable, err)
	case err != nil:
		return Outcome{}, fmt.Errorf("enroll: %w", err)
	case row != nil:
		return Outcome{Status: AlreadyEnrolled, Receipt: row}, nil
	}
	return Outcome{Status: status}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
