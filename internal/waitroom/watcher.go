package waitroom

import "time"

// watcher is one stream of one person's place. The hub's lock guards it.
type watcher struct {
	user string
	out  chan Place // one slot, latest wins; only the hub sends and closes

	read  bool  // st holds
	epoch int64 // of the line that st is from
	asOf  int64 // change number of the reading that st is from
	dirty bool  // st must be read again
	st    standing
	best  int // the best place shown so far in this line, 0 = none: a place never grows

	shown   Place
	shownAt time.Time
	touched time.Time // last sign of life written
	ended   bool

	token                *string // the proof of the place with this sequence in this line
	tokenSeq, tokenEpoch int64
}

const (
	nearHead   = 100 // up to here a place is sent whenever it changed
	farShare   = 0.05
	farRefresh = 15 * time.Second
)

// accept takes a reading of this person over unless a newer one is there.
func (w *watcher) accept(st standing, rd reading) {
	if w.read && (rd.epoch < w.epoch || rd.epoch == w.epoch && rd.chg < w.asOf) {
		return
	}
	if w.read && w.st.seq != st.seq {
		w.best = 0
	}
	w.read, w.st, w.epoch, w.asOf, w.dirty = true, st, rd.epoch, rd.chg, false
}

// due reports whether p is worth sending: only changes, farther back only
// those that matter, and each at most once a tick.
func (w *watcher) due(p Place, now time.Time) bool {
	if w.shownAt.IsZero() {
		return true
	}
	old := w.shown
	switch {
	case p.Status != old.Status || p.Line.State != old.Line.State || !same(p.Reason, old.Reason) ||
		!same(p.Line.Message, old.Line.Message) || !sameTime(p.TicketExpiresAt, old.TicketExpiresAt):
		return true
	case p.Status != Waiting:
		return now.Sub(w.shownAt) >= farRefresh && p.Line.Waiting != old.Line.Waiting
	}
	moved := *old.Position - *p.Position
	changed := moved != 0 || p.Approximate != old.Approximate || p.Line.Waiting != old.Line.Waiting ||
		!same(p.EstimatedWaitSeconds, old.EstimatedWaitSeconds) || !same(p.SeatChance, old.SeatChance)
	if *p.Position <= nearHead || now.Sub(w.shownAt) >= farRefresh {
		return changed
	}
	return moved < 0 || float64(moved) >= farShare*float64(*old.Position)
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// Over reports whether nothing will change for a person any more by itself. A
// ticket or an enrolment in flight at the closing still comes to an end.
func Over(status Status, line LineState) bool {
	return status == Enrolled || line == Closed && status != Admitted
}

// send puts p into the mailbox, in place of what was not taken yet.
func (w *watcher) send(p Place, now time.Time) {
	if w.ended {
		return
	}
	w.shown, w.shownAt = p, now
	put(w.out, p)
	if Over(p.Status, p.Line.State) {
		w.end()
	}
}

// end closes the stream; what is in the mailbox is still delivered.
func (w *watcher) end() {
	if !w.ended {
		w.ended = true
		close(w.out)
	}
}

// put replaces what is in a one-slot mailbox. There is one sender, so it never
// blocks.
func put[T any](mailbox chan T, v T) {
	select {
	case mailbox <- v:
		return
	default:
	}
	select {
	case <-mailbox:
	default:
	}
	mailbox <- v
}
