package registrar_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"seatline/ent"
	"seatline/internal/lecture"
	"seatline/internal/registrar"
)

func TestRosterAndReceipts(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(700)
		users := people(600)
		d.line.admit(id, users...)
		enrollAll(id, users, d)
		if _, err := d.Cancel(t.Context(), id, users[5]); err != nil {
			t.Fatal(err)
		}
		count := func(f registrar.RosterFilter) int {
			t.Helper()
			total, page := 0, registrar.Page{First: 100}
			for {
				rows, more, err := d.Roster(t.Context(), id, f, page)
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range rows {
					if row.Edges.Lecture == nil || row.Edges.Lecture.ID != id {
						t.Fatalf("an entry without its lecture: %v", row)
					}
				}
				total += len(rows)
				if !more {
					break
				}
				page.After = registrar.RosterCursor(rows[len(rows)-1])
			}
			if n, err := d.CountRoster(t.Context(), id, f); err != nil || n != total {
				t.Errorf("CountRoster(%+v) = %d, %v; the pages have %d", f, n, err, total)
			}
			return total
		}
		for _, c := range []struct {
			filter registrar.RosterFilter
			want   int
		}{
			{registrar.RosterFilter{}, 599},
			{registrar.RosterFilter{IncludeCancelled: true}, 600},
			{registrar.RosterFilter{Search: "person-000"}, 9},
			{registrar.RosterFilter{Search: "person-000", IncludeCancelled: true}, 10},
			{registrar.RosterFilter{Search: "PERSON"}, 0}, // keys are compared byte for byte
			{registrar.RosterFilter{Search: "%"}, 0},
		} {
			if got := count(c.filter); got != c.want {
				t.Errorf("%+v: %d entries", c.filter, got)
			}
		}
		number, visits := 0, 0
		err := d.EachOfRoster(t.Context(), id, true, func(e *ent.Enrollment) error {
			if visits++; e.Number <= number {
				t.Errorf("number %d after %d", e.Number, number)
			}
			number = e.Number
			return nil
		})
		if err != nil || visits != 600 {
			t.Errorf("EachOfRoster: %d visits, %v", visits, err)
		}
		stop := errors.New("enough")
		if err := d.EachOfRoster(t.Context(), id, false, func(*ent.Enrollment) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("EachOfRoster: %v", err)
		}
		if err := d.EachOfRoster(t.Context(), id+1, false, nil); !errors.Is(err, lecture.ErrNotFound) {
			t.Errorf("EachOfRoster of an unknown lecture: %v", err)
		}
		if _, _, err := d.Roster(t.Context(), id+1, registrar.RosterFilter{}, registrar.Page{First: 1}); !errors.Is(err, lecture.ErrNotFound) {
			t.Errorf("Roster of an unknown lecture: %v", err)
		}

		// One person's receipts, over many lectures, newest first.
		var ids []int
		for range 5 {
			id := d.lecture(1)
			d.line.admit(id, "kim")
			d.enroll(id, "kim", registrar.Enrolled)
			ids = append(ids, id)
		}
		slices.Reverse(ids)
		var got []int
		page := registrar.Page{First: 2}
		for more := true; more; {
			var rows []*ent.Enrollment
			if rows, more, err = d.Receipts(t.Context(), "kim", page); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				got = append(got, row.Edges.Lecture.ID)
			}
			page.After = registrar.ReceiptCursor(rows[len(rows)-1])
		}
		if n, err := d.CountReceipts(t.Context(), "kim"); !slices.Equal(got, ids) || n != 5 || err != nil {
			t.Errorf("receipts %v (%d, %v), want %v", got, n, err, ids)
		}
	})
}

