package registrar

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"seatline/ent"
	"seatline/ent/enrollment"
	entlecture "seatline/ent/lecture"
	"seatline/internal/lecture"
)

// tries is how often a transaction that the database asks to repeat is run.
const tries = 4

// transact runs work in a transaction and commits, unless work fails or says
// errNothingToCommit. errUndecided tells that COMMIT was sent and what became
// of it is not known. A panic in work is rolled back and becomes a panicError.
func (s *Seats) transact(ctx context.Context, work func(context.Context, *ent.Tx) error) (err error) {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	// What goes wrong while rolling back adds nothing: the connection is
	// broken then, and with it the transaction.
	defer func() {
		if p := recover(); p != nil {
			_ = tx.Rollback()
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	if err := work(ctx, tx); err != nil {
		_ = tx.Rollback()
		if errors.Is(err, errNothingToCommit) {
			return nil
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		if refused(err) {
			return err
		}
		return fmt.Errorf("%w: %w", errUndecided, err)
	}
	return nil
}

// repeat runs work in a transaction until it is decided, a few times at most.
// It is for work that begins with the row lock and finds out what an earlier
// try has left behind, so that running it again is safe.
func (s *Seats) repeat(ctx context.Context, work func(context.Context, *ent.Tx) error) error {
	for try := 1; ; try++ {
		err := s.transact(ctx, work)
		if err == nil || try == tries || !conflict(err) && !errors.Is(err, errUndecided) {
			return err
		}
		if !pause(ctx, try) {
			return err
		}
	}
}

// pause waits a little, longer with every try and never the same for two that
// collided; false when ctx ended first.
func pause(ctx context.Context, try int) bool {
	step := 4 * time.Millisecond << try
	timer := time.NewTimer(step/2 + rand.N(step))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lock reads a lecture and holds its row until the transaction ends. On SQLite
// the transaction itself, begun IMMEDIATE, is the lock. lecture.ErrNotFound.
func (s *Seats) lock(ctx context.Context, tx *ent.Tx, id int) (*ent.Lecture, error) {
	query := tx.Lecture.Query().Where(entlecture.ID(id))
	if s.postgres {
		query.ForUpdate()
	}
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %d", lecture.ErrNotFound, id)
	}
	return row, err
}

// The statements of a batch have one constant text whatever its size, so that
// they are prepared once; rowsOf's, after a fault alone, has not. A plain
// user_key = ANY(…) would be planned, on a table that was never analysed, as a
// walk over the whole lecture; LATERAL looks each key up.
const (
	activePostgres = `SELECT e.id, e.user_key, e.number, e.created_at
		FROM unnest($2::text[]) AS m (user_key),
		LATERAL (SELECT id, user_key, number, created_at FROM enrollments
			WHERE lecture_id = $1::bigint AND user_key = m.user_key AND cancelled_at IS NULL LIMIT 1) AS e`
	activeSQLite = `SELECT e.id, e.user_key, e.number, e.created_at
		FROM json_each($2) AS m
		JOIN enrollments AS e ON e.lecture_id = $1 AND e.user_key = m.value AND e.cancelled_at IS NULL`

	insertPostgres = `INSERT INTO enrollments (id, lecture_id, user_key, number, created_at)
		SELECT m.id::uuid, $1::bigint, m.user_key, $2::bigint + m.place, $3::timestamptz
		FROM unnest($4::text[], $5::text[]) WITH ORDINALITY AS m (id, user_key, place)`
	insertSQLite = `INSERT INTO enrollments (id, lecture_id, user_key, number, created_at)
		SELECT m.value ->> 0, $1, m.value ->> 1, $2 + m.key + 1, $3
		FROM json_each($4) AS m`
)

// active looks up which of users have an active row, in one statement.
func (s *Seats) active(ctx context.Context, tx *ent.Tx, id int, users []string) (map[string]*ent.Enrollment, error) {
	if len(users) == 0 {
		return nil, nil
	}
	query, list := activePostgres, any(users)
	if !s.postgres {
		query, list = activeSQLite, asJSON(users)
	}
	rows, err := tx.QueryContext(ctx, query, id, list)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	active := make(map[string]*ent.Enrollment)
	for rows.Next() {
		e := &ent.Enrollment{LectureID: id}
		if err := rows.Scan(&e.ID, &e.UserKey, &e.Number, &e.CreatedAt); err != nil {
			return nil, err
		}
		active[e.UserKey] = e
	}
	return active, rows.Err()
}

// rowsOf finds, for each claim, its person's active row, or else the row that
// this very claim led to and that was cancelled since; nil where there is
// neither.
func (s *Seats) rowsOf(ctx context.Context, tx *ent.Tx, id int, claims []lecture.Claim) ([]*ent.Enrollment, error) {
	users := make([]string, len(claims))
	for i, claim := range claims {
		users[i] = claim.User
	}
	active, err := s.active(ctx, tx, id, users)
	if err != nil {
		return nil, err
	}
	rows := make([]*ent.Enrollment, len(claims))
	without := make(map[uuid.UUID]int)
	for i, claim := range claims {
		if rows[i] = active[claim.User]; rows[i] != nil {
			continue
		}
		if key, err := rowID(claim); err == nil {
			without[key] = i
		}
	}
	if len(without) == 0 {
		return rows, nil
	}
	own, err := tx.Enrollment.Query().Where(enrollment.IDIn(slices.Collect(maps.Keys(without))...)).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range own {
		rows[without[row.ID]] = row
	}
	return rows, nil
}

// rowID is the id of the row that a claim leads to: a UUIDv7 of the claim's
// instant, by the line's clock, with the attempt as its random part. So a claim
// cannot lead to two rows, and its row is known for its own when it has long
// been cancelled.
func rowID(claim lecture.Claim) (id uuid.UUID, err error) {
	attempt, err := strconv.ParseUint(claim.Attempt, 16, 64)
	if err != nil {
		return uuid.Nil, fmt.Errorf("attempt %q: %w", claim.Attempt, err)
	}
	const version, variant = 7, 0b10
	at := uint64(max(0, claim.Until-lecture.ClaimLife.Milliseconds()))
	binary.BigEndian.PutUint64(id[:8], at<<16|version<<12|attempt>>62)
	binary.BigEndian.PutUint64(id[8:], variant<<62|attempt<<2>>2)
	return id, nil
}

// insert writes the rows that these claims lead to, of people who have found a
// seat, numbered on from last in their order.
func (s *Seats) insert(ctx context.Context, tx *ent.Tx, id, last int, at time.Time, claims []lecture.Claim) ([]*ent.Enrollment, error) {
	rows := make([]*ent.Enrollment, len(claims))
	keys, users := make([]string, len(claims)), make([]string, len(claims))
	for i, claim := range claims {
		key, err := rowID(claim)
		if err != nil {
			return nil, err
		}
		rows[i] = &ent.Enrollment{ID: key, LectureID: id, UserKey: claim.User, Number: last + i + 1, CreatedAt: at}
		keys[i], users[i] = key.String(), claim.User
	}
	query, args := insertPostgres, []any{id, last, at, keys, users}
	if !s.postgres {
		pairs := make([][2]string, len(users))
		for i := range users {
			pairs[i] = [2]string{keys[i], users[i]}
		}
		query, args = insertSQLite, []any{id, last, at, asJSON(pairs)}
	}
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return nil, err
	}
	if n != int64(len(users)) {
		return nil, fmt.Errorf("inserted %d rows of %d", n, len(users))
	}
	return rows, nil
}

// asJSON is how a list travels to SQLite, as one argument.
func asJSON[T string | [2]string](list []T) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(text)
}
