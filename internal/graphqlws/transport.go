package graphqlws

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
)

const (
	// Most messages of clients and servers fit; larger ones cost a copy, not a buffer that stays.
	readBufferSize  = 512
	writeBufferSize = 4 << 10

	// pooledBufferSize is the largest buffer that is kept for the next message.
	pooledBufferSize = 64 << 10
)

// Transport is the WebSocket transport. Create it with New.
type Transport struct {
	options  Options
	upgrader websocket.Upgrader
	buffers  sync.Pool // of *[]byte: messages being read or encoded
	census   *census

	mu       sync.Mutex
	conns    map[*conn]struct{}
	draining bool

	operations              atomic.Int64
	opened, slow, dead, cut atomic.Uint64
}

var _ graphql.Transport = (*Transport)(nil)

// New returns a Transport for handler.Server.AddTransport.
func New(o Options) *Transport {
	o = o.withDefaults()
	return &Transport{
		options: o,
		upgrader: websocket.Upgrader{
			CheckOrigin:      o.CheckOrigin,
			Error:            refuseHandshake,
			HandshakeTimeout: o.WriteTimeout,
			ReadBufferSize:   readBufferSize,
			WriteBufferSize:  writeBufferSize,
			WriteBufferPool:  &sync.Pool{},
			Subprotocols:     []string{transportWS.name, legacyWS.name},
		},
		buffers: sync.Pool{New: func() any { return new([]byte) }},
		census:  newCensus(o),
		conns:   map[*conn]struct{}{},
	}
}

// Supports reports whether r asks for a WebSocket.
func (t *Transport) Supports(r *http.Request) bool {
	return websocket.IsWebSocketUpgrade(r)
}

// Do upgrades the request and returns: the socket lives on in a goroutine of
// its own, so that net/http can let go of the request's buffers.
func (t *Transport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	address := t.address(r)
	if why := t.census.enter(address); why != nil {
		why.WriteTo(w)
		return
	}
	ws, err := t.upgrader.Upgrade(hijacker{w}, r, nil)
	if err != nil { // The upgrader has answered.
		t.census.leave(address, "")
		return
	}
	c := newConn(t, ws, r, exec, address)
	draining := t.add(c)
	go c.serve()
	if draining {
		c.drain()
	}
}

// hijacker finds the connection behind the ResponseWriters of middleware, as
// http.ResponseController does.
type hijacker struct{ http.ResponseWriter }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// Drain refuses upgrades from now on and sends every socket away with 1012, at
// once where only subscriptions run, else when the last query or mutation in
// flight has been answered, but not later than DrainTimeout. It does not block.
func (t *Transport) Drain() {
	t.census.close()
	t.mu.Lock()
	if t.draining {
		t.mu.Unlock()
		return
	}
	t.draining = true
	t.mu.Unlock()

	t.each((*conn).drain)
	time.AfterFunc(t.options.DrainTimeout, func() { t.each((*conn).restart) })
}

// Wait returns nil when, after Drain, the last socket is gone, or ctx's error
// when that comes first.
func (t *Transport) Wait(ctx context.Context) error {
	select {
	case <-t.census.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats are a Transport's counters: the first two go up and down, the others
// only up.
type Stats struct {
	Sockets    int    // admitted and not yet gone, those of Admit included
	Operations int    // in flight
	Opened     uint64 // sockets upgraded
	Refused    uint64 // connections over a limit, or while draining
	Slow       uint64 // sockets lost because the peer did not read
	Dead       uint64 // sockets lost because the peer did not answer
	Cut        uint64 // sockets found lost while writing to them
}

// Stats returns the counters.
func (t *Transport) Stats() Stats {
	s := Stats{
		Operations: int(t.operations.Load()),
		Opened:     t.opened.Load(),
		Slow:       t.slow.Load(),
		Dead:       t.dead.Load(),
		Cut:        t.cut.Load(),
	}
	t.census.mu.Lock()
	defer t.census.mu.Unlock()
	s.Sockets, s.Refused = t.census.sockets, t.census.refused
	return s
}

func (t *Transport) add(c *conn) (draining bool) {
	t.opened.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[c] = struct{}{}
	return t.draining
}

func (t *Transport) remove(c *conn) {
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
	t.census.leave(c.address, c.person)
}

// each calls f for every socket, each in its own goroutine: a stalled peer must
// not keep the others from hearing of the restart.
func (t *Transport) each(f func(*conn)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		go f(c)
	}
}

func (t *Transport) buffer() *[]byte {
	return t.buffers.Get().(*[]byte)
}

func (t *Transport) recycle(b *[]byte) {
	if cap(*b) <= pooledBufferSize {
		*b = (*b)[:0]
		t.buffers.Put(b)
	}
}
