package registrar_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatline/ent"
	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
)

// The answer to a COMMIT is lost, and the COMMIT itself arrives three seconds
// later: nobody is told no meanwhile, and everybody has one row and one receipt.
func TestCommitLost(t *testing.T) {
	url := testenv.Postgres(t)
	plain := newDesk(t, postgresAt(t, url), registrar.Options{})
	p := newProxy(t, url)
	for _, c := range []struct {
		name  string
		delay time.Duration
		drop  bool
	}{
		{"its answer is swallowed", 0, false},
		{"it is three seconds late", 3 * time.Second, false},
		{"it never arrives", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDeskAt(t, postgresThrough(p), registrar.Options{}, plain.line)
			id := plain.lecture(3)
			users := people(3)
			plain.line.admit(id, users...)
			p.loseCommits(1, c.delay, c.drop)
			results := enrollAll(id, users, d)
			<-p.lost
			got := tally(results)
			if c.drop {
				// Those whose commit was lost have their tickets back and
				// enrol with them.
				if got["error"] == 0 {
					t.Errorf("outcomes %v", got)
				}
				for _, r := range results {
					if r.err == nil {
						continue
					}
					if !errors.Is(r.err, lecture.ErrUnavailable) || !plain.line.ticket(id, r.user) {
						t.Errorf("%q: %v, ticket: %v", r.user, r.err, plain.line.ticket(id, r.user))
					}
					d.enroll(id, r.user, registrar.Enrolled)
				}
			} else if got[registrar.Enrolled] != 3 {
				t.Errorf("outcomes %v: %+v", got, results)
			}
			rows := plain.audit(id)
			if len(rows) != 3 || plain.line.inFlight() != 0 {
				t.Errorf("%d rows, %d claims", len(rows), plain.line.inFlight())
			}
			for _, row := range rows {
				if again := d.enroll(id, row.UserKey, registrar.AlreadyEnrolled); again.ID != row.ID {
					t.Errorf("receipt %v, row %v", again, row)
				}
			}
			if told := plain.line.seats[id]; told.Remaining != 0 {
				t.Errorf("the line was told %+v", told)
			}
		})
	}
}

func postgresThrough(p *proxy) backend {
	return backend{postgres: true, open: func(t testing.TB) (*ent.Client, *sql.DB) { return openURL(t, p.url) }}
}

// The lock cannot be had for the reading back: nothing is decided, and the
// claims stay for the line's reconciler, whom Decide tells the truth.
func TestCommitLostAndNoLock(t *testing.T) {
	url := testenv.Postgres(t)
	plain := newDesk(t, postgresAt(t, url), registrar.Options{})
	p := newProxy(t, with(url, "lock_timeout=200ms"))
	d := newDeskAt(t, postgresThrough(p), registrar.Options{}, plain.line)
	id := plain.lecture(1)
	plain.line.admit(id, "kim")
	p.loseCommits(1, 2*time.Second, false)
	d.unavailable(id, "kim")
	if plain.line.inFlight() != 1 || plain.line.ticket(id, "kim") || plain.line.settles != 0 {
		t.Errorf("claims %d, ticket %v, settlements %d", plain.line.inFlight(), plain.line.ticket(id, "kim"), plain.line.settles)
	}
	// The reconciler's reading waits for the commit that is still on its way.
	asked := claims("lee", "kim")
	facts, used, err := plain.Decide(t.Context(), id, asked)
	for errors.Is(err, lecture.ErrUnavailable) {
		facts, used, err = plain.Decide(t.Context(), id, asked)
	}
	if err != nil || facts.Remaining != 0 || !slices.Equal(used, asked[1:]) {
		t.Errorf("Decide: %+v, %v, %v", facts, used, err)
	}
	plain.audit(id)
}

// Somebody else holds the row: nobody is inserted, and the ticket comes back.
// Meanwhile another lecture goes on.
func TestRowLockHeldElsewhere(t *testing.T) {
	url := testenv.Postgres(t)
	plain := newDesk(t, postgresAt(t, url), registrar.Options{})
	d := newDeskAt(t, postgresAt(t, url, "lock_timeout=1000"), registrar.Options{}, plain.line)
	hot, cold := plain.lecture(1), plain.lecture(1)
	plain.line.admit(hot, "kim")
	plain.line.admit(cold, "lee")

	psql := lockRow(t, plain.db, hot)
	waiting := make(chan error, 1)
	go func() {
		_, err := d.Enroll(context.Background(), hot, "kim")
		waiting <- err
	}()
	eventually(t, "the batch waits for the lock", func() bool { return waitsForLock(t, plain.db) })
	d.enroll(cold, "lee", registrar.Enrolled)
	if err := <-waiting; !errors.Is(err, lecture.ErrUnavailable) {
		t.Errorf("Enroll: %v", err)
	}
	if !plain.line.ticket(hot, "kim") || len(plain.audit(hot)) != 0 {
		t.Error("the ticket did not come back, or there is a row")
	}
	if _, _, err := d.Decide(t.Context(), hot, claims("kim")); !errors.Is(err, lecture.ErrUnavailable) {
		t.Errorf("Decide without the lock: %v", err)
	}
	if err := psql.Rollback(); err != nil {
		t.Fatal(err)
	}
	d.enroll(hot, "kim", registrar.Enrolled)
}

