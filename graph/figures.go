package graph

import (
	"context"
	"errors"
	"io"

	"seatline/graph/model"
	"seatline/internal/lecture"
	"seatline/internal/waitroom"
)

// figures tells an operator how a line does, once a tick. Once it has begun, a
// tick whose row cannot be had is left out; the next one says it all again.
type figures struct {
	begun bool
	r     *Resolver
	id    int
	ticks <-chan waitroom.Stats
}

func (f *figures) next(ctx context.Context) (*model.LineStats, error) {
	for {
		select {
		case tick, ok := <-f.ticks:
			if !ok {
				return nil, io.EOF
			}
			s, err := f.r.source.Stats(ctx, f.id, tick)
			if err == nil || !f.begun || !errors.Is(err, lecture.ErrUnavailable) {
				f.begun = true
				return s, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
