package migrations_test

import (
	"bytes"
	"context"
	"database/sql"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"seatline/ent"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/migrations"
)

func open(t *testing.T, url string) (*ent.Client, *sql.DB) {
	t.Helper()
	client, db, shut, err := registrar.OpenPostgres(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shut)
	return client, db
}

func TestSeveralInstancesStartAtOnce(t *testing.T) {
	url := testenv.Postgres(t)
	_, first := open(t, url)
	if done, err := migrations.Applied(t.Context(), first); done || err != nil {
		t.Fatalf("Applied on an empty database: %v, %v", done, err)
	}
	group, ctx := errgroup.WithContext(t.Context())
	for range 4 {
		_, db := open(t, url)
		group.Go(func() error { return migrations.Apply(ctx, db) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if done, err := migrations.Applied(t.Context(), first); !done || err != nil {
		t.Fatalf("Applied afterwards: %v, %v", done, err)
	}
	var runs int
	if err := first.QueryRowContext(context.Background(), `SELECT count(*) FROM goose_db_version WHERE version_id > 0`).Scan(&runs); err != nil {
		t.Fatal(err)
	}
	if runs != 1 {
		t.Errorf("one migration was recorded %d times", runs)
	}
}

func TestMigrationsFitTheEntSchema(t *testing.T) {
	client, db := open(t, testenv.Postgres(t))
	if err := migrations.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if drift := drift(t, client); drift != "" {
		t.Errorf("the ent schema has what the migrations lack; run the generator:\n%s", drift)
	}

	// The planner that looks for drift does not see collations.
	var collation string
	const query = `SELECT collation_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = 'enrollments' AND column_name = 'user_key'`
	if err := db.QueryRowContext(context.Background(), query).Scan(&collation); err != nil {
		t.Fatalf("collation of user_key: %v", err)
	}
	if collation != "C" {
		t.Errorf("user_key has collation %q", collation)
	}

	// It sees everything else that the guarantees rest on.
	for _, change := range []string{
		`ALTER TABLE lectures DROP CONSTRAINT ck_lecture_enrolled_count`,
		`DROP INDEX uk_enrollment_lecture_user`,
		`ALTER TABLE lectures DROP COLUMN seat_version`,
	} {
		if _, err := db.ExecContext(context.Background(), change); err != nil {
			t.Fatal(err)
		}
		name := change[strings.LastIndexByte(change, ' ')+1:]
		if drift := drift(t, client); !strings.Contains(drift, name) {
			t.Errorf("after %q the drift test sees %q", change, drift)
		}
	}
}

func TestTheWayBack(t *testing.T) {
	_, db := open(t, testenv.Postgres(t))
	if err := migrations.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Revert(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(t.Context(), db); err != nil {
		t.Fatalf("after the way back: %v", err)
	}
}

// drift is the SQL that would bring the database to the ent schema.
func drift(t *testing.T, client *ent.Client) string {
	t.Helper()
	var buf bytes.Buffer
	if err := client.Schema.WriteTo(context.WithoutCancel(t.Context()), &buf); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}
