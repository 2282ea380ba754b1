package graph

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seatline/internal/auth"
	"seatline/internal/waitroom"
)

// rates bound how many root fields a person may ask for, on every transport and
// instance together, and all who are not signed in at one address. Requests are
// not what is counted: one of them may hold sixty fields.
//
// Where the count cannot be had, it is not held against anybody. The limit is
// there to keep the stores well; while Redis is away, what needs the line says so
// by itself, and turning away what needs only the database would make of an
// outage of one store an outage of all. The other limits hold meanwhile.
type rates struct {
	person, address *waitroom.Rate
	log             *slog.Logger
	resume          atomic.Int64 // until then, in Unix ms, Redis is not asked
}

// restAfterFailure keeps a Redis that does not answer from delaying everything
// by the time it takes to find that out.
const restAfterFailure = time.Second

// take counts fields for whoever asks, or refuses them.
func (r *rates) take(ctx context.Context, fields int) *gqlerror.Error {
	rate, who, whose := r.address, addressOf(ctx), "this address, for those who are not signed in"
	if viewer, ok := auth.FromContext(ctx); ok {
		rate, who, whose = r.person, viewer.UserKey, "one person"
	}
	if rate == nil || who == "" {
		return nil
	}
	if most := rate.Burst(); most > 0 && fields > most {
		return refusal(codeComplexity, "the operation has %d root fields; at most %d are answered at once", fields, most)
	}
	now := time.Now()
	if now.UnixMilli() < r.resume.Load() {
		return nil
	}
	wait, err := rate.Take(ctx, who, fields)
	switch {
	case err != nil && ctx.Err() != nil: // who asked has left
	case err != nil:
		if until := r.resume.Load(); until <= now.UnixMilli() && r.resume.CompareAndSwap(until, time.Now().Add(restAfterFailure).UnixMilli()) {
			r.log.WarnContext(ctx, "rates are not counted", "error", err)
		}
	case wait > 0:
		return tooOften(wait, "too many fields are asked for by "+whose)
	}
	return nil
}

func tooOften(wait time.Duration, text string) *gqlerror.Error {
	err := refusal(codeRateLimited, "%s; ask again later", text)
	err.Extensions["retryAfterMs"] = wait.Milliseconds()
	return err
}

// retryOf is how long a refused operation is to wait, 0 where it was refused for
// another reason. In HTTP that has a status and a header of its own, which proxies
// and clients understand without reading on.
func retryOf(r *graphql.Response) time.Duration {
	if r.Data != nil || len(r.Errors) != 1 || r.Errors[0].Extensions["code"] != codeRateLimited {
		return 0
	}
	ms, _ := r.Errors[0].Extensions["retryAfterMs"].(int64)
	return time.Duration(ms) * time.Millisecond
}

// setRetryAfter rounds up: too early is refused again.
func setRetryAfter(h http.Header, wait time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
}
