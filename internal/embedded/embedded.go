// Package embedded is both stores within the process, so that Seatline runs with
// nothing else installed: miniredis for the line, SQLite for the seats. It is for
// trying things out and for tests, up to some thousands of people in line. What
// the stores of a real server promise beyond that (several instances, a line that
// outlives the process), these do not.
package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"modernc.org/sqlite"

	"seatline/ent"
	"seatline/ent/migrate"
)

// ErrInUse is returned by Open when another process keeps its seats in the folder.
// Each would have a line of its own for the same seats.
var ErrInUse = errors.New("another process uses the folder")

// fold makes texts equal that differ in the case of their letters, as ILIKE does:
// SQLite by itself knows A–Z alone.
func init() {
	sqlite.MustRegisterDeterministicScalarFunction("fold", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if text, ok := args[0].(string); ok {
			return strings.ToLower(text), nil
		}
		return args[0], nil
	})
}

// connections bounds those to SQLite. Writers take turns whatever their number;
// the others read beside them. One would be too few: whoever queries while it
// holds a transaction would wait for itself.
const connections = 8

// Stores are the open stores.
type Stores struct {
	Redis redis.UniversalClient
	Ent   *ent.Client
	DB    *sql.DB

	line   *miniredis.Miniredis
	lock   *sql.DB
	held   *sql.Conn // of lock
	remove string    // the temporary folder
}

// Open opens the stores. The seats are kept in dataDir, which is made where it is
// missing, or in a temporary folder that Close removes when dataDir is empty. The
// line is in memory.
func Open(ctx context.Context, dataDir string) (stores *Stores, err error) {
	s := new(Stores)
	defer func() {
		if err != nil {
			err = fmt.Errorf("embedded stores: %w", errors.Join(err, s.Close()))
		}
	}()
	if dataDir == "" {
		if dataDir, err = os.MkdirTemp("", "seatline-"); err != nil {
			return nil, err
		}
		s.remove = dataDir
	}
	if err := s.openSeats(ctx, dataDir); err != nil {
		return nil, err
	}
	s.openLine()
	return s, nil
}

func (s *Stores) openSeats(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := s.claim(ctx, filepath.Join(dir, "lock.db")); err != nil {
		return err
	}
	if s.DB, err = sql.Open("sqlite", dsn(filepath.Join(dir, "seats.db"))); err != nil {
		return err
	}
	s.DB.SetMaxOpenConns(connections)
	s.DB.SetMaxIdleConns(connections)
	s.Ent = ent.NewClient(ent.Driver(entsql.OpenDB(dialect.SQLite, s.DB)))
	// Creating tables writes to their descriptions, which the process has once.
	tables, err := schema.CopyTables(migrate.Tables)
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if err := migrate.Create(ctx, s.Ent.Schema, tables); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// claim holds the folder for this process: an exclusive transaction on a database
// of its own, which every system knows how to lock and lets go of when the
// process ends.
func (s *Stores) claim(ctx context.Context, path string) (err error) {
	if s.lock, err = sql.Open("sqlite", fileURL(path)); err != nil {
		return err
	}
	if s.held, err = s.lock.Conn(ctx); err != nil {
		return err
	}
	_, err = s.held.ExecContext(ctx, "BEGIN EXCLUSIVE")
	const busy = 5
	var coded interface{ Code() int }
	if errors.As(err, &coded) && coded.Code()&0xff == busy {
		return fmt.Errorf("%w: %s", ErrInUse, filepath.Dir(path))
	}
	return err
}

// dsn opens every connection of the pool alike. A transaction takes the write
// lock as it begins, which stands in for the row lock of PostgreSQL; one that
// read first could not wait for it. Times are written as text that compares and
// sorts as they do, in UTC.
func dsn(path string) string {
	return fileURL(path,
		"_pragma=foreign_keys(1)",
		"_pragma=busy_timeout(10000)",
		"_pragma=journal_mode(WAL)",
		"_pragma=synchronous(NORMAL)",
		"_txlock=immediate",
		"_time_format=sqlite",
		"_timezone=UTC",
	)
}

// fileURL names a file whatever signs its path contains.
func fileURL(path string, parameters ...string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: strings.Join(parameters, "&")}
	return u.String()
}

// openLine starts miniredis without a port: its clients are in this process.
func (s *Stores) openLine() {
	s.line = miniredis.NewMiniRedis()
	s.line.ClockTTL(true) // or nothing would ever expire
	s.Redis = redis.NewClient(&redis.Options{
		Addr: "embedded",
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := s.line.Dial()
			if err != nil {
				return nil, err
			}
			return newQueued(conn), nil
		},
		ContextTimeoutEnabled: true, // or no deadline holds
		// What miniredis does not know is not asked of it.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Close closes the stores and removes what is temporary. It may be called once.
func (s *Stores) Close() error {
	var errs []error
	if s.Redis != nil {
		// Before the server: a client that dials would start it again.
		errs = append(errs, s.Redis.Close())
		s.line.Close()
	}
	if s.held != nil {
		errs = append(errs, s.held.Close())
	}
	for _, db := range []*sql.DB{s.DB, s.lock} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.remove != "" {
		errs = append(errs, os.RemoveAll(s.remove))
	}
	return errors.Join(errs...)
}
