package graph

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seatline/graph/generated"
	"seatline/internal/auth"
	"seatline/internal/graphqlws"
	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/waitroom"
)

const (
	cachedQueries  = 500
	maxCachedQuery = 2 << 10 // bytes; longer documents, a hundred times as large when parsed, are parsed each time
)

// Options configures a Handler.
type Options struct {
	Resolver      generated.ResolverRoot // a *Resolver
	Roster        *registrar.Seats
	Verifier      *auth.Verifier
	Origins       []string       // beside our own
	Proxies       []netip.Prefix // whose X-Forwarded-For is believed
	Limits        Limits
	PersonRate    *waitroom.Rate    // of root fields, of who is signed in; nil: no limit
	AddressRate   *waitroom.Rate    // of all who are not, at one address; nil: no limit
	Sockets       graphqlws.Options // limits and times; who may connect is set here
	Introspection bool
	Log           *slog.Logger
}

// Handler serves /graphql on every transport, and the roster as CSV.
type Handler struct {
	mux     *http.ServeMux
	sockets *graphqlws.Transport
	streams *streams
}

// NewHandler returns a Handler.
func NewHandler(o Options) *Handler {
	allowed := newOrigins(o.Origins)
	h := &Handler{mux: http.NewServeMux(), sockets: newSockets(o, allowed), streams: newStreams()}
	known := &proxies{trusted: o.Proxies, log: o.Log}
	gate := func(next http.Handler) http.Handler {
		return known.middleware(allowed.middleware(o.Verifier.Middleware(next, refuseToken)))
	}
	h.mux.Handle("/graphql", gate(h.server(o)))
	h.mux.Handle("GET /lectures/{id}/enrollments.csv", gate(roster{seats: o.Roster, writeTime: o.Limits.WriteTime, log: o.Log}))
	return h
}

// ServeHTTP serves /graphql and /lectures/{id}/enrollments.csv.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Drain ends event streams, sends sockets away with 1012 once what they have in
// flight is answered, and lets no new ones in.
func (h *Handler) Drain() {
	h.streams.drain()
	h.sockets.Drain()
}

// Wait returns when, after Drain, the last socket is gone.
func (h *Handler) Wait(ctx context.Context) error { return h.sockets.Wait(ctx) }

// Stats are the sockets' counters.
func (h *Handler) Stats() graphqlws.Stats { return h.sockets.Stats() }

func (h *Handler) server(o Options) *handler.Server {
	executable := generated.NewExecutableSchema(generated.Config{Resolvers: o.Resolver})
	s := handler.New(executable)
	s.AddTransport(h.sockets)
	events := eventStream{limits: o.Limits, streams: h.streams, admit: h.sockets.Admit}
	s.AddTransport(events)
	s.AddTransport(httpTransport{limits: o.Limits, events: events})
	s.SetErrorPresenter(variablesNamed(executable.Schema(), presenter(o.Log)))
	s.SetRecoverFunc(recoverer(o.Log))
	s.SetParserTokenLimit(o.Limits.ParserTokens)
	if !o.Introspection {
		s.SetDisableSuggestion(true)
		s.SetValidationRulesFn(silentRules)
	}
	s.SetQueryCache(shortOnly[*ast.QueryDocument]{lru.New[*ast.QueryDocument](cachedQueries)})
	s.Use(persistedQueries{extension.AutomaticPersistedQuery{Cache: shortQueries{lru.New[string](cachedQueries)}}})
	s.Use(operationLimits{o.Limits, o.Introspection, executable.Schema(), &rates{person: o.PersonRate, address: o.AddressRate, log: o.Log}})
	s.AroundOperations(feeds(o.Log))
	s.AroundResponses(shortErrors)
	return s
}

func newSockets(o Options, allowed origins) *graphqlws.Transport {
	options := o.Sockets
	options.CheckOrigin = allowed.allow
	options.Address = func(r *http.Request) string { return addressOf(r.Context()) }
	options.Log = o.Log
	options.Init = func(ctx context.Context, payload map[string]any) (context.Context, map[string]any, time.Time, error) {
		viewer, err := o.Verifier.FromPayload(ctx, payload)
		switch {
		case errors.Is(err, auth.ErrNoToken):
			viewer, _ = auth.FromContext(ctx) // of the upgrade's header, if it had one
			return ctx, nil, viewer.ExpiresAt, nil
		case errors.Is(err, auth.ErrUnavailable):
			// Not 4401, for which clients give up: the same token may be good.
			return nil, nil, time.Time{}, errors.Join(graphqlws.ErrUnavailable, err)
		case err != nil:
			return nil, nil, time.Time{}, errors.Join(graphqlws.ErrUnauthenticated, err)
		}
		return auth.NewContext(ctx, viewer), nil, viewer.ExpiresAt, nil
	}
	options.Person = func(ctx context.Context) string {
		viewer, _ := auth.FromContext(ctx)
		return viewer.UserKey
	}
	return graphqlws.New(options)
}

// refuseToken answers a request whose token is not acceptable, or cannot be
// judged while the key server is away: nothing of it is done. Why stays with us.
func refuseToken(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, auth.ErrUnavailable) {
		refuseForNow(w, r, "the token cannot be judged now; ask again")
		return
	}
	text := "the token is not acceptable"
	if errors.Is(err, auth.ErrExpiredToken) {
		text = "the token has expired"
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	replyTo(w, r).write(http.StatusUnauthorized, requestResponse{Errors: gqlerror.List{refusal(codeUnauthenticated, "%s", text)}})
}

// RefuseStarting answers a request that came before the stores did.
func RefuseStarting(w http.ResponseWriter, r *http.Request) {
	refuseForNow(w, r, "the server is starting or stopping; ask again")
}

func refuseForNow(w http.ResponseWriter, r *http.Request, text string) {
	p := problemOf(lecture.ErrUnavailable)
	w.Header().Set("Retry-After", "1")
	shown := &gqlerror.Error{Message: text, Extensions: p.extensions(r.Context())}
	replyTo(w, r).write(p.status, requestResponse{Errors: gqlerror.List{shown}})
}

// persistedQueries gives the errors of automatic persisted queries a code.
type persistedQueries struct {
	extension.AutomaticPersistedQuery
}

// MutateOperationParameters is AutomaticPersistedQuery's.
func (p persistedQueries) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	err := p.AutomaticPersistedQuery.MutateOperationParameters(ctx, params)
	if err != nil && err.Extensions["code"] == nil {
		return refusal(codeBadUserInput, "%s", err.Message)
	}
	return err
}

// shortOnly caches documents by their text, except long ones: what a cache may
// grow to is its count times its largest entry.
type shortOnly[T any] struct{ graphql.Cache[T] }

func (c shortOnly[T]) Add(ctx context.Context, query string, document T) {
	if len(query) <= maxCachedQuery {
		c.Cache.Add(ctx, query, document)
	}
}

// shortQueries does the same for texts by their hash.
type shortQueries struct{ graphql.Cache[string] }

func (c shortQueries) Add(ctx context.Context, hash, query string) {
	if len(query) <= maxCachedQuery {
		c.Cache.Add(ctx, hash, query)
	}
}
