package graphqlws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// appendResponse appends response as JSON. Data is copied now: gqlgen's
// generated code uses its buffer again for the next response.
func appendResponse(b []byte, response *graphql.Response) []byte {
	bare := len(response.Errors) == 0 && len(response.Extensions) == 0 &&
		response.Label == "" && response.Path == nil && response.HasNext == nil
	if bare && json.Valid(response.Data) { // Nearly all of them, without marshaling the data a second time.
		b = append(append(b, `{"data":`...), response.Data...)
		return append(b, '}')
	}
	encoded, err := json.Marshal(response)
	if err != nil {
		panic(fmt.Errorf("graphqlws: encoding a response: %w", err))
	}
	return append(b, encoded...)
}

// errorMessage appends the message that ends the operation with the given
// quoted id. The text of an error that has no JSON is not worth a second fault.
func errorMessage(b, id []byte, errs gqlerror.List) []byte {
	payload, err := json.Marshal(errs)
	if err != nil {
		payload, _ = json.Marshal(unpresentable()) // Plain strings always marshal.
	}
	b = append(appendHead(b, id, "error"), `,"payload":`...)
	return append(append(b, payload...), '}')
}

// present runs errors through the error presenter, as executed ones are.
func present(ctx context.Context, exec graphql.GraphExecutor, errs gqlerror.List) gqlerror.List {
	response := exec.DispatchError(ctx, errs)
	if response == nil || len(response.Errors) == 0 {
		return unpresentable()
	}
	return response.Errors
}

// presentPanic makes of a recovered panic what the recover function and the
// presenter make of it. They are the application's, so they may panic too.
func presentPanic(ctx context.Context, exec graphql.GraphExecutor, r any) (errs gqlerror.List) {
	defer func() {
		if recover() != nil {
			errs = unpresentable()
		}
	}()
	presenter, ok := exec.(interface {
		PresentRecoveredError(ctx context.Context, err any) error
	})
	if !ok {
		return unpresentable()
	}
	if presented, ok := errors.AsType[*gqlerror.Error](presenter.PresentRecoveredError(ctx, r)); ok && presented != nil {
		return gqlerror.List{presented}
	}
	return unpresentable()
}

func unpresentable() gqlerror.List {
	return gqlerror.List{{Message: "internal system error", Extensions: map[string]any{"code": "INTERNAL"}}}
}

// streamErrors are what a subscription's source added for its end.
type streamErrors struct {
	mu   sync.Mutex
	errs gqlerror.List
}

func (s *streamErrors) add(err error) {
	presentable, ok := errors.AsType[*gqlerror.Error](err)
	if !ok {
		presentable = gqlerror.Wrap(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, presentable)
}

func (s *streamErrors) list() gqlerror.List {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errs
}

type streamErrorsKey struct{}

func withStreamErrors(ctx context.Context, s *streamErrors) context.Context {
	return context.WithValue(ctx, streamErrorsKey{}, s)
}

// AddSubscriptionError makes a subscription end with `error` instead of
// `complete`. A resolver's source calls it, with the context its resolver was
// given, before it closes its channel. The error passes the presenter.
//
// It reports false under other transports, which have their own way:
// transport.AddSubscriptionError is that of gqlgen's WebSocket transport.
func AddSubscriptionError(ctx context.Context, err error) bool {
	s, ok := ctx.Value(streamErrorsKey{}).(*streamErrors)
	if !ok || err == nil {
		return ok
	}
	s.add(err)
	return true
}
