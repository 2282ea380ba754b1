package model

import (
	"context"

	"seatline/internal/registrar"
)

// EnrollPayload is what an enroll came to.
type EnrollPayload struct {
	Status  registrar.EnrollStatus
	Receipt *Receipt

	position func(context.Context) (*QueuePosition, error)
}

// Enrolled is an outcome; position is read only if asked for.
func (s Source) Enrolled(o registrar.Outcome, position func(context.Context) (*QueuePosition, error)) *EnrollPayload {
	return &EnrollPayload{Status: o.Status, Receipt: s.Receipt(o.Receipt), position: position}
}

// Position is where the person stands now.
func (p *EnrollPayload) Position(ctx context.Context) (*QueuePosition, error) { return p.position(ctx) }
