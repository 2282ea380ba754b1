package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/graph"
	"seatline/internal/registrar"
	"seatline/internal/waitroom"
	"seatline/web"
)

// readyWithin bounds what a store may take to show that it is there.
const readyWithin = 2 * time.Second

// front is what the world sees. It answers before the stores do: live at once,
// ready when they are.
type front struct {
	http.Handler

	mu        sync.RWMutex
	api       *graph.Handler // nil before the stores answered, as are the next three
	room      *waitroom.Room
	registrar *registrar.Registrar
	redis     redis.UniversalClient
	stopping  bool // nobody is let in any more

	inside sync.WaitGroup // requests, sockets and streams that were let in
}

func newFront(metrics bool) *front {
	f := &front{}
	mux := http.NewServeMux()
	mux.HandleFunc("/graphql", f.serveAPI)
	mux.HandleFunc("/lectures/", f.serveAPI)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeStatus(w, http.StatusOK, map[string]string{"status": "live"})
	})
	mux.HandleFunc("GET /readyz", f.ready)
	if metrics {
		mux.Handle("GET /metrics", f.metrics())
	}
	mux.Handle("/", web.Handler())
	f.Handler = secured(mux)
	return f
}

// secured marks every reply for browsers: nothing in it is to be run, guessed at,
// framed or told about elsewhere. Pages, which come with policies of their own,
// put theirs in its place.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// timed gives a body, wherever it is sent, its time to arrive. net/http reads
// what a handler leaves unread, and would do so for as long as it takes.
func timed(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within)) // fails on a closed connection only
		}
		next.ServeHTTP(w, r)
	})
}

// open lets people in.
func (f *front) open(api *graph.Handler, room *waitroom.Room, reg *registrar.Registrar, rdb redis.UniversalClient) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.api, f.room, f.registrar, f.redis = api, room, reg, rdb
}

// shut lets nobody in any more, sends sockets and streams away, and returns when
// the last is gone and no request is in flight, or with ctx's error.
func (f *front) shut(ctx context.Context) error {
	f.mu.Lock()
	api := f.api
	f.stopping = true
	f.mu.Unlock()
	if api == nil {
		return nil
	}
	api.Drain()
	empty := make(chan struct{})
	go func() {
		f.inside.Wait()
		close(empty)
	}()
	select {
	case <-empty:
	case <-ctx.Done():
	}
	return api.Wait(ctx)
}

func (f *front) serveAPI(w http.ResponseWriter, r *http.Request) {
	api := f.enter()
	if api == nil {
		graph.RefuseStarting(w, r)
		return
	}
	defer f.inside.Done()
	api.ServeHTTP(w, r)
}

// enter is the API for one more who is inside, or nil where nobody is let in.
func (f *front) enter() *graph.Handler {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.api == nil || f.stopping {
		return nil
	}
	f.inside.Add(1)
	return f.api
}

// ready is 200 only when the stores have been opened, and both answer now.
func (f *front) ready(w http.ResponseWriter, r *http.Request) {
	f.mu.RLock()
	room, seats, open := f.room, f.registrar, f.api != nil && !f.stopping
	f.mu.RUnlock()
	if !open {
		writeStatus(w, http.StatusServiceUnavailable, map[string]string{"status": "starting or stopping"})
		return
	}
	status, body := http.StatusOK, map[string]string{"status": "ready"}
	for name, ping := range map[string]func(context.Context) error{"redis": room.Ping, "database": seats.Ping} {
		// Each has its own time: one that hangs says nothing of the other.
		ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
		err := ping(ctx)
		cancel()
		if err != nil {
			status = http.StatusServiceUnavailable
			body["status"], body[name] = "not ready", "does not answer"
		}
	}
	writeStatus(w, status, body)
}

func writeStatus(w http.ResponseWriter, status int, body map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
