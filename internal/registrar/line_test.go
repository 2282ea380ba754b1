package registrar_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"seatline/internal/lecture"
)

// fakeLine is a line in memory that holds the registrar to the protocol: every
// claim is settled at most once, under its own identity, and a settlement that
// says "in" carries a reading of the seats. Faults are put in by its hooks.
type fakeLine struct {
	t testing.TB

	onClaim  func(user string) error // before a claim is taken
	onSettle func() error            // before a settlement is done

	mu       sync.Mutex
	until    int64
	tickets  map[seat]bool
	claims   map[seat]lecture.Claim
	enrolled map[seat]int64 // version of the settlement
	queued   map[seat]bool  // sent back to the line
	answers  map[seat]lecture.ClaimStatus
	changes  []change
	settles  int
	seats    map[int]lecture.Seats // the newest settled
}

type seat struct {
	lecture int
	user    string
}

type change struct {
	facts     lecture.Facts
	cancelled []string
}

func newLine(t testing.TB) *fakeLine {
	return &fakeLine{
		t:        t,
		until:    time.Now().Add(lecture.ClaimLife).UnixMilli(),
		tickets:  make(map[seat]bool),
		claims:   make(map[seat]lecture.Claim),
		enrolled: make(map[seat]int64),
		queued:   make(map[seat]bool),
		answers:  make(map[seat]lecture.ClaimStatus),
		seats:    make(map[int]lecture.Seats),
	}
}

// admit gives people tickets.
func (l *fakeLine) admit(id int, users ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, user := range users {
		l.tickets[seat{id, user}] = true
		delete(l.queued, seat{id, user})
	}
}

// answer makes claims of a person without a ticket end like this.
func (l *fakeLine) answer(id int, user string, status lecture.ClaimStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[seat{id, user}] = status
}

// hold puts a claim of another process in the way; release settles it.
func (l *fakeLine) hold(id int, user string) (release func(lecture.Verdict)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := seat{id, user}
	l.claims[s] = lecture.Claim{User: user, Attempt: "another process"}
	return func(v lecture.Verdict) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.claims, s)
		if v == lecture.Back {
			l.tickets[s] = true
		}
	}
}

func (l *fakeLine) Claim(ctx context.Context, id int, user, attempt string) (lecture.Claim, error) {
	if l.onClaim != nil {
		if err := l.onClaim(user); err != nil {
			return lecture.Claim{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return lecture.Claim{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(attempt) != 16 {
		l.t.Errorf("attempt %q is not 16 digits", attempt)
	}
	s := seat{id, user}
	if c, ok := l.claims[s]; ok {
		if c.Attempt == attempt {
			l.t.Errorf("attempt %q was used twice", attempt)
		}
		return lecture.Claim{Status: lecture.ClaimBusy, User: user, Until: c.Until}, nil
	}
	if !l.tickets[s] {
		return lecture.Claim{Status: l.answers[s], User: user}, nil
	}
	delete(l.tickets, s)
	l.until++
	c := lecture.Claim{Status: lecture.ClaimOK, User: user, Attempt: attempt, Until: l.until}
	l.claims[s] = c
	return c, nil
}

func (l *fakeLine) Settle(ctx context.Context, id int, seats lecture.Seats, ends []lecture.Settlement) error {
	if l.onSettle != nil {
		if err := l.onSettle(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settles++
	for _, end := range ends {
		if err := l.settle(id, seats, end); err != nil {
			l.t.Error(err)
		}
	}
	if seats.Version > l.seats[id].Version {
		l.seats[id] = seats
	}
	return nil
}

func (l *fakeLine) settle(id int, seats lecture.Seats, end lecture.Settlement) error {
	s := seat{id, end.User}
	c, ok := l.claims[s]
	if !ok || c.Attempt != end.Attempt || c.Until != end.Until {
		return fmt.Errorf("settlement %+v fits no claim; there is %+v", end, c)
	}
	delete(l.claims, s)
	switch end.Verdict {
	case lecture.In:
		if seats.Version == 0 || seats.Remaining < 0 {
			return fmt.Errorf("settlement %+v says in, with the seats %+v", end, seats)
		}
		l.enrolled[s] = seats.Version
	case lecture.Back:
		l.tickets[s] = true
	case lecture.Full:
		l.queued[s] = true
	default:
		return fmt.Errorf("settlement %+v has no verdict", end)
	}
	return nil
}

func (l *fakeLine) Changed(ctx context.Context, f lecture.Facts, cancelled ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, change{f, cancelled})
	for _, user := range cancelled {
		delete(l.enrolled, seat{f.ID, user})
	}
	return nil
}

// claims are such as a reconciler may ask about, of attempts that led to no row.
func claims(users ...string) []lecture.Claim {
	all := make([]lecture.Claim, len(users))
	for i, user := range users {
		all[i] = lecture.Claim{User: user, Attempt: fmt.Sprintf("%016x", i), Until: 1}
	}
	return all
}

// claimOf is the person's claim in flight.
func (l *fakeLine) claimOf(id int, user string) lecture.Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.claims[seat{id, user}]
	return lecture.Claim{User: c.User, Attempt: c.Attempt, Until: c.Until}
}

// lastChange is the newest change that the line was told of.
func (l *fakeLine) lastChange() change {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.changes) == 0 {
		l.t.Fatal("the line was told of no change")
	}
	return l.changes[len(l.changes)-1]
}

// ticket tells whether the person holds one.
func (l *fakeLine) ticket(id int, user string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tickets[seat{id, user}]
}

// backInLine tells whether the person found no seat.
func (l *fakeLine) backInLine(id int, user string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued[seat{id, user}]
}

// inFlight is the number of claims that nobody has settled.
func (l *fakeLine) inFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.claims)
}
