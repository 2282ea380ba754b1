package model

import (
	"context"
	"time"

	"seatline/ent"
)

// Receipt is an enrolment, active or cancelled.
type Receipt struct {
	row     *ent.Enrollment
	lecture *Lecture // nil = read when asked for
	source  Source
}

// Receipt is the receipt of one row, or nil for none.
func (s Source) Receipt(row *ent.Enrollment) *Receipt {
	if row == nil {
		return nil
	}
	return s.Receipts([]*ent.Enrollment{row})[0]
}

// Receipts is the receipts of rows, whose lectures share one reading of their
// lines.
func (s Source) Receipts(rows []*ent.Enrollment) []*Receipt {
	lectures := make([]*ent.Lecture, len(rows))
	for i, row := range rows {
		lectures[i] = row.Edges.Lecture
	}
	page := Page(s.Lines, lectures...)
	receipts := make([]*Receipt, len(rows))
	for i, row := range rows {
		receipts[i] = &Receipt{row: row, lecture: page[i], source: s}
	}
	return receipts
}

// ID is the receipt's id.
func (r *Receipt) ID() string { return r.row.ID.String() }

// Number is the running number at the lecture.
func (r *Receipt) Number() int { return r.row.Number }

// Lecture is the lecture.
func (r *Receipt) Lecture(ctx context.Context) (*Lecture, error) {
	if r.lecture != nil {
		return r.lecture, nil
	}
	row, err := r.source.Shelf.At(ctx, r.row.LectureID, 0)
	if err != nil {
		return nil, err
	}
	return Page(r.source.Lines, row)[0], nil
}

// UserKey is who is enrolled.
func (r *Receipt) UserKey() string { return r.row.UserKey }

// EnrolledAt is when the seat was taken.
func (r *Receipt) EnrolledAt() time.Time { return r.row.CreatedAt }

// CancelledAt is when it was given back, or nil.
func (r *Receipt) CancelledAt() *time.Time { return r.row.CancelledAt }