func TestWhatTheLineReads(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		before := time.Now()
		id := d.lecture(10)
		d.line.admit(id, "kim", "lee")
		d.enroll(id, "kim", registrar.Enrolled)
		d.enroll(id, "lee", registrar.Enrolled)
		between := time.Now().Add(time.Millisecond)

		asked := claims("park", "lee", "kim")
		facts, used, err := d.Decide(t.Context(), id, asked)
		if err != nil || facts.Version != 3 || facts.Remaining != 8 || !slices.Equal(used, asked[1:]) {
			t.Errorf("Decide: %+v, %v, %v", facts, used, err)
		}
		facts, users, err := d.Begin(t.Context(), id)
		slices.Sort(users)
		if err != nil || facts.Epoch != 1 || facts.Version != 4 || !slices.Equal(users, []string{"kim", "lee"}) {
			t.Errorf("Begin: %+v, %v, %v", facts, users, err)
		}
		row, version, err := d.Standing(t.Context(), id, "kim")
		if err != nil || version != 4 || row == nil || row.Edges.Lecture.LineEpoch != 1 {
			t.Errorf("Standing: %v, %d, %v", row, version, err)
		}
		if row, version, err := d.Standing(t.Context(), id, "park"); row != nil || version != 4 || err != nil {
			t.Errorf("Standing of nobody: %v, %d, %v", row, version, err)
		}
		for name, since := range map[string]bool{"kim": true, "park": false} {
			if moved, err := d.MovedSince(t.Context(), id, name, before); moved != since || err != nil {
				t.Errorf("MovedSince %q: %v, %v", name, moved, err)
			}
		}
		if moved, err := d.MovedSince(t.Context(), id, "kim", between); moved || err != nil {
			t.Errorf("MovedSince later: %v, %v", moved, err)
		}
		for name, call := range map[string]func() error{
			"Decide":   func() error { _, _, err := d.Decide(t.Context(), id+50, claims("kim")); return err },
			"Begin":    func() error { _, _, err := d.Begin(t.Context(), id+50); return err },
			"Standing": func() error { _, _, err := d.Standing(t.Context(), id+50, "kim"); return err },
		} {
			if err := call(); !errors.Is(err, lecture.ErrNotFound) {
				t.Errorf("%s of an unknown lecture: %v", name, err)
			}
		}

		hours := func(closes time.Duration) int {
			t.Helper()
			at := time.Now().Add(closes)
			l, err := d.Create(t.Context(), registrar.NewLecture{Title: "x", ClosesAt: &at})
			if err != nil {
				t.Fatal(err)
			}
			return l.ID
		}
		open, justClosed, longClosed := hours(time.Hour), hours(-59*time.Minute), hours(-61*time.Minute)
		running, err := d.Running(t.Context())
		if err != nil || !slices.Equal(running, []int{id, open, justClosed}) {
			t.Errorf("Running: %v, %v; %d is closed", running, err, longClosed)
		}
		if facts, err := d.Facts(t.Context(), nil); len(facts) != 0 || err != nil {
			t.Errorf("Facts of nothing: %v, %v", facts, err)
		}
	})
}

// A list costs the same number of statements however long it is.
func TestStatementsOfAPage(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		for range 50 {
			id := d.lecture(1)
			d.line.admit(id, "kim")
			d.enroll(id, "kim", registrar.Enrolled)
		}
		name := dialect.SQLite
		if b.postgres {
			name = dialect.Postgres
		}
		var statements atomic.Int32
		counted := registrar.Open(ent.NewClient(ent.Driver(dialect.DebugWithContext(
			entsql.OpenDB(name, d.db), func(context.Context, ...any) { statements.Add(1) },
		))), registrar.Options{})
		page := registrar.Page{First: 50}
		for what, c := range map[string]struct {
			call func() error
			most int32
		}{
			"lectures and their count": {func() error {
				rows, _, err := counted.Lectures(t.Context(), "o", page)
				if len(rows) != 50 {
					t.Errorf("%d lectures", len(rows))
				}
				_, count := counted.CountLectures(t.Context(), "o")
				return errors.Join(err, count)
			}, 2},
			"receipts with their lectures": {func() error {
				rows, _, err := counted.Receipts(t.Context(), "kim", page)
				if len(rows) != 50 || rows[0].Edges.Lecture == nil {
					t.Errorf("%d receipts", len(rows))
				}
				return err
			}, 2},
			"facts": {func() error { _, err := counted.Facts(t.Context(), []int{1, 2, 3}); return err }, 1},
		} {
			statements.Store(0)
			if err := c.call(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if n := statements.Load(); n == 0 || n > c.most {
				t.Errorf("%s: %d statements", what, n)
			}
		}
	})
}
