// Package model holds the GraphQL types that are more than plain data: what
// costs a round trip is read when it is asked for, and once for all who ask.
package model

import (
	"context"
	"sync"

	"seatline/ent"
	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/waitroom"
)

// Lines reads the lines of many lectures in one round trip. *waitroom.Room does.
type Lines interface {
	Lines(ctx context.Context, facts []lecture.Facts) (map[int]waitroom.Line, error)
}

// Lecture is a lecture's row, and its line once somebody asks for it.
type Lecture struct {
	*ent.Lecture
	page *page
}

// page is the lectures that are answered together, so that their lines cost one
// reading between them.
type page struct {
	lines Lines
	rows  []*ent.Lecture
	once  sync.Once
	read  map[int]waitroom.Line
	err   error
}

// Page is the lectures of rows, in their order. A nil row gives a nil lecture.
func Page(lines Lines, rows ...*ent.Lecture) []*Lecture {
	p := &page{lines: lines, rows: rows}
	lectures := make([]*Lecture, len(rows))
	for i, row := range rows {
		if row != nil {
			lectures[i] = &Lecture{Lecture: row, page: p}
		}
	}
	return lectures
}

// withLine is a lecture whose line has been read already.
func withLine(row *ent.Lecture, line waitroom.Line) *Lecture {
	p := &page{read: map[int]waitroom.Line{row.ID: line}}
	p.once.Do(func() {})
	return &Lecture{Lecture: row, page: p}
}

// line is the reading of this lecture's line. All lectures of a page belong to
// one operation, so the first to ask lends its context to all.
func (l *Lecture) line(ctx context.Context) (waitroom.Line, error) {
	p := l.page
	p.once.Do(func() {
		var facts []lecture.Facts
		seen := make(map[int]bool, len(p.rows))
		for _, row := range p.rows {
			if row != nil && !seen[row.ID] {
				seen[row.ID] = true
				facts = append(facts, registrar.FactsOf(row))
			}
		}
		p.read, p.err = p.lines.Lines(ctx, facts)
	})
	if p.err != nil {
		return waitroom.Line{}, p.err
	}
	line, ok := p.read[l.ID]
	if !ok {
		return waitroom.Line{}, lecture.ErrUnavailable
	}
	return line, nil
}

// Description is what it is about; "" where nobody has said.
func (l *Lecture) Description() string {
	if l.Lecture.Description == nil {
		return ""
	}
	return *l.Lecture.Description
}

// SeatsLeft is how many seats are not taken, tickets not deducted.
func (l *Lecture) SeatsLeft() int { return l.Capacity - l.EnrolledCount }

// LineState is what the line is doing.
func (l *Lecture) LineState(ctx context.Context) (waitroom.LineState, error) {
	line, err := l.line(ctx)
	return line.State, err
}

// Waiting is how many people wait.
func (l *Lecture) Waiting(ctx context.Context) (int, error) {
	line, err := l.line(ctx)
	return line.Waiting, err
}

// Settings is how the line is run.
func (l *Lecture) Settings() *lecture.Settings {
	s := registrar.FactsOf(l.Lecture).Settings
	return &s
}
