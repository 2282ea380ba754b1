package registrar_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"seatline/ent"
	"seatline/internal/lecture"
	"seatline/internal/registrar"
)

func TestLectureIsWhatWasGiven(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		seoul := time.FixedZone("KST", 9*60*60)
		opens := time.Date(2026, 11, 1, 1, 30, 0, 123_456_789, seoul)
		closes := opens.Add(time.Hour)
		text, word := "About\nholes", "Soon"
		created, err := d.Create(t.Context(), registrar.NewLecture{
			Title: "위상수학", Description: &text, Capacity: 30, OpensAt: &opens, ClosesAt: &closes,
			Settings: registrar.SettingsChange{
				Paused: registrar.Some(true), AdmitPerSecond: registrar.Some(0.01), Burst: registrar.Some(1),
				TicketTTLSeconds: registrar.Some(3600), OverbookPercent: registrar.Some(200), Message: registrar.Some(word),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		read, err := d.Lecture(t.Context(), created.ID)
		if err != nil {
			t.Fatal(err)
		}
		if created.String() != read.String() {
			t.Errorf("created %v\n   read %v", created, read)
		}
		want := lecture.Facts{
			ID: read.ID, Version: 1, Capacity: 30, Remaining: 30,
			OpensAt: opens.UTC().Truncate(time.Microsecond), ClosesAt: closes.UTC().Truncate(time.Microsecond),
			Settings: lecture.Settings{Paused: true, AdmitPerSecond: 0.01, Burst: 1, TicketTTLSeconds: 3600, OverbookPercent: 200},
		}
		facts, err := d.Facts(t.Context(), []int{read.ID, read.ID + 100})
		if err != nil || len(facts) != 1 {
			t.Fatalf("Facts: %v, %v", facts, err)
		}
		if m := facts[0].Settings.Message; m == nil || *m != word {
			t.Errorf("message %v", m)
		}
		facts[0].Settings.Message = nil
		if facts[0] != want {
			t.Errorf("facts %+v\n want %+v", facts[0], want)
		}

		plain, err := d.Create(t.Context(), registrar.NewLecture{Title: "x"})
		if err != nil {
			t.Fatal(err)
		}
		got := registrar.FactsOf(plain)
		if got.Settings != (lecture.Settings{AdmitPerSecond: 10, Burst: 10, TicketTTLSeconds: 120, OverbookPercent: 100}) {
			t.Errorf("defaults %+v", got.Settings)
		}
		if _, err := d.Lecture(t.Context(), plain.ID+100); !errors.Is(err, lecture.ErrNotFound) {
			t.Errorf("an unknown lecture: %v", err)
		}
		if err := d.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestUpdateChangesOnlyWhatIsGiven(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		text, at := "text", time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		before, err := d.Create(t.Context(), registrar.NewLecture{
			Title: "old", Description: &text, Capacity: 3, OpensAt: &at,
			Settings: registrar.SettingsChange{Message: registrar.Some("word")},
		})
		if err != nil {
			t.Fatal(err)
		}
		update := func(c registrar.LectureChange) *ent.Lecture {
			t.Helper()
			l, err := d.Update(t.Context(), before.ID, c)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		after := update(registrar.LectureChange{Title: registrar.Some("new")})
		if after.SeatVersion != 2 || after.Title != "new" || !after.UpdatedAt.After(before.UpdatedAt) {
			t.Errorf("after the title: %v", after)
		}
		after.Title, after.SeatVersion, after.UpdatedAt = before.Title, before.SeatVersion, before.UpdatedAt
		if after.String() != before.String() {
			t.Errorf("more than the title changed:\n%v\n%v", before, after)
		}
		if told := d.line.lastChange(); told.facts.Version != 2 || told.cancelled != nil {
			t.Errorf("the line was told %+v", told)
		}

		after = update(registrar.LectureChange{
			Description: registrar.Null[string](), OpensAt: registrar.Null[time.Time](),
			ClosesAt: registrar.Some(at), Settings: registrar.SettingsChange{Message: registrar.Null[string](), Burst: registrar.Some(7)},
		})
		if after.Description != nil || after.OpensAt != nil || after.Message != nil || !after.ClosesAt.Equal(at) || after.Burst != 7 {
			t.Errorf("after null: %v", after)
		}
		// The hours are held together, whichever of them is given.
		var invalid *registrar.InvalidError
		_, err = d.Update(t.Context(), before.ID, registrar.LectureChange{OpensAt: registrar.Some(at)})
		if !errors.As(err, &invalid) || invalid.Field != "closesAt" {
			t.Errorf("opening at the close: %v", err)
		}
		if after = update(registrar.LectureChange{}); after.SeatVersion != 3 {
			t.Errorf("no change wrote the row: %v", after)
		}
		if _, err := d.Update(t.Context(), before.ID+1, registrar.LectureChange{}); !errors.Is(err, lecture.ErrNotFound) {
			t.Errorf("an unknown lecture: %v", err)
		}
	})
}

func TestInputOutOfBounds(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		id := d.lecture(1)
		at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		settings := func(s registrar.SettingsChange) registrar.LectureChange {
			return registrar.LectureChange{Settings: s}
		}
		for _, c := range []struct {
			field  string
			change registrar.LectureChange
		}{
			{"title", registrar.LectureChange{Title: registrar.Some("")}},
			{"title", registrar.LectureChange{Title: registrar.Some(" \u00a0")}},
			{"title", registrar.LectureChange{Title: registrar.Some(strings.Repeat("ä", 201))}},
			{"title", registrar.LectureChange{Title: registrar.Some("two\nlines")}},
			{"title", registrar.LectureChange{Title: registrar.Some("nul\x00")}},
			{"title", registrar.LectureChange{Title: registrar.Some("\xff")}},
			{"title", registrar.LectureChange{Title: registrar.Null[string]()}},
			{"description", registrar.LectureChange{Description: registrar.Some(strings.Repeat("x", 5001))}},
			{"description", registrar.LectureChange{Description: registrar.Some("nul\x00")}},
			{"capacity", registrar.LectureChange{Capacity: registrar.Some(-1)}},
			{"capacity", registrar.LectureChange{Capacity: registrar.Some(1_000_001)}},
			{"capacity", registrar.LectureChange{Capacity: registrar.Null[int]()}},
			{"closesAt", registrar.LectureChange{OpensAt: registrar.Some(at), ClosesAt: registrar.Some(at)}},
			{"settings.paused", settings(registrar.SettingsChange{Paused: registrar.Null[bool]()})},
			{"settings.admitPerSecond", settings(registrar.SettingsChange{AdmitPerSecond: registrar.Some(0.009)})},
			{"settings.admitPerSecond", settings(registrar.SettingsChange{AdmitPerSecond: registrar.Some(10_000.1)})},
			{"settings.admitPerSecond", settings(registrar.SettingsChange{AdmitPerSecond: registrar.Some(math.NaN())})},
			{"settings.burst", settings(registrar.SettingsChange{Burst: registrar.Some(0)})},
			{"settings.burst", settings(registrar.SettingsChange{Burst: registrar.Some(10_001)})},
			{"settings.ticketTtlSeconds", settings(registrar.SettingsChange{TicketTTLSeconds: registrar.Some(0)})},
			{"settings.ticketTtlSeconds", settings(registrar.SettingsChange{TicketTTLSeconds: registrar.Some(3601)})},
			{"settings.overbookPercent", settings(registrar.SettingsChange{OverbookPercent: registrar.Some(99)})},
			{"settings.overbookPercent", settings(registrar.SettingsChange{OverbookPercent: registrar.Some(201)})},
			{"settings.message", settings(registrar.SettingsChange{Message: registrar.Some(strings.Repeat("x", 501))})},
		} {
			var invalid *registrar.InvalidError
			if _, err := d.Update(t.Context(), id, c.change); !errors.As(err, &invalid) || invalid.Field != c.field {
				t.Errorf("Update %s: %v", c.field, err)
			}
			n := registrar.NewLecture{Title: "fine", OpensAt: c.change.OpensAt.Value, ClosesAt: c.change.ClosesAt.Value, Settings: c.change.Settings}
			if c.change.Title.Set {
				n.Title = ""
				if v := c.change.Title.Value; v != nil {
					n.Title = *v
				}
			}
			if c.change.Description.Set {
				n.Description = c.change.Description.Value
			}
			if c.change.Capacity.Set {
				n.Capacity = -1
				if v := c.change.Capacity.Value; v != nil {
					n.Capacity = *v
				}
			}
			invalid = nil
			if _, err := d.Create(t.Context(), n); !errors.As(err, &invalid) || invalid.Field != c.field {
				t.Errorf("Create %s: %v", c.field, err)
			}
		}
		if l, err := d.Lecture(t.Context(), id); err != nil || l.SeatVersion != 1 {
			t.Errorf("a refused change wrote the row: %v, %v", l, err)
		}
	})
}

func TestPagesAndSearch(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		titles := []string{"Algebra", "100% algebra", "al_gebra", "Élan", `back\slash`, "ALGEBRA II", "O'Hara \"x\""}
		for _, title := range titles {
			if _, err := d.Create(t.Context(), registrar.NewLecture{Title: title}); err != nil {
				t.Fatal(err)
			}
		}
		search := func(text string) []string {
			t.Helper()
			var found []string
			page := registrar.Page{First: 2}
			for {
				rows, more, err := d.Lectures(t.Context(), text, page)
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range rows {
					found = append(found, row.Title)
				}
				if !more {
					break
				}
				page.After = registrar.LectureCursor(rows[len(rows)-1])
			}
			if n, err := d.CountLectures(t.Context(), text); err != nil || n != len(found) {
				t.Errorf("CountLectures(%q) = %d, %v; the pages have %d", text, n, err, len(found))
			}
			return found
		}
		for text, want := range map[string][]string{
			"":            titles,
			"aLGEbra":     {"Algebra", "100% algebra", "ALGEBRA II"},
			"%":           {"100% algebra"},
			"_":           {"al_gebra"},
			`\`:           {`back\slash`},
			"'":           {"O'Hara \"x\""},
			`"x"`:         {"O'Hara \"x\""},
			"Élan":        {"Élan"},
			"nowhere":     nil,
			"algebra' --": nil,
		} {
			if got := search(text); !slices.Equal(got, want) {
				t.Errorf("search %q: %q", text, got)
			}
		}
		for field, call := range map[string]func() error{
			"first": func() error {
				_, _, err := d.Lectures(t.Context(), "", registrar.Page{First: 101})
				return err
			},
			"after": func() error {
				_, _, err := d.Lectures(t.Context(), "", registrar.Page{First: 1, After: "!"})
				return err
			},
			"search": func() error {
				_, _, err := d.Lectures(t.Context(), "nul\x00", registrar.Page{First: 1})
				return err
			},
		} {
			var invalid *registrar.InvalidError
			if err := call(); !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		// A cursor of another list is refused, not misread.
		of := registrar.RosterCursor(&ent.Enrollment{Number: 1})
		var invalid *registrar.InvalidError
		if _, _, err := d.Lectures(t.Context(), "", registrar.Page{First: 1, After: of}); !errors.As(err, &invalid) {
			t.Errorf("a roster's cursor: %v", err)
		}
	})
}

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

		facts, enrolled, err := d.Decide(t.Context(), id, []string{"park", "lee", "kim"})
		if err != nil || facts.Version != 3 || facts.Remaining != 8 || !slices.Equal(enrolled, []string{"lee", "kim"}) {
			t.Errorf("Decide: %+v, %v, %v", facts, enrolled, err)
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
			"Decide":   func() error { _, _, err := d.Decide(t.Context(), id+50, []string{"kim"}); return err },
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