// The lock comes after the cut-off: whoever is too old is not inserted, whoever
// came later is.
func TestCutOffAfterTheLock(t *testing.T) {
	for _, jump := range []struct {
		name string
		of   time.Duration
		old  bool
	}{{"8 s", 7500 * time.Millisecond, false}, {"more", 9 * time.Second, true}} {
		t.Run(jump.name, func(t *testing.T) {
			b := postgres(t)
			var offset atomic.Int64
			d := newDesk(t, b, registrar.Options{
				Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) },
			})
			id := d.lecture(5)
			d.line.admit(id, "kim", "lee")
			psql := lockRow(t, d.db, id)
			var callers sync.WaitGroup
			var kim error
			callers.Go(func() { _, kim = d.Enroll(context.Background(), id, "kim") })
			eventually(t, "the batch waits for the lock", func() bool { return waitsForLock(t, d.db) })
			offset.Store(int64(jump.of))
			callers.Go(func() { d.enroll(id, "lee", registrar.Enrolled) })
			eventually(t, "both claims are taken", func() bool { return d.line.inFlight() == 2 })
			if err := psql.Rollback(); err != nil {
				t.Fatal(err)
			}
			callers.Wait()
			if errors.Is(kim, lecture.ErrUnavailable) != jump.old || d.line.ticket(id, "kim") != jump.old {
				t.Errorf("Enroll after %v: %v, ticket: %v", jump.of, kim, d.line.ticket(id, "kim"))
			}
			want := 2
			if jump.old {
				want = 1
			}
			if rows := d.audit(id); len(rows) != want {
				t.Errorf("%d rows", len(rows))
			}
		})
	}
}

