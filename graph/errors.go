package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seatline/graph/model"
	"seatline/internal/auth"
	"seatline/internal/lecture"
	"seatline/internal/registrar"
)

// The closed set of codes, beside gqlgen's own for parsing, validation,
// complexity and persisted queries.
const (
	codeUnauthenticated = "UNAUTHENTICATED"
	codeForbidden       = "FORBIDDEN"
	codeNotFound        = "NOT_FOUND"
	codeBadUserInput    = "BAD_USER_INPUT"
	codeNotEnabled      = "NOT_ENABLED"
	codeRateLimited     = "RATE_LIMITED"
	codeUnavailable     = "UNAVAILABLE"
	codeInternal        = "INTERNAL"
)

var (
	// errUnauthenticated: the operation needs a signed-in viewer.
	errUnauthenticated = errors.New("sign in first")
	// errForbidden: the viewer may not do this.
	errForbidden = errors.New("for operators only")
	// errNotEnabled: this server does not offer it.
	errNotEnabled = errors.New("not enabled on this server")
	// errPanic: a resolver panicked; it has been logged with its stack.
	errPanic = errors.New("panic")
)

// RateLimited is the refusal of somebody who asks too often.
type RateLimited struct {
	RetryAfter time.Duration
}

func (e *RateLimited) Error() string { return "too many requests" }

// retryAfter is when to ask again after UNAVAILABLE: long enough for a batch or
// a lock to pass, short enough to save a ticket.
const retryAfter = time.Second

// problem is what a client is told of an error.
type problem struct {
	code   string
	text   string
	status int // over plain HTTP
	retry  time.Duration
	field  string // of the input, where one is to blame: "title", "settings.burst"
}

// problemOf maps an error to what may be said about it. What is not in this
// table is INTERNAL: its text stays in the log.
func problemOf(err error) problem {
	switch {
	case errors.Is(err, errUnauthenticated):
		return problem{code: codeUnauthenticated, text: "sign in first", status: http.StatusUnauthorized}
	case errors.Is(err, errForbidden):
		return problem{code: codeForbidden, text: "for operators only", status: http.StatusForbidden}
	case errors.Is(err, errNotEnabled):
		return problem{code: codeNotEnabled, text: "not enabled on this server", status: http.StatusNotFound}
	case errors.Is(err, lecture.ErrNotFound):
		return problem{code: codeNotFound, text: "there is no such lecture", status: http.StatusNotFound}
	}
	if errors.Is(err, auth.ErrInvalidUserKey) || errors.Is(err, auth.ErrInvalidName) {
		return problem{code: codeBadUserInput, text: err.Error(), status: http.StatusBadRequest} // made for whoever sent it
	}
	if invalid, ok := errors.AsType[*registrar.InvalidError](err); ok {
		return problem{code: codeBadUserInput, text: invalid.Error(), status: http.StatusBadRequest, field: invalid.Field}
	}
	if bad, ok := errors.AsType[*model.BadInput](err); ok {
		return problem{code: codeBadUserInput, text: bad.Reason, status: http.StatusBadRequest}
	}
	if limited, ok := errors.AsType[*RateLimited](err); ok {
		return problem{code: codeRateLimited, text: "too many requests", status: http.StatusTooManyRequests, retry: limited.RetryAfter}
	}
	if errors.Is(err, lecture.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return problem{code: codeUnavailable, text: "temporarily unavailable; it is safe to ask again", status: http.StatusServiceUnavailable, retry: retryAfter}
	}
	return problem{code: codeInternal, text: "something went wrong on our side", status: http.StatusInternalServerError}
}

func (p problem) extensions(ctx context.Context) map[string]any {
	e := map[string]any{"code": p.code}
	if p.retry > 0 {
		e["retryAfterMs"] = p.retry.Milliseconds()
	}
	if p.field != "" {
		e["field"] = p.field
	}
	if p.code == codeInternal {
		e["requestId"] = RequestID(ctx)
	}
	return e
}

// log records once what the client is not told. Refusals are the client's
// business and are not logged; an error of a client that left is not ours.
func (p problem) log(ctx context.Context, log *slog.Logger, err error) {
	switch {
	case errors.Is(err, errPanic):
	case p.code == codeInternal:
		log.ErrorContext(ctx, "internal error", "error", err, "request_id", RequestID(ctx))
	case p.code == codeUnavailable && !errors.Is(err, context.Canceled):
		log.WarnContext(ctx, "unavailable", "error", err, "request_id", RequestID(ctx))
	}
}

// presenter turns an error into what the client sees.
func presenter(log *slog.Logger) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		shown, ok := errors.AsType[*gqlerror.Error](err)
		if ok && shown.Err == nil && shown.Extensions["code"] != nil {
			return shown // parsing, validation, limits: made for the client
		}
		cause := err
		if ok && shown.Err != nil {
			cause = shown.Err // without gqlgen's own words around it
		}
		p := problemOf(cause)
		p.log(ctx, log, err)
		out := &gqlerror.Error{Message: p.text, Path: graphql.GetPath(ctx), Extensions: p.extensions(ctx)}
		if ok {
			out.Locations = shown.Locations
			if shown.Path != nil {
				out.Path = shown.Path
			}
		}
		return out
	}
}

// recoverer logs a panic with its stack, once; the client gets INTERNAL.
func recoverer(log *slog.Logger) graphql.RecoverFunc {
	return func(ctx context.Context, v any) error {
		log.ErrorContext(ctx, "panic", "panic", fmt.Sprint(v), "stack", string(debug.Stack()), "request_id", RequestID(ctx))
		return errPanic
	}
}

// refusal is an error of a whole operation, made for the client.
func refusal(code, format string, args ...any) *gqlerror.Error {
	return &gqlerror.Error{Message: fmt.Sprintf(format, args...), Extensions: map[string]any{"code": code}}
}
