// Package graph is Seatline's GraphQL: resolvers that adapt the waiting room
// and the registrar, the transports that carry them, and the limits and errors
// between. It decides one thing itself: where the line and the database
// disagree about a person, the row in the database is right (standing.go).
package graph

import (
	"context"
	"errors"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"seatline/ent"
	"seatline/graph/model"
	"seatline/internal/auth"
	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/waitroom"
)

//go:generate go tool gqlgen generate

// Resolver answers the fields of schema.graphql.
type Resolver struct {
	room      *waitroom.Room
	registrar *registrar.Registrar
	guests    *auth.Guests // nil: guest sessions are not enabled
	source    model.Source
}

// NewResolver returns a Resolver over a line and its seats. guests may be nil.
func NewResolver(room *waitroom.Room, reg *registrar.Registrar, guests *auth.Guests) *Resolver {
	return &Resolver{
		room:      room,
		registrar: reg,
		guests:    guests,
		source:    model.Source{Lines: room, Shelf: model.NewShelf(reg)},
	}
}

// startGuest signs a guest in.
func (r *Resolver) startGuest(name string) (*model.Session, error) {
	if r.guests == nil {
		return nil, errNotEnabled
	}
	token, viewer, err := r.guests.Start(name)
	if err != nil {
		return nil, err
	}
	return &model.Session{Token: token, ExpiresAt: viewer.ExpiresAt, Viewer: &viewer}, nil
}

// person is who asks, and the lecture they ask about. An id that is not ours
// never gets further than here.
func person(ctx context.Context, lectureID string) (id int, user string, err error) {
	who, ok := auth.FromContext(ctx)
	if !ok {
		return 0, "", errUnauthenticated
	}
	id, err = idOf(lectureID)
	return id, who.UserKey, err
}

// operator lets operators pass.
func operator(ctx context.Context) error {
	who, ok := auth.FromContext(ctx)
	switch {
	case !ok:
		return errUnauthenticated
	case !who.Operator:
		return errForbidden
	}
	return nil
}

// operated is the lecture that an operator asks about.
func operated(ctx context.Context, lectureID string) (int, error) {
	if err := operator(ctx); err != nil {
		return 0, err
	}
	return idOf(lectureID)
}

func idOf(s string) (int, error) {
	id, ok := lecture.ParseID(s)
	if !ok {
		return 0, lecture.ErrNotFound
	}
	return id, nil
}

// lectureOf is a lecture alone on its page.
func (r *Resolver) lectureOf(row *ent.Lecture, err error) (*model.Lecture, error) {
	if err != nil {
		return nil, err
	}
	return model.Page(r.room, row)[0], nil
}

// created is a lecture that was made just now. That its line cannot be asked for
// must not make the making look as if it had failed: a repetition would make
// another one. Of a new lecture its row says all there is.
func (r *Resolver) created(row *ent.Lecture, err error) (*model.Lecture, error) {
	if err != nil {
		return nil, err
	}
	return model.Page(decided{r.room, row}, row)[0], nil
}

// cancelled is a receipt that was given back just now, or nil. As with created:
// a repetition would answer that there is none.
func (r *Resolver) cancelled(row *ent.Enrollment, err error) (*model.Receipt, error) {
	if err != nil || row == nil {
		return nil, err
	}
	source := r.source
	source.Lines = decided{r.room, row.Edges.Lecture}
	return source.Receipt(row), nil
}

// decided reads the line of a lecture at which the database has decided
// something, and goes by the lecture's row where the line cannot be asked.
type decided struct {
	room model.Lines
	row  *ent.Lecture
}

func (d decided) Lines(ctx context.Context, facts []lecture.Facts) (map[int]waitroom.Line, error) {
	lines, err := d.room.Lines(ctx, facts)
	if errors.Is(err, lecture.ErrUnavailable) {
		return map[int]waitroom.Line{d.row.ID: quietLine(d.row, time.Now())}, nil
	}
	return lines, err
}

// receiptOf is a receipt, or nil for none.
func (r *Resolver) receiptOf(row *ent.Enrollment, err error) (*model.Receipt, error) {
	if err != nil {
		return nil, err
	}
	return r.source.Receipt(row), nil
}

// page is the page that a list's arguments ask for. Its bounds and its cursor
// are the registrar's to judge.
func page(first *int, fallback int, after *string) registrar.Page {
	p := registrar.Page{First: fallback}
	if first != nil {
		p.First = *first
	}
	if after != nil {
		p.After = *after
	}
	return p
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// optional is an input field in the registrar's words.
func optional[T any](o graphql.Omittable[*T]) registrar.Optional[T] {
	v, set := o.ValueOK()
	return registrar.Optional[T]{Set: set, Value: v}
}
