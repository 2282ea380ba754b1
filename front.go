package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

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

	mu    sync.RWMutex
	api   *graph.Handler // nil before the stores answered, and once stopping
	room  *waitroom.Room
	seats *registrar.Seats
}

func newFront() *front {
	f := &front{}
	mux := http.NewServeMux()
	mux.HandleFunc("/graphql", f.serveAPI)
	mux.HandleFunc("/lectures/", f.serveAPI)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeStatus(w, http.StatusOK, map[string]string{"status": "live"})
	})
	mux.HandleFunc("GET /readyz", f.ready)
	mux.Handle("/", web.Handler())
	f.Handler = mux
	return f
}

// open lets people in.
func (f *front) open(api *graph.Handler, room *waitroom.Room, seats *registrar.Seats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.api, f.room, f.seats = api, room, seats
}

// shut lets nobody in any more and sends sockets and streams away. The channel
// gives nil when the last is gone, or ctx's error.
func (f *front) shut(ctx context.Context) <-chan error {
	f.mu.Lock()
	api := f.api
	f.api = nil
	f.mu.Unlock()
	gone := make(chan error, 1)
	if api == nil {
		gone <- nil
		return gone
	}
	api.Drain()
	go func() { gone <- api.Wait(ctx) }()
	return gone
}

func (f *front) serveAPI(w http.ResponseWriter, r *http.Request) {
	f.mu.RLock()
	api := f.api
	f.mu.RUnlock()
	if api == nil {
		graph.RefuseStarting(w, r)
		return
	}
	api.ServeHTTP(w, r)
}

// ready is 200 only when the stores have been opened, and both answer now.
func (f *front) ready(w http.ResponseWriter, r *http.Request) {
	f.mu.RLock()
	api, room, seats := f.api, f.room, f.seats
	f.mu.RUnlock()
	if api == nil {
		writeStatus(w, http.StatusServiceUnavailable, map[string]string{"status": "starting or stopping"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	status, body := http.StatusOK, map[string]string{"status": "ready"}
	for name, ping := range map[string]func(context.Context) error{"redis": room.Ping, "database": seats.Ping} {
		if ping(ctx) != nil {
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
