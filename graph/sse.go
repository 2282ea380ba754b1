package graph

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seatline/internal/auth"
	"seatline/internal/graphqlws"
)

// eventStream is the distinct-connections mode of GraphQL over SSE: a POST that
// likes text/event-stream best gets its results as events of one reply. Clients
// that merely could read one, as urql says with every query, get JSON.
// Proxies cut what is silent, so it is never silent for long; whoever stops
// reading is gone after the time to write.
type eventStream struct {
	limits  Limits
	streams *streams
	admit   func(r *http.Request, person string) (leave func(), why *graphqlws.Refusal)
}

func (t eventStream) Supports(r *http.Request) bool {
	return r.Method == http.MethodPost && preferred(r, typeJSON, typeResponse, typeEvents) == typeEvents
}

func (t eventStream) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	reply := replyTo(w, r)
	leave, ok := t.enter(w, r)
	if !ok {
		return
	}
	defer leave()
	params, refused := readParams(w, r, t.limits)
	if refused != nil {
		reply.refuse(refused)
		return
	}
	params.Headers = r.Header
	op, errs := exec.CreateOperationContext(r.Context(), params)
	t.stream(w, r, exec, op, errs)
}

// subscribe streams an operation that came as JSON might, from a client that
// would read events as well: a subscription has no other reply.
func (t eventStream) subscribe(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor, op *graphql.OperationContext) {
	leave, ok := t.enter(w, r)
	if !ok {
		return
	}
	defer leave()
	t.stream(w, r, exec, op, nil)
}

// enter counts one more stream, as sockets are counted, or refuses it.
func (t eventStream) enter(w http.ResponseWriter, r *http.Request) (leave func(), ok bool) {
	viewer, _ := auth.FromContext(r.Context())
	leave, why := t.admit(r, viewer.UserKey)
	if why != nil {
		why.WriteTo(w)
		return nil, false
	}
	return leave, true
}

// stream sends what the operation gives, or errs, to the end.
func (t eventStream) stream(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor, op *graphql.OperationContext, errs gqlerror.List) {
	ctx, done, ok := t.streams.open(r.Context())
	if !ok {
		refuseForNow(w, r, "the server is stopping; ask again")
		return
	}
	defer done()
	if viewer, ok := auth.FromContext(ctx); ok {
		// As a socket would be closed. Without a last event, the client asks
		// again, and is refused or has a new token.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, viewer.ExpiresAt)
		defer cancel()
	}

	ctx = graphql.WithOperationContext(ctx, op)
	w.Header().Set("Content-Type", typeEvents)
	w.Header().Set("X-Accel-Buffering", "no") // or a proxy holds events back
	out := &events{control: http.NewResponseController(w), w: w, within: t.limits.WriteTime, failed: done}
	out.write(":\n\n")
	stop := out.keepAlive(ctx, t.limits.KeepAlive)
	defer stop()

	if len(errs) > 0 {
		out.next(withoutData(exec.DispatchError(ctx, nameNeeded(op, errs))))
	} else {
		respond, ctx := exec.DispatchOperation(ctx, op)
		for response := respond(ctx); response != nil; response = respond(ctx) {
			out.next(response)
		}
	}
	if ctx.Err() == nil {
		out.write("event: complete\ndata:\n\n")
	}
}

// events writes events, one at a time, each within its time.
type events struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	failed  func() // ends the stream
}

func (e *events) next(response any) {
	b, err := json.Marshal(response)
	if err != nil {
		panic(err) // our own types; the server's recover answers
	}
	e.write("event: next\ndata: " + string(b) + "\n\n")
}

func (e *events) write(s string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.control.SetWriteDeadline(time.Now().Add(e.within))
	_, err := e.w.Write([]byte(s))
	if err == nil {
		err = e.control.Flush()
	}
	if err != nil {
		e.failed()
	}
}

// keepAlive writes a comment now and then until stop is called or ctx is done.
func (e *events) keepAlive(ctx context.Context, every time.Duration) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				e.write(":\n\n")
			case <-ctx.Done():
				return
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-gone // nothing writes after the handler has returned
	}
}

// streams are the event streams that are open. A server that stops ends them,
// since they would not end by themselves.
type streams struct {
	mu       sync.Mutex
	draining bool
	last     int
	cancel   map[int]context.CancelFunc
}

func newStreams() *streams { return &streams{cancel: map[int]context.CancelFunc{}} }

// open gives a stream its context and the function that ends it.
func (s *streams) open(ctx context.Context) (context.Context, func(), bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	s.last++
	id := s.last
	s.cancel[id] = cancel
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancel, id)
	}, true
}

// drain ends all streams and lets no new one begin.
func (s *streams) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for _, cancel := range s.cancel {
		cancel()
	}
}
