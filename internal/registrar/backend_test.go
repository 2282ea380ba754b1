package registrar_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"go.uber.org/goleak"

	"seatline/ent"
	"seatline/ent/enrollment"
	_ "seatline/internal/embedded" // database/sql driver "sqlite", as it is used
	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/migrations"
)

func TestMain(m *testing.M) {
	// A hundred histories take a minute; -rapid.checks=100 runs them.
	// What fails is printed with its seed, not left in a file.
	for name, value := range map[string]string{"rapid.checks": "25", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// backend is a database of a test's own, which several pools may share as
// several processes would.
type backend struct {
	name     string
	postgres bool
	open     func(t testing.TB) (*ent.Client, *sql.DB)
}

// onBoth runs one test body on SQLite and on PostgreSQL.
func onBoth(t *testing.T, body func(t *testing.T, b backend)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { body(t, sqlite(t)) })
	t.Run("postgres", func(t *testing.T) { body(t, postgres(t)) })
}

func sqlite(t testing.TB) backend {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "seats.db") +
		"?_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)" +
		"&_txlock=immediate&_time_format=sqlite&_timezone=UTC"
	b := backend{name: "sqlite", open: func(t testing.TB) (*ent.Client, *sql.DB) {
		t.Helper()
		db, err := sql.Open("sqlite", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return ent.NewClient(ent.Driver(entsql.OpenDB(dialect.SQLite, db))), db
	}}
	client, _ := b.open(t)
	if err := client.Schema.Create(context.Background()); err != nil {
		t.Fatal(err)
	}
	return b
}

func postgres(t testing.TB, params ...string) backend {
	t.Helper()
	return postgresAt(t, testenv.Postgres(t), params...)
}

// postgresAt migrates the database and opens its pools with more URL parameters.
func postgresAt(t testing.TB, url string, params ...string) backend {
	t.Helper()
	plain := backend{postgres: true, open: func(t testing.TB) (*ent.Client, *sql.DB) { return openURL(t, url) }}
	_, db := plain.open(t)
	if err := migrations.Apply(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	url = with(url, params...)
	return backend{name: "postgres", postgres: true, open: func(t testing.TB) (*ent.Client, *sql.DB) { return openURL(t, url) }}
}

func openURL(t testing.TB, url string) (*ent.Client, *sql.DB) {
	t.Helper()
	client, db, shut, err := registrar.OpenPostgres(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shut)
	return client, db
}

func with(url string, params ...string) string {
	for _, param := range params {
		if strings.Contains(url, "?") {
			url += "&" + param
		} else {
			url += "?" + param
		}
	}
	return url
}

// desk is a registrar with all that a test wants of it.
type desk struct {
	*registrar.Registrar
	t      testing.TB
	line   *fakeLine
	client *ent.Client
	db     *sql.DB
}

func newDesk(t testing.TB, b backend, o registrar.Options) *desk {
	t.Helper()
	return newDeskAt(t, b, o, newLine(t))
}

// newDeskAt is one more process at a line that others use too.
func newDeskAt(t testing.TB, b backend, o registrar.Options, line *fakeLine) *desk {
	t.Helper()
	client, db := b.open(t)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &desk{registrar.New(registrar.Open(client, o), line), t, line, client, db}
}

// lecture creates one with this many seats.
func (d *desk) lecture(capacity int) int {
	d.t.Helper()
	l, err := d.Create(context.Background(), registrar.NewLecture{Title: "Topology", Capacity: capacity})
	if err != nil {
		d.t.Fatal(err)
	}
	return l.ID
}

// enroll expects this outcome.
func (d *desk) enroll(id int, user string, want registrar.EnrollStatus) *ent.Enrollment {
	d.t.Helper()
	got, err := d.Enroll(context.Background(), id, user)
	if err != nil || got.Status != want {
		d.t.Fatalf("Enroll(%d, %q) = %q, %v; want %q", id, user, got.Status, err, want)
	}
	return got.Receipt
}

// unavailable expects an Enroll to end without a decision.
func (d *desk) unavailable(id int, user string) {
	d.t.Helper()
	got, err := d.Enroll(context.Background(), id, user)
	if !errors.Is(err, lecture.ErrUnavailable) {
		d.t.Fatalf("Enroll(%d, %q) = %q, %v; want ErrUnavailable", id, user, got.Status, err)
	}
}

// result is what one of many callers got.
type result struct {
	user string
	registrar.Outcome
	err error
}

// enrollAll lets everybody enrol at once, one after the other at the desks.
func enrollAll(id int, users []string, desks ...*desk) []result {
	results := make([]result, len(users))
	start := make(chan struct{})
	var callers sync.WaitGroup
	for i, user := range users {
		callers.Go(func() {
			<-start
			outcome, err := desks[i%len(desks)].Enroll(context.Background(), id, user)
			results[i] = result{user, outcome, err}
		})
	}
	close(start)
	callers.Wait()
	return results
}

// people are n user keys.
func people(n int) []string {
	users := make([]string, n)
	for i := range users {
		users[i] = fmt.Sprintf("person-%04d", i)
	}
	return users
}

// tally counts results by status, errors as "error".
func tally(results []result) map[registrar.EnrollStatus]int {
	n := make(map[registrar.EnrollStatus]int)
	for _, r := range results {
		if r.err != nil {
			n["error"]++
		} else {
			n[r.Status]++
		}
	}
	return n
}

// audit asserts what holds at every instant, and returns the active rows.
func (d *desk) audit(id int) []*ent.Enrollment {
	d.t.Helper()
	ctx := context.Background()
	l, err := d.Lecture(ctx, id)
	if err != nil {
		d.t.Fatal(err)
	}
	all, err := d.client.Enrollment.Query().
		Where(enrollment.LectureID(id)).Order(enrollment.ByNumber()).All(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	var active []*ent.Enrollment
	holders := make(map[string]bool)
	for i, e := range all {
		if i > 0 && e.Number <= all[i-1].Number {
			d.t.Errorf("number %d is not unique", e.Number)
		}
		if e.Number > l.LastNumber {
			d.t.Errorf("number %d is above last_number %d", e.Number, l.LastNumber)
		}
		if e.CancelledAt != nil {
			continue
		}
		if holders[e.UserKey] {
			d.t.Errorf("%q has two active rows", e.UserKey)
		}
		holders[e.UserKey] = true
		active = append(active, e)
	}
	if len(active) != l.EnrolledCount {
		d.t.Errorf("enrolled_count is %d with %d active rows", l.EnrolledCount, len(active))
	}
	if len(active) > l.Capacity {
		d.t.Errorf("%d active rows for %d seats", len(active), l.Capacity)
	}
	return active
}

// eventually waits for what must come true, for a minute at most.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		}
	}
}
