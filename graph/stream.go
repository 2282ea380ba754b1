package graph

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// A feed is a subscription whose events are made when they are asked for, on
// the goroutine that asks: turning a place into a position costs no goroutine
// of its own, and what nobody reads is not made.
type feed struct {
	pull func(ctx context.Context) error // puts one event in the channel; io.EOF when there are no more
}

type feedKey struct{}

// feedOf makes the channel that gqlgen wants out of next. next returns io.EOF
// when the story is over; any other error ends the subscription as an error of
// the whole response.
func feedOf[T any](ctx context.Context, next func(context.Context) (T, error)) <-chan T {
	events := make(chan T, 1)
	f := ctx.Value(feedKey{}).(*feed) // set by feeds around every operation
	f.pull = func(ctx context.Context) error {
		event, err := next(ctx)
		if err == nil {
			events <- event // empty: the one before has been read
		}
		return err
	}
	return events
}

// feeds pulls before gqlgen receives, so the event is there when it does.
func feeds(log *slog.Logger) graphql.OperationMiddleware {
	present, recovered := presenter(log), recoverer(log)
	return func(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
		f := &feed{}
		respond := next(context.WithValue(ctx, feedKey{}, f))
		ended := false
		return func(ctx context.Context) *graphql.Response {
			if ended {
				return nil
			}
			if f.pull == nil {
				return respond(ctx)
			}
			err := pullSafely(ctx, f, recovered)
			if err == nil {
				return respond(ctx)
			}
			ended = true
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return &graphql.Response{Errors: gqlerror.List{present(ctx, err)}}
		}
	}
}

// pullSafely turns a panic into the end of this one stream.
func pullSafely(ctx context.Context, f *feed, recovered graphql.RecoverFunc) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = recovered(ctx, v)
		}
	}()
	return f.pull(ctx)
}
