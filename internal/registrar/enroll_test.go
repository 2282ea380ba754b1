package registrar_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"seatline/internal/lecture"
	"seatline/internal/registrar"
)

func TestAnEnrolment(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(2)
		d.line.admit(id, "kim")

		receipt := d.enroll(id, "kim", registrar.Enrolled)
		if receipt.Number != 1 || receipt.UserKey != "kim" || receipt.LectureID != id || receipt.CancelledAt != nil {
			t.Errorf("receipt %v", receipt)
		}
		if l := receipt.Edges.Lecture; l == nil || l.EnrolledCount != 1 || l.SeatVersion != 2 {
			t.Errorf("the receipt's lecture is %v", l)
		}
		rows := d.audit(id)
		if len(rows) != 1 || rows[0].ID != receipt.ID || !rows[0].CreatedAt.Equal(receipt.CreatedAt) {
			t.Errorf("rows %v, receipt %v", rows, receipt)
		}
		if at := receipt.CreatedAt; at.Location() != time.UTC || at.Nanosecond()%1000 != 0 {
			t.Errorf("created at %v", at)
		}
		if got, want := d.line.seats[id], (lecture.Seats{Version: 2, Remaining: 1}); got != want {
			t.Errorf("the line was told the seats %+v, want %+v", got, want)
		}

		// Without a ticket the row is read before anybody is told no.
		if again := d.enroll(id, "kim", registrar.AlreadyEnrolled); again.ID != receipt.ID || again.Number != 1 {
			t.Errorf("the second receipt is %v", again)
		}
		// With one, too: it is used up, and no seat with it.
		d.line.admit(id, "kim")
		if again := d.enroll(id, "kim", registrar.AlreadyEnrolled); again.ID != receipt.ID || again.Edges.Lecture == nil {
			t.Errorf("the third receipt is %v", again)
		}
		if d.line.ticket(id, "kim") || d.line.inFlight() != 0 {
			t.Error("a ticket or claim was left over")
		}
		d.audit(id)
	})
}

func TestWithoutATicket(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(1)
		d.enroll(id, "none", registrar.NotAdmitted)
		d.line.answer(id, "late", lecture.ClaimExpired)
		d.enroll(id, "late", registrar.TicketExpired)
		d.line.answer(id, "closed", lecture.ClaimClosed)
		d.enroll(id, "closed", registrar.Closed)

		if _, err := d.Enroll(t.Context(), id+1, "kim"); !errors.Is(err, lecture.ErrNotFound) {
			t.Errorf("an unknown lecture: %v", err)
		}
		// A lecture that goes between claim and lock gives the ticket back.
		d.line.admit(id+1, "kim")
		if _, err := d.Enroll(t.Context(), id+1, "kim"); !errors.Is(err, lecture.ErrNotFound) {
			t.Errorf("a lecture that is gone: %v", err)
		}
		if !d.line.ticket(id+1, "kim") {
			t.Error("the ticket did not come back")
		}
		for _, key := range []string{"", "a\x00b", "tab\t", "\xff", string(make([]byte, 200))} {
			var invalid *registrar.InvalidError
			if _, err := d.Enroll(t.Context(), id, key); !errors.As(err, &invalid) {
				t.Errorf("Enroll(%q): %v", key, err)
			}
		}
	})
}

func TestKeysAreComparedByteForByte(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		keys := []string{
			"kim", "Kim", "kim ", "caf\u00e9", "cafe\u0301", "서울", "☕", "☕\ufe0f", `a"b\c`, "<&>", "%_", "123", "1.0", "null", "[]", "{}",
		}
		id := d.lecture(len(keys))
		d.line.admit(id, keys...)
		for _, key := range keys {
			if got := d.enroll(id, key, registrar.Enrolled); got.UserKey != key {
				t.Errorf("%q became %q", key, got.UserKey)
			}
		}
		for _, row := range d.audit(id) {
			if !slices.Contains(keys, row.UserKey) {
				t.Errorf("a row for %q", row.UserKey)
			}
			d.line.admit(id, row.UserKey)
			if again := d.enroll(id, row.UserKey, registrar.AlreadyEnrolled); again.ID != row.ID {
				t.Errorf("%q has the row %v, then %v", row.UserKey, row, again)
			}
		}
	})
}

// One hundred callers on three processes race for the seats, twenty times over.
func TestRace(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		line := newLine(t)
		desks := []*desk{
			newDeskAt(t, b, registrar.Options{}, line),
			newDeskAt(t, b, registrar.Options{}, line),
			newDeskAt(t, b, registrar.Options{}, line),
		}
		users := people(100)
		for range 20 {
			for _, seats := range []int{1, 50} {
				id := desks[0].lecture(seats)
				line.admit(id, users...)
				results := enrollAll(id, users, desks...)
				got := tally(results)
				if got[registrar.Enrolled] != seats || got[registrar.SoldOut] != 100-seats {
					t.Fatalf("%d seats: %v", seats, got)
				}
				rows := desks[0].audit(id)
				if len(rows) != seats || rows[len(rows)-1].Number != seats {
					t.Fatalf("%d seats: %d rows", seats, len(rows))
				}
				for _, r := range results {
					if (r.Status == registrar.SoldOut) != line.backInLine(id, r.user) {
						t.Fatalf("%q: %v, back in line: %v", r.user, r.Status, line.backInLine(id, r.user))
					}
				}
				if line.inFlight() != 0 {
					t.Fatal("claims were left over")
				}
			}
		}
	})
}

