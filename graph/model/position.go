package model

import (
	"context"
	"time"

	"seatline/ent"
	"seatline/internal/waitroom"
)

// Source is where positions, receipts and lectures read what they were not
// given.
type Source struct {
	Lines Lines
	Shelf *Shelf
}

// QueuePosition is a person's place, with the row in the database, if there is
// one, winning over what the line says.
type QueuePosition struct {
	waitroom.Place
	Receipt *Receipt

	id     int
	source Source
}

// Position is place at lecture id, or ENROLLED where row is an active
// enrolment.
func (s Source) Position(id int, place waitroom.Place, row *ent.Enrollment) *QueuePosition {
	p := &QueuePosition{Place: place, id: id, source: s}
	if row == nil {
		return p
	}
	p.Receipt = s.Receipt(row)
	p.Place = waitroom.Place{
		Line:        place.Line,
		Status:      waitroom.Enrolled,
		PollAfterMs: place.PollAfterMs,
	}
	return p
}

// Lecture is the lecture, at least as new as the line's reading.
func (p *QueuePosition) Lecture(ctx context.Context) (*Lecture, error) {
	row, err := p.source.Shelf.At(ctx, p.id, p.Line.Version)
	if err != nil {
		return nil, err
	}
	return withLine(row, p.Line), nil
}

// LineState is what the line is doing.
func (p *QueuePosition) LineState() waitroom.LineState { return p.Line.State }

// Total is how many people wait.
func (p *QueuePosition) Total() int { return p.Line.Waiting }

// Message is the operator's word.
func (p *QueuePosition) Message() *string { return p.Line.Message }

// ServerTime is the line's clock when this was read.
func (p *QueuePosition) ServerTime() time.Time { return p.Line.ServerTime }

// LineStats is a line in figures.
type LineStats struct {
	waitroom.Stats

	row *ent.Lecture
}

// Stats is a reading of the figures of lecture id.
func (s Source) Stats(ctx context.Context, id int, figures waitroom.Stats) (*LineStats, error) {
	row, err := s.Shelf.At(ctx, id, figures.Line.Version)
	if err != nil {
		return nil, err
	}
	return &LineStats{Stats: figures, row: row}, nil
}

// Lecture is the lecture.
func (s *LineStats) Lecture() *Lecture { return withLine(s.row, s.Line) }

// LineState is what the line is doing.
func (s *LineStats) LineState() waitroom.LineState { return s.Line.State }

// Waiting is how many people are in line and there.
func (s *LineStats) Waiting() int { return s.Line.Waiting }

// Parked is how many people are set aside because they are away.
func (s *LineStats) Parked() int { return s.Line.Parked }

// Held is how many seats tickets and enrolments in flight keep.
func (s *LineStats) Held() int { return s.Line.Held }

// InFlight is how many enrolments are in flight.
func (s *LineStats) InFlight() int { return s.Line.InFlight }

// SeatsLeft is how many seats are not taken. It comes from the same row as
// EnrolledCount and Capacity, so that the three always add up.
func (s *LineStats) SeatsLeft() int { return s.row.Capacity - s.row.EnrolledCount }

// EnrolledCount is how many seats are taken.
func (s *LineStats) EnrolledCount() int { return s.row.EnrolledCount }

// Capacity is how many seats there are.
func (s *LineStats) Capacity() int { return s.row.Capacity }

// ServerTime is the line's clock when this was read.
func (s *LineStats) ServerTime() time.Time { return s.Line.ServerTime }
