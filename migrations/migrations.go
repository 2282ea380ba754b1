// Package migrations brings a PostgreSQL database to the schema this build
// needs.
package migrations

import (
	"context"
	"database/sql"
)

// Apply runs the migrations that db lacks. Several instances may call it at
// once: one works, the others wait.
func Apply(ctx context.Context, db *sql.DB) error { panic("not written yet") }
