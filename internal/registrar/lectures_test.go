package registrar_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

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
			"éLAN":        {"Élan"},
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
