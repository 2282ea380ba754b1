package registrar

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"seatline/ent"
)

const (
	// defaultMaxConns serves one hot lecture and its readers with room to
	// spare; the driver's own default of four does not.
	defaultMaxConns = 16
	connectTimeout  = 5 * time.Second
)

// sessionDefaults bound what a session may do to others, make the isolation
// that the row lock relies on independent of how the server is set up, and have
// every statement planned for the tables as they are: a plan kept from the
// minute before opening, when a lecture was empty, scans it once it is full.
// They travel as start-up parameters: a value that the URL gives wins.
var sessionDefaults = map[string]string{
	"application_name":                    "seatline",
	"statement_timeout":                   "5000",
	"lock_timeout":                        "5000",
	"idle_in_transaction_session_timeout": "5000",
	"default_transaction_isolation":       "read committed",
	"plan_cache_mode":                     "force_custom_plan",
}

// OpenPostgres makes a bounded pool for databaseURL and a client over it. It
// does not connect yet: Seats.Ping tells whether the server answers. shut ends
// the pool when its connections have come back.
//
// Everything pgx understands may stand in the URL, and wins over the defaults
// here: pool_max_conns (16), connect_timeout (5), statement_timeout,
// lock_timeout and idle_in_transaction_session_timeout (5000 ms each). Behind a
// pooler in transaction mode, add default_query_exec_mode=exec, which prepares
// nothing, and have the pooler pass on or ignore the start-up parameters named
// in sessionDefaults (PgBouncer: ignore_startup_parameters). No statement relies
// on the session it runs in.
func OpenPostgres(ctx context.Context, databaseURL string) (client *ent.Client, db *sql.DB, shut func(), err error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("database URL: %w", err)
	}
	if !given(databaseURL, "pool_max_conns") {
		config.MaxConns = defaultMaxConns
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	for name, value := range sessionDefaults {
		if config.ConnConfig.RuntimeParams[name] == "" {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	config.AfterConnect = timesInUTC
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("database pool: %w", err)
	}
	db = stdlib.OpenDBFromPool(pool)
	client = ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
	shut = func() {
		_ = db.Close() // holds no connection of its own
		pool.Close()
	}
	return client, db, shut, nil
}

// given tells whether the URL sets a pool parameter: to pgx, which does not
// know pools, it is one more start-up parameter.
func given(databaseURL, name string) bool {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return false
	}
	_, ok := config.RuntimeParams[name]
	return ok
}

// timesInUTC makes a connection read instants in UTC, as SQLite's do, instead
// of in the zone the process happens to run in.
func timesInUTC(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name:  "timestamptz",
		OID:   pgtype.TimestamptzOID,
		Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}
