package registrar_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"seatline/internal/registrar"
)

// model is what a lecture ought to be.
type model struct {
	id       int
	capacity int
	version  int64
	last     int            // number
	active   map[string]int // user → number
	history  int            // cancelled rows
}

// Random enrolments, alone and in crowds, cancellations and changes of
// capacity, on two processes, against a model of a few lines; after every step
// the invariants hold and everybody stands where the model says.
func TestRandomHistories(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		line := newLine(t)
		desks := []*desk{newDeskAt(t, b, registrar.Options{}, line), newDeskAt(t, b, registrar.Options{}, line)}
		users := people(6)
		rapid.Check(t, func(t *rapid.T) {
			capacity := rapid.IntRange(0, 4).Draw(t, "capacity")
			m := &model{id: desks[0].lecture(capacity), capacity: capacity, version: 1, active: make(map[string]int)}
			user := rapid.SampledFrom(users)
			at := rapid.SampledFrom(desks)
			t.Repeat(map[string]func(*rapid.T){
				"enroll": func(t *rapid.T) {
					m.enroll(t, at.Draw(t, "desk"), user.Draw(t, "user"))
				},
				"crowd": func(t *rapid.T) {
					m.crowd(t, desks, rapid.SliceOfN(user, 2, 8).Draw(t, "users"))
				},
				"cancel": func(t *rapid.T) {
					m.cancel(t, at.Draw(t, "desk"), user.Draw(t, "user"))
				},
				"capacity": func(t *rapid.T) {
					m.resize(t, at.Draw(t, "desk"), rapid.IntRange(0, 6).Draw(t, "capacity"))
				},
				"": func(t *rapid.T) { m.check(t, desks[0]) },
			})
		})
	})
}

func (m *model) enroll(t *rapid.T, d *desk, user string) {
	d.line.admit(m.id, user)
	got, err := d.Enroll(context.Background(), m.id, user)
	if err != nil {
		t.Fatal(err)
	}
	number, had := m.active[user]
	want := registrar.Enrolled
	switch {
	case had:
		want = registrar.AlreadyEnrolled
	case len(m.active) == m.capacity:
		want = registrar.SoldOut
	default:
		m.last++
		m.version++
		number = m.last
		m.active[user] = number
	}
	if got.Status != want {
		t.Fatalf("%q: %v, want %v", user, got.Status, want)
	}
	if got.Receipt != nil && got.Receipt.Number != number {
		t.Fatalf("%q has number %d, want %d", user, got.Receipt.Number, number)
	}
}

// crowd enrols several at once, some of them twice: the order is theirs, the
// numbers of seats and receipts are not.
func (m *model) crowd(t *rapid.T, desks []*desk, users []string) {
	d := desks[0]
	d.line.admit(m.id, users...)
	results := enrollAll(m.id, users, desks...)
	seen := make(map[string]int)
	for _, r := range results {
		if r.err != nil {
			t.Fatal(r.err)
		}
		if r.Receipt == nil {
			continue
		}
		if number, ok := seen[r.user]; ok && number != r.Receipt.Number {
			t.Fatalf("%q has the numbers %d and %d", r.user, number, r.Receipt.Number)
		}
		seen[r.user] = r.Receipt.Number
	}
	for user, number := range seen {
		if had, ok := m.active[user]; ok && had != number {
			t.Fatalf("%q had number %d and now has %d", user, had, number)
		}
		m.active[user] = number
		m.last = max(m.last, number)
	}
	waiting := slices.ContainsFunc(users, func(u string) bool { _, ok := m.active[u]; return !ok })
	if waiting && len(m.active) < m.capacity {
		t.Fatalf("%d of %d seats are taken, and somebody was refused", len(m.active), m.capacity)
	}
	l, err := d.Lecture(context.Background(), m.id)
	if err != nil {
		t.Fatal(err)
	}
	m.version = l.SeatVersion // one for each batch that seated somebody
}

func (m *model) cancel(t *rapid.T, d *desk, user string) {
	row, err := d.Cancel(context.Background(), m.id, user)
	if err != nil {
		t.Fatal(err)
	}
	number, had := m.active[user]
	if had != (row != nil) || had && row.Number != number {
		t.Fatalf("%q cancelled %v, had number %d (%v)", user, row, number, had)
	}
	if had {
		delete(m.active, user)
		m.history++
		m.version++
	}
}

func (m *model) resize(t *rapid.T, d *desk, capacity int) {
	_, err := d.Update(context.Background(), m.id, registrar.LectureChange{Capacity: registrar.Some(capacity)})
	var invalid *registrar.InvalidError
	if refused := errors.As(err, &invalid); refused != (capacity < len(m.active)) {
		t.Fatalf("capacity %d with %d enrolled: %v", capacity, len(m.active), err)
	} else if !refused {
		if err != nil {
			t.Fatal(err)
		}
		m.capacity = capacity
		m.version++
	}
}

func (m *model) check(t *rapid.T, d *desk) {
	ctx := context.Background()
	rows := d.audit(m.id)
	got := make(map[string]int)
	for _, row := range rows {
		got[row.UserKey] = row.Number
	}
	if fmt.Sprint(got) != fmt.Sprint(m.active) {
		t.Fatalf("active rows %v, want %v", got, m.active)
	}
	facts, err := d.Facts(ctx, []int{m.id})
	if err != nil {
		t.Fatal(err)
	}
	f := facts[0]
	if f.Capacity != m.capacity || f.Remaining != m.capacity-len(m.active) || f.Version != m.version {
		t.Fatalf("facts %+v, want %+v", f, m)
	}
	all, err := d.CountRoster(ctx, m.id, registrar.RosterFilter{IncludeCancelled: true})
	if err != nil || all != len(m.active)+m.history {
		t.Fatalf("%d rows in all, %v; want %d active and %d cancelled", all, err, len(m.active), m.history)
	}
	if d.line.inFlight() != 0 {
		t.Fatal("a claim was left over")
	}
}
