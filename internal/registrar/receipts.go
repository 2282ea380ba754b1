package registrar

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seatline/ent"
	"seatline/ent/enrollment"
	"seatline/internal/lecture"
)

// rosterChunk is how many rows EachOfRoster reads at once.
const rosterChunk = 500

// RosterFilter chooses entries of a roster.
type RosterFilter struct {
	Search           string // part of a user key, byte for byte
	IncludeCancelled bool
}

// Standing reads a person's active enrolment (nil when there is none; with
// Edges.Lecture when there is) and the lecture's seat_version at that instant.
// lecture.ErrNotFound when there is no such lecture.
func (s *Seats) Standing(ctx context.Context, id int, user string) (*ent.Enrollment, int64, error) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	row, version, err := s.standing(bounded, id, user)
	if err != nil {
		return nil, 0, fail(ctx, "read an enrolment", err)
	}
	if row == nil {
		return nil, version, nil
	}
	if row.Edges.Lecture, err = s.Lecture(ctx, id); err != nil {
		return nil, 0, err
	}
	return row, version, nil
}

func (s *Seats) standing(ctx context.Context, id int, user string) (*ent.Enrollment, int64, error) {
	if !validUserKey(user) {
		user = "" // nobody's
	}
	rows, err := s.client.QueryContext(ctx, `SELECT l.seat_version, e.id, e.number, e.created_at
		FROM lectures AS l
		LEFT JOIN enrollments AS e ON e.lecture_id = l.id AND e.user_key = $2 AND e.cancelled_at IS NULL
		WHERE l.id = $1`, id, user)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, 0, errors.Join(rows.Err(), lecture.ErrNotFound)
	}
	var version int64
	var key uuid.NullUUID
	var number sql.NullInt64
	var at sql.NullTime
	if err := rows.Scan(&version, &key, &number, &at); err != nil {
		return nil, 0, err
	}
	if !key.Valid {
		return nil, version, rows.Err()
	}
	return &ent.Enrollment{
		ID: key.UUID, LectureID: id, UserKey: user, Number: int(number.Int64), CreatedAt: at.Time,
	}, version, rows.Err()
}

// Receipts is a page of all of a person's enrolments, newest first, each with
// Edges.Lecture, and whether more follow. It costs two statements.
// *InvalidError.
func (s *Seats) Receipts(ctx context.Context, user string, page Page) ([]*ent.Enrollment, bool, error) {
	after, more, err := after(page, receiptCursor, uuid.Parse)
	if err != nil {
		return nil, false, fail(ctx, "list receipts", err)
	}
	if !validUserKey(user) {
		return nil, false, nil
	}
	query := s.client.Enrollment.Query().Where(enrollment.UserKey(user))
	if more {
		query.Where(enrollment.IDLT(after))
	}
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	rows, err := query.
		Order(enrollment.ByID(entsql.OrderDesc())).
		Limit(page.First + 1).
		WithLecture().
		All(bounded)
	if err != nil {
		return nil, false, fail(ctx, "list receipts", err)
	}
	rows, more = cut(rows, page.First)
	return rows, more, nil
}

// CountReceipts counts all of a person's enrolments.
func (s *Seats) CountReceipts(ctx context.Context, user string) (int, error) {
	if !validUserKey(user) {
		return 0, nil
	}
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	n, err := s.client.Enrollment.Query().Where(enrollment.UserKey(user)).Count(bounded)
	return n, fail(ctx, "count receipts", err)
}

// Roster is a page of a lecture's enrolments by number, each with
// Edges.Lecture, and whether more follow. It costs two statements.
// lecture.ErrNotFound, *InvalidError.
func (s *Seats) Roster(ctx context.Context, id int, f RosterFilter, page Page) ([]*ent.Enrollment, bool, error) {
	after, _, err := after(page, rosterCursor, strconv.Atoi)
	if err != nil {
		return nil, false, fail(ctx, "read a roster", err)
	}
	query, err := s.roster(id, f)
	if err != nil {
		return nil, false, fail(ctx, "read a roster", err)
	}
	of, err := s.Lecture(ctx, id)
	if err != nil {
		return nil, false, err
	}
	rows, err := s.rosterAfter(ctx, query, of, after, page.First+1)
	if err != nil {
		return nil, false, err
	}
	rows, more := cut(rows, page.First)
	return rows, more, nil
}

// CountRoster counts a lecture's enrolments; none where there is no lecture.
// *InvalidError.
func (s *Seats) CountRoster(ctx context.Context, id int, f RosterFilter) (int, error) {
	query, err := s.roster(id, f)
	if err != nil {
		return 0, fail(ctx, "count a roster", err)
	}
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	n, err := query.Count(bounded)
	return n, fail(ctx, "count a roster", err)
}

// EachOfRoster calls visit with each of a lecture's enrolments by number, each
// with Edges.Lecture, reading them in chunks, and stops at visit's first error,
// which it returns as it is. lecture.ErrNotFound comes before the first visit.
func (s *Seats) EachOfRoster(ctx context.Context, id int, includeCancelled bool, visit func(*ent.Enrollment) error) error {
	of, err := s.Lecture(ctx, id)
	if err != nil {
		return err
	}
	number := 0
	for {
		query, err := s.roster(id, RosterFilter{IncludeCancelled: includeCancelled})
		if err != nil {
			return err
		}
		rows, err := s.rosterAfter(ctx, query, of, number, rosterChunk)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := visit(row); err != nil {
				return err
			}
			number = row.Number
		}
		if len(rows) < rosterChunk {
			return nil
		}
	}
}

func (s *Seats) roster(id int, f RosterFilter) (*ent.EnrollmentQuery, error) {
	query := s.client.Enrollment.Query().Where(enrollment.LectureID(id))
	if !f.IncludeCancelled {
		query.Where(enrollment.CancelledAtIsNil())
	}
	if f.Search == "" {
		return query, nil
	}
	if err := checkSearch(f.Search); err != nil {
		return nil, err
	}
	return query.Where(contains(enrollment.FieldUserKey, f.Search, s.postgres)), nil
}

// rosterAfter reads entries of a roster with numbers above number.
func (s *Seats) rosterAfter(ctx context.Context, query *ent.EnrollmentQuery, of *ent.Lecture, number, most int) ([]*ent.Enrollment, error) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	rows, err := query.
		Where(enrollment.NumberGT(number)).
		Order(enrollment.ByNumber()).
		Limit(most).
		All(bounded)
	if err != nil {
		return nil, fail(ctx, "read a roster", err)
	}
	for _, row := range rows {
		row.Edges.Lecture = of
	}
	return rows, nil
}

// MovedSince tells whether the person enrolled at the lecture, or cancelled, at
// t or later: proof of a place in line from before that is worth nothing.
func (s *Seats) MovedSince(ctx context.Context, id int, user string, t time.Time) (bool, error) {
	if !validUserKey(user) {
		return false, nil
	}
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	moved, err := s.client.Enrollment.Query().
		Where(
			enrollment.LectureID(id), enrollment.UserKey(user),
			enrollment.Or(enrollment.CreatedAtGTE(instant(t)), enrollment.CancelledAtGTE(instant(t))),
		).Exist(bounded)
	return moved, fail(ctx, "look for an enrolment since", err)
}
