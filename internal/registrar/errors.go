package registrar

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"seatline/internal/lecture"
)

// InvalidError says which input was refused and why, in words made for the
// person who sent it. Methods that take input from outside return it as
// *InvalidError.
type InvalidError struct {
	Field  string // in the API's spelling: "title", "settings.burst", "after"
	Reason string // for instance "must be between 1 and 10000"
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Reason }

var (
	// errUndecided: COMMIT was sent and its answer is not known. Only a
	// reading under the row lock tells what became of it.
	errUndecided = errors.New("the outcome of the commit is not known")
	// errNothingToCommit is how a transaction's work says that it only read.
	errNothingToCommit = errors.New("nothing to commit")
)

// panicError is a panic inside a transaction, which has been rolled back.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// Primary result codes of SQLite that matter here.
const (
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteReadOnly   = 8
	sqliteInterrupt  = 9
	sqliteIOError    = 10
	sqliteFull       = 13
	sqliteCantOpen   = 14
	sqliteTooBig     = 18
	sqliteConstraint = 19
	sqliteMismatch   = 20
)

// sqliteCode is the primary result code of an error of SQLite's driver, which
// this package does not import; −1 for any other error.
func sqliteCode(err error) int {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code() & 0xff
	}
	return -1
}

// conflict tells whether err asks to run the whole transaction again: the
// database could not serialize it, or a row that the look-up could not see yet
// is there now.
func conflict(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "40001", "40P01", "23505":
			return true
		}
		return false
	}
	switch sqliteCode(err) {
	case sqliteBusy, sqliteLocked:
		return true
	}
	return false
}

// blameable tells whether err comes from what a transaction wrote, so that a
// part of the batch may well succeed. The rest concerns everybody: a server
// that does not answer, a schema that is not there, a panic.
func blameable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if gone(pg) {
			return false
		}
		switch class(pg) {
		case "26", "28", "3D", "3F", "42", "XX":
			return false
		}
		return true
	}
	switch sqliteCode(err) {
	case sqliteConstraint, sqliteTooBig, sqliteMismatch, sqliteBusy, sqliteLocked:
		return true
	}
	return false
}

// refused tells whether a failed COMMIT certainly did not happen. A connection
// that broke, or a server that ended it, proves nothing.
func refused(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (class(pg) == "23" || pg.Code == "40001" || pg.Code == "40P01")
}

// unavailable tells whether err means that the database did not answer in time
// or refused for now, so that asking again may help.
func unavailable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return gone(pg) || conflict(err)
	}
	switch sqliteCode(err) {
	case sqliteBusy, sqliteLocked, sqliteReadOnly, sqliteInterrupt, sqliteIOError, sqliteFull, sqliteCantOpen:
		return true
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.Is(err, errUndecided) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &connect) || errors.As(err, &network) ||
		pgconn.SafeToRetry(err)
}

// gone tells whether the server answered that it cannot serve now: no
// connection, resources, a lock or statement that took too long, shutdown, a
// system error, a standby, a session ended for idling.
func gone(pg *pgconn.PgError) bool {
	switch class(pg) {
	case "08", "53", "55", "57", "58":
		return true
	}
	return pg.Code == "25006" || pg.Code == "25P03"
}

// class is the class of an SQLSTATE, which a pooler may fail to send.
func class(pg *pgconn.PgError) string { return pg.Code[:min(2, len(pg.Code))] }

// fail turns what went wrong in a call with this context into what the call
// returns: the answers that are part of a method's contract as they are, the
// caller's own end as it is, lecture.ErrUnavailable where asking again may
// help. The driver's error stays wrapped, for the log.
func fail(ctx context.Context, op string, err error) error {
	var invalid *InvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid), errors.Is(err, lecture.ErrNotFound), errors.Is(err, lecture.ErrUnavailable):
		return fmt.Errorf("%s: %w", op, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", op, ctx.Err())
	case unavailable(err):
		return fmt.Errorf("%s: %w: %w", op, lecture.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}
