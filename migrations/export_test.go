package migrations

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3"
)

// Revert takes all migrations back: nothing in the product does.
func Revert(ctx context.Context, db *sql.DB) error {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return err
	}
	_, err = provider.DownTo(ctx, 0)
	return err
}