// Twenty clicks of one person, some of them elsewhere, are one enrolment.
func TestDoubleClicks(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		line := newLine(t)
		here, there := newDeskAt(t, b, registrar.Options{}, line), newDeskAt(t, b, registrar.Options{}, line)
		for range 10 {
			id := here.lecture(5)
			line.admit(id, "kim")
			results := enrollAll(id, slices.Repeat([]string{"kim"}, 20), here, there)
			got := tally(results)
			if got[registrar.Enrolled] != 1 || got[registrar.AlreadyEnrolled] != 19 {
				t.Fatalf("outcomes %v", got)
			}
			for _, r := range results {
				if r.Receipt.ID != results[0].Receipt.ID || r.Receipt.Number != 1 || r.Receipt.Edges.Lecture == nil {
					t.Fatalf("receipts differ: %v, %v", r.Receipt, results[0].Receipt)
				}
			}
			here.audit(id)
		}
	})
}

func TestASeatGivenBack(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(1)
		if row, err := d.Cancel(t.Context(), id, "kim"); row != nil || err != nil {
			t.Errorf("Cancel without an enrolment: %v, %v", row, err)
		}
		if _, err := d.Cancel(t.Context(), id+1, "kim"); !errors.Is(err, lecture.ErrNotFound) {
			t.Errorf("Cancel at an unknown lecture: %v", err)
		}
		if row, err := d.Cancel(t.Context(), id, "\x00"); row != nil || err != nil {
			t.Errorf("Cancel for an impossible key: %v, %v", row, err)
		}

		d.line.admit(id, "kim", "lee")
		first := d.enroll(id, "kim", registrar.Enrolled)
		d.enroll(id, "lee", registrar.SoldOut)

		// However many cancel at once, one seat is freed.
		var callers sync.WaitGroup
		receipts := make(chan *int, 8)
		for range cap(receipts) {
			callers.Go(func() {
				row, err := d.Cancel(context.Background(), id, "kim")
				switch {
				case err != nil:
					t.Error(err)
				case row != nil:
					if row.ID != first.ID || row.CancelledAt == nil || row.Edges.Lecture.EnrolledCount != 0 {
						t.Errorf("cancelled receipt %v", row)
					}
					receipts <- &row.Number
				}
			})
		}
		callers.Wait()
		if len(receipts) != 1 {
			t.Errorf("%d callers cancelled", len(receipts))
		}
		told := d.line.lastChange()
		if told.facts.Remaining != 1 || told.facts.Version != 3 || !slices.Equal(told.cancelled, []string{"kim"}) {
			t.Errorf("the line was told %+v", told)
		}

		// Back again: a new row with a new number, and history kept.
		d.line.admit(id, "kim")
		second := d.enroll(id, "kim", registrar.Enrolled)
		if second.ID == first.ID || second.Number != 2 {
			t.Errorf("first %v, second %v", first, second)
		}
		d.audit(id)
		receiptsNow, more, err := d.Receipts(t.Context(), "kim", registrar.Page{First: 10})
		if err != nil || more || len(receiptsNow) != 2 {
			t.Fatalf("receipts %v, %v, %v", receiptsNow, more, err)
		}
		if receiptsNow[0].ID != second.ID || receiptsNow[1].CancelledAt == nil {
			t.Errorf("receipts are not the newest first, with history: %v", receiptsNow)
		}
	})
}

func TestCapacityMovesUnderTheLine(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(2)
		users := people(5)
		d.line.admit(id, users...)
		for i, user := range users {
			want := registrar.Enrolled
			if i >= 2 {
				want = registrar.SoldOut
			}
			d.enroll(id, user, want)
		}
		for _, capacity := range []int{1, 0} {
			var invalid *registrar.InvalidError
			_, err := d.Update(t.Context(), id, registrar.LectureChange{Capacity: registrar.Some(capacity)})
			if !errors.As(err, &invalid) || invalid.Field != "capacity" {
				t.Errorf("capacity %d: %v", capacity, err)
			}
		}
		if _, err := d.Update(t.Context(), id, registrar.LectureChange{Capacity: registrar.Some(4)}); err != nil {
			t.Fatal(err)
		}
		if told := d.line.lastChange(); told.facts.Remaining != 2 || told.facts.Capacity != 4 {
			t.Errorf("the line was told %+v", told)
		}
		d.line.admit(id, users[2:]...)
		d.enroll(id, users[2], registrar.Enrolled)
		d.enroll(id, users[3], registrar.Enrolled)
		d.enroll(id, users[4], registrar.SoldOut)
		if rows := d.audit(id); len(rows) != 4 {
			t.Errorf("%d rows", len(rows))
		}
	})
}

// Capacity falls and rises while people enrol and cancel: never oversold, and
// no capacity below the enrolled.
func TestCapacityMovesDuringARace(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		line := newLine(t)
		here, there := newDeskAt(t, b, registrar.Options{}, line), newDeskAt(t, b, registrar.Options{}, line)
		id := here.lecture(30)
		users := people(60)
		line.admit(id, users...)
		var operators sync.WaitGroup
		operators.Go(func() {
			for i := range 40 {
				_, err := there.Update(context.Background(), id, registrar.LectureChange{Capacity: registrar.Some(10 + i%25)})
				var invalid *registrar.InvalidError
				if err != nil && !errors.As(err, &invalid) {
					t.Error(err)
				}
			}
		})
		operators.Go(func() {
			for _, user := range users[:20] {
				if _, err := there.Cancel(context.Background(), id, user); err != nil {
					t.Error(err)
				}
			}
		})
		results := enrollAll(id, users, here, there)
		operators.Wait()
		if got := tally(results); got["error"] > 0 {
			t.Errorf("outcomes %v", got)
		}
		here.audit(id)
	})
}
