package registrar_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
)

// The database goes away and comes back: nobody loses a ticket, and asking
// again is enough.
func TestPostgresGoesAway(t *testing.T) {
	server := testenv.StartPostgres(t)
	d := newDesk(t, postgresAt(t, server.URL), registrar.Options{})
	id := d.lecture(2)
	d.line.admit(id, "kim", "lee")
	d.enroll(id, "kim", registrar.Enrolled)

	server.Kill()
	d.unavailable(id, "lee")
	d.unavailable(id, "kim") // a row cannot be read now, so nobody is told no
	if !d.line.ticket(id, "lee") || d.line.inFlight() != 0 {
		t.Errorf("ticket %v, claims %d", d.line.ticket(id, "lee"), d.line.inFlight())
	}
	for name, call := range map[string]func(context.Context) error{
		"Ping":   d.Ping,
		"Facts":  func(ctx context.Context) error { _, err := d.Facts(ctx, []int{id}); return err },
		"Decide": func(ctx context.Context) error { _, _, err := d.Decide(ctx, id, claims("kim")); return err },
		"Cancel": func(ctx context.Context) error { _, err := d.Cancel(ctx, id, "kim"); return err },
		"Lectures": func(ctx context.Context) error {
			_, _, err := d.Lectures(ctx, "", registrar.Page{First: 1})
			return err
		},
		"Create": func(ctx context.Context) error {
			_, err := d.Create(ctx, registrar.NewLecture{Title: "x"})
			return err
		},
	} {
		if err := call(t.Context()); !errors.Is(err, lecture.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Lecture(ctx, id); !errors.Is(err, context.Canceled) || errors.Is(err, lecture.ErrUnavailable) {
		t.Errorf("a caller that left: %v", err)
	}

	server.Restart()
	d.enroll(id, "lee", registrar.Enrolled)
	d.enroll(id, "kim", registrar.AlreadyEnrolled)
	d.audit(id)
}

// Sessions are bounded by default, and the URL has the last word.
func TestSessions(t *testing.T) {
	url := testenv.Postgres(t)
	for _, c := range []struct {
		params []string
		want   map[string]string
	}{
		{nil, map[string]string{
			"statement_timeout": "5s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "5s",
			"default_transaction_isolation": "read committed", "plan_cache_mode": "force_custom_plan", "application_name": "seatline",
		}},
		{[]string{"lock_timeout=7000", "statement_timeout=0", "application_name=mine"}, map[string]string{
			"lock_timeout": "7s", "statement_timeout": "0", "application_name": "mine", "idle_in_transaction_session_timeout": "5s",
		}},
	} {
		_, db := openURL(t, with(url, c.params...))
		for name, want := range c.want {
			var got string
			if err := db.QueryRowContext(context.Background(), "SHOW "+name).Scan(&got); err != nil || got != want {
				t.Errorf("%v: %s is %q, %v; want %q", c.params, name, got, err, want)
			}
		}
	}
	_, _, _, err := registrar.OpenPostgres(t.Context(), "postgres://me:secret@127.0.0.1:port/db")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a malformed URL: %v", err)
	}
}

// A database that says nothing at all holds nobody for ever, and no ticket.
func TestPostgresHangs(t *testing.T) {
	server := testenv.StartPostgres(t)
	d := newDesk(t, postgresAt(t, server.URL), registrar.Options{Patience: time.Second})
	id := d.lecture(1)
	d.line.admit(id, "kim")
	server.Stop()
	d.unavailable(id, "kim")
	if _, err := d.Lecture(t.Context(), id); !errors.Is(err, lecture.ErrUnavailable) {
		t.Errorf("Lecture: %v", err)
	}
	eventually(t, "the ticket comes back", func() bool {
		return d.line.ticket(id, "kim")
	})
	server.Cont()
	eventually(t, "kim is enrolled", func() bool {
		got, err := d.Enroll(context.Background(), id, "kim")
		return err == nil && got.Status == registrar.Enrolled
	})
	d.audit(id)
}
