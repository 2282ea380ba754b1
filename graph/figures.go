package graph

import (
	"context"
	"errors"
	"io"

	"seatline/graph/model"
	"seatline/internal/lecture"
	"seatline/internal/waitroom"
)

// figures tells an operator how a line does, once a tick. A tick whose row
// cannot be had is left out; the next one says it all again.
type figures struct {
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
			if err == nil || !errors.Is(err, lecture.ErrUnavailable) {
				return s, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
