// Package migrations brings a PostgreSQL database to the schema this build
// needs. The files are versioned and embedded, so a binary carries its own; a
// test holds them and the ent schema together. SQLite has no migrations: it
// gets its tables from the ent schema.
//
// A migration runs in a transaction under the session's statement_timeout and
// lock_timeout; one that needs longer says so itself with SET LOCAL.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Apply runs the migrations that db lacks. Several instances may call it at
// once: one works while the others wait for its session lock, for as long as
// ctx lets them and at most a minute. The lock belongs to a session, so a
// database behind a pooler in transaction mode is migrated over a direct URL.
func Apply(ctx context.Context, db *sql.DB) error {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}

// Applied tells whether db lacks none of the migrations, for an instance that
// leaves it to somebody else to run them.
func Applied(ctx context.Context, db *sql.DB) (bool, error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return false, fmt.Errorf("migrations: %w", err)
	}
	pending, err := provider.HasPending(ctx)
	if err != nil {
		return false, fmt.Errorf("migrations: %w", err)
	}
	return !pending, nil
}