// lockRow holds a lecture's row as somebody at a psql prompt would.
func lockRow(t *testing.T, db *sql.DB, id int) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.ExecContext(context.Background(), `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(context.Background(), `SELECT 1 FROM lectures WHERE id = $1 FOR UPDATE`, id); err != nil {
		t.Fatal(err)
	}
	return tx
}

func waitsForLock(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var n int
	const query = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	if err := db.QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// A row that the database refuses does not refuse the others of its batch.
func TestAPoisonedRow(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		d.trigger(b, `NEW.user_key LIKE 'poison%'`, "P0001", "")
		id := d.lecture(200)
		users := people(60)
		users[7], users[31] = "poison-a", "poison-b"
		d.line.admit(id, users...)
		results := enrollAll(id, users, d)
		for _, r := range results {
			bad := r.user == "poison-a" || r.user == "poison-b"
			switch {
			case !bad && r.Status != registrar.Enrolled:
				t.Errorf("%q: %v, %v", r.user, r.Status, r.err)
			case bad && (r.err == nil || errors.Is(r.err, lecture.ErrUnavailable)):
				t.Errorf("%q: %v, %v", r.user, r.Status, r.err)
			case bad && !d.line.ticket(id, r.user):
				t.Errorf("%q lost the ticket", r.user)
			}
		}
		if rows := d.audit(id); len(rows) != 58 || d.line.inFlight() != 0 {
			t.Errorf("%d rows, %d claims", len(rows), d.line.inFlight())
		}
		if told := d.line.seats[id]; told.Remaining != 142 {
			t.Errorf("the line was told %+v", told)
		}
	})
}

// trigger makes inserts that fit when fail with an SQLSTATE; with a sequence,
// only the first time for each that it counts.
func (d *desk) trigger(b backend, when, state, sequence string) {
	d.t.Helper()
	statements := []string{
		`CREATE TRIGGER fault BEFORE INSERT ON enrollments FOR EACH ROW WHEN ` + when + ` BEGIN SELECT RAISE(ABORT, 'no'); END`,
	}
	if b.postgres {
		condition := "true"
		if sequence != "" {
			condition = sequence
		}
		statements = []string{
			`CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF ` + condition + ` THEN RAISE 'no' USING ERRCODE = '` + state + `'; END IF; RETURN NEW; END $$`,
			`CREATE TRIGGER fault BEFORE INSERT ON enrollments FOR EACH ROW WHEN (` + when + `) EXECUTE FUNCTION fault()`,
		}
	}
	for _, statement := range statements {
		if _, err := d.db.ExecContext(context.Background(), statement); err != nil {
			d.t.Fatal(err)
		}
	}
}

// What the database asks to repeat is repeated: 40001 and 40P01 once for each
// person reach nobody, and for ever end in UNAVAILABLE with the ticket intact.
func TestSerializationFailures(t *testing.T) {
	for _, state := range []string{"40001", "40P01"} {
		t.Run(state+" once", func(t *testing.T) {
			b := postgres(t)
			d := newDesk(t, b, registrar.Options{})
			users := people(12)
			// A sequence is not rolled back, so it remembers.
			for _, user := range users {
				if _, err := d.db.ExecContext(context.Background(), `CREATE SEQUENCE "`+user+`"`); err != nil {
					t.Fatal(err)
				}
			}
			d.trigger(b, "true", state, `nextval(quote_ident(NEW.user_key)) = 1`)
			id := d.lecture(12)
			d.line.admit(id, users...)
			if got := tally(enrollAll(id, users, d)); got[registrar.Enrolled] != 12 {
				t.Errorf("outcomes %v", got)
			}
			if rows := d.audit(id); len(rows) != 12 {
				t.Errorf("%d rows", len(rows))
			}
		})
		t.Run(state+" always", func(t *testing.T) {
			b := postgres(t)
			d := newDesk(t, b, registrar.Options{})
			d.trigger(b, `NEW.user_key = 'person-0003'`, state, "")
			id := d.lecture(12)
			users := people(12)
			d.line.admit(id, users...)
			results := enrollAll(id, users, d)
			if got := tally(results); got[registrar.Enrolled] != 11 || got["error"] != 1 {
				t.Errorf("outcomes %v", got)
			}
			if err := results[3].err; !errors.Is(err, lecture.ErrUnavailable) || !d.line.ticket(id, users[3]) {
				t.Errorf("%v, ticket: %v", err, d.line.ticket(id, users[3]))
			}
			d.audit(id)
		})
	}
}

// A panic between the insert and the count leaves nothing half done.
func TestAPanicInATransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		var armed atomic.Bool
		d.client.Lecture.Use(func(next ent.Mutator) ent.Mutator {
			return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
				if armed.Load() {
					panic("in the middle")
				}
				return next.Mutate(ctx, m)
			})
		})
		id := d.lecture(1)
		d.line.admit(id, "kim", "lee")
		armed.Store(true)
		_, err := d.Enroll(t.Context(), id, "kim")
		if err == nil || errors.Is(err, lecture.ErrUnavailable) {
			t.Errorf("Enroll: %v", err)
		}
		if _, err := d.Update(t.Context(), id, registrar.LectureChange{Capacity: registrar.Some(2)}); err == nil {
			t.Error("Update: no error")
		}
		if len(d.audit(id)) != 0 || !d.line.ticket(id, "kim") {
			t.Error("there is a row, or the ticket is gone")
		}
		armed.Store(false)
		d.enroll(id, "kim", registrar.Enrolled)
		d.enroll(id, "lee", registrar.SoldOut)
		d.audit(id)
	})
}

// A pool of one or two connections is slow, not stuck.
func TestASmallPool(t *testing.T) {
	for _, size := range []string{"1", "2"} {
		t.Run(size, func(t *testing.T) {
			d := newDesk(t, postgres(t, "pool_max_conns="+size), registrar.Options{})
			id, other := d.lecture(50), d.lecture(50)
			users := people(50)
			d.line.admit(id, users...)
			d.line.admit(other, users...)
			var readers sync.WaitGroup
			for _, user := range users {
				readers.Go(func() {
					if _, _, err := d.Standing(context.Background(), id, user); err != nil {
						t.Error(err)
					}
				})
				readers.Go(func() {
					if _, _, err := d.Receipts(context.Background(), user, registrar.Page{First: 10}); err != nil {
						t.Error(err)
					}
				})
				readers.Go(func() { d.enroll(other, user, registrar.Enrolled) })
			}
			if got := tally(enrollAll(id, users, d)); got[registrar.Enrolled] != 50 {
				t.Errorf("outcomes %v", got)
			}
			readers.Wait()
			d.audit(id)
			d.audit(other)
		})
	}
}

// Behind a pooler nothing may depend on the session, nor be prepared in it.
func TestWithoutPreparedStatements(t *testing.T) {
	for _, mode := range []string{"exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			d := newDesk(t, postgres(t, "default_query_exec_mode="+mode), registrar.Options{})
			id := d.lecture(3)
			users := people(5)
			d.line.admit(id, users...)
			got := tally(enrollAll(id, users, d))
			if got[registrar.Enrolled] != 3 || got[registrar.SoldOut] != 2 {
				t.Errorf("outcomes %v", got)
			}
			rows := d.audit(id)
			d.enroll(id, rows[0].UserKey, registrar.AlreadyEnrolled)
			if row, err := d.Cancel(t.Context(), id, rows[0].UserKey); err != nil || row == nil {
				t.Errorf("Cancel: %v, %v", row, err)
			}
			if _, used, err := d.Decide(t.Context(), id, claims(users...)); err != nil || len(used) != 2 {
				t.Errorf("Decide: %v, %v", used, err)
			}
			if _, _, err := d.Roster(t.Context(), id, registrar.RosterFilter{Search: "person"}, registrar.Page{First: 10}); err != nil {
				t.Error(err)
			}
			if _, _, err := d.Lectures(t.Context(), "top", registrar.Page{First: 10}); err != nil {
				t.Error(err)
			}
		})
	}
}
