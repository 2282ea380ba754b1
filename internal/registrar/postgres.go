package registrar

import (
	"context"
	"database/sql"

	"seatline/ent"
)

// OpenPostgres makes a bounded pool for databaseURL and a client over it. It
// does not connect yet: Seats.Ping tells. shut ends the pool.
func OpenPostgres(ctx context.Context, databaseURL string) (client *ent.Client, db *sql.DB, shut func(), err error) {
	panic("not written yet")
}
