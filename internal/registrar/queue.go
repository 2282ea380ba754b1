package registrar

import (
	"context"
	"runtime/debug"
	"time"

	"seatline/internal/lecture"
)

const (
	maxBatch   = 500  // people in one transaction
	maxWaiting = 4000 // attempts of one lecture that are not over

	// cutOff is the age from which a claim is not used any more. It lives 15 s
	// by the line's clock; what is inserted before this age by ours, under the
	// lock, is committed or rolled back before anybody may conclude from the
	// claim's end.
	cutOff = 8 * time.Second
)

// queue is what waits at one lecture. There is one while the lecture has
// attempts that are not over.
type queue struct {
	room    int // attempts that are not over; at most maxWaiting
	waiting []*member
	working bool // a goroutine takes from it
}

// member is one claim on its way through a batch.
type member struct {
	claim lecture.Claim
	user  string
	since time.Time // before the claim was sent

	verdict lecture.Verdict // "" = not decided: the claim stays as it is
	outcome Outcome
	err     error
	settled chan struct{}
}

// old tells whether the member has passed the cut-off: by the monotonic clock
// or by the wall clock, whichever has gone farther. The one stands still while
// a machine sleeps, the other may be set back.
func (m *member) old(now time.Time) bool {
	return max(now.Sub(m.since), now.Round(0).Sub(m.since.Round(0))) > cutOff
}

func (m *member) in(o Outcome) { m.verdict, m.outcome, m.err = lecture.In, o, nil }

func (m *member) full() { m.verdict, m.outcome, m.err = lecture.Full, Outcome{Status: SoldOut}, nil }

func (m *member) back(err error) { m.verdict, m.outcome, m.err = lecture.Back, Outcome{}, err }

// gone is for a claim that was used for a row that is there no more.
func (m *member) gone(err error) { m.verdict, m.outcome, m.err = lecture.In, Outcome{}, err }

// undecided leaves the claim to the line's reconciler.
func (m *member) undecided(err error) { m.verdict, m.outcome, m.err = "", Outcome{}, err }

// push puts a claim in its lecture's queue and sees to it that somebody takes
// from it.
func (r *Registrar) push(id int, q *queue, m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.waiting = append(q.waiting, m)
	if !q.working {
		q.working = true
		r.inFlight.Go(func() { r.work(id, q) })
	}
}

// work commits what waits, batch after batch, until nothing does. A batch is
// settled while the next one is in its transaction.
func (r *Registrar) work(id int, q *queue) {
	for {
		batch := r.take(q)
		if batch == nil {
			return
		}
		seats := r.decide(id, batch)
		r.inFlight.Go(func() { r.settle(id, seats, batch) })
	}
}

// take takes the next batch; nil when nothing waits, and then the taker is let
// go.
func (r *Registrar) take(q *queue) []*member {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(q.waiting), maxBatch)
	if n == 0 {
		q.waiting, q.working = nil, false
		return nil
	}
	batch := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return batch
}

// settle tells the line how a batch ended and lets its callers go. A call that
// is lost changes no outcome: the line's reconciler finds the rows.
func (r *Registrar) settle(id int, seats lecture.Seats, batch []*member) {
	defer func() {
		if v := recover(); v != nil {
			r.logFailure("a settlement panicked", id, &panicError{value: v, stack: debug.Stack()})
		}
		for _, m := range batch {
			close(m.settled)
		}
	}()
	ends := make([]lecture.Settlement, 0, len(batch))
	for _, m := range batch {
		if m.verdict != "" {
			ends = append(ends, lecture.Settlement{
				User: m.user, Attempt: m.claim.Attempt, Until: m.claim.Until, Verdict: m.verdict,
			})
		}
	}
	if len(ends) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	if err := r.line.Settle(ctx, id, seats, ends); err != nil {
		r.log.Warn("claims were not settled; the line's reconciler will", "lecture", id, "claims", len(ends), "error", err)
	}
}
