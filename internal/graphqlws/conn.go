package graphqlws

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
)

// closeGrace is what a peer is given to take a close frame, and again to hang up after it.
const closeGrace = time.Second

type phase int

const (
	opened phase = iota
	initialising
	acknowledged
	closing
)

// conn is one socket.
type conn struct {
	t        *Transport
	ws       *websocket.Conn
	exec     graphql.GraphExecutor
	protocol *protocol // nil when the handshake agreed on none
	headers  http.Header
	address  string
	out      *outbox

	ctx         context.Context // ends when closing begins
	cancel      context.CancelFunc
	initialised chan struct{} // closed when Init has returned
	ended       chan struct{} // of one: an operation has ended since it was last read
	goroutines  sync.WaitGroup
	heard       atomic.Bool // the peer has said something since the last tick
	pace        pace        // of reading; the reader's own
	farewell    atomic.Bool // a close frame is out: the peer is given time to read it

	mu       sync.Mutex
	phase    phase
	draining bool
	base     context.Context // what Init returned: operations run under it
	person   string          // counted in the census
	ops      map[string]*operation
	running  int         // operations whose goroutine has not ended, whoever owns their ids now
	pending  int         // those of them that Drain waits for
	deadline *time.Timer // of the acknowledgement, then of the credentials
	idle     *time.Timer // runs while nothing else does
	ticker   *time.Timer
	ticks    uint // since the acknowledgement
	silent   uint // of them, in a row, without a word from the peer
}

func newConn(t *Transport, ws *websocket.Conn, r *http.Request, exec graphql.GraphExecutor, address string) *conn {
	c := &conn{
		t:           t,
		ws:          ws,
		exec:        exec,
		protocol:    protocolOf(ws.Subprotocol()),
		headers:     r.Header,
		address:     address,
		initialised: make(chan struct{}),
		ended:       make(chan struct{}, 1),
		pace:        newPace(t.options.MaxMessages),
	}
	// The request's context ends when its handler returns; its values stay good.
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	c.out = newOutbox(ws, t.options.WriteTimeout, c.writeFailed)
	return c
}

// serve reads until the socket ends.
func (c *conn) serve() {
	var err error
	defer func() { c.end(err) }()
	defer c.recover("reading")

	if c.protocol == nil {
		c.close(notAcceptable)
		return
	}
	c.listen()
	c.expectInit()
	for {
		var m message
		var bad *closure
		if m, bad, err = c.read(); err != nil {
			return
		}
		if bad != nil {
			c.close(bad)
			return
		}
		c.pace.wait(c.ctx)
		if !c.handle(m) {
			return
		}
	}
}

// listen sets what the peer's frames do beside being read.
func (c *conn) listen() {
	c.ws.SetPongHandler(func(string) error {
		c.heard.Store(true)
		return nil
	})
	pong := c.ws.PingHandler()
	c.ws.SetPingHandler(func(data string) error {
		c.heard.Store(true)
		return pong(data)
	})
}

// read returns the next message, or how to close on what is none.
func (c *conn) read() (message, *closure, error) {
	typ, r, err := c.ws.NextReader()
	if err != nil {
		return message{}, nil, err
	}
	start := graphql.Now()
	buf := c.t.buffer() // Not sooner: most of the time nothing comes.
	defer c.t.recycle(buf)
	// gorilla's own limit would close without a word about it.
	if *buf, err = appendAll(*buf, io.LimitReader(r, c.t.options.MaxFrame+1)); err != nil {
		return message{}, nil, err
	}
	c.heard.Store(true)
	if int64(len(*buf)) > c.t.options.MaxFrame {
		return message{}, tooBig(c.t.options.MaxFrame), nil
	}
	if typ != websocket.TextMessage {
		return message{}, notAMessage, nil
	}
	m, bad := c.protocol.decode(*buf)
	if m.params != nil {
		m.params.Headers = c.headers
		m.params.ReadTime = graphql.TraceTiming{Start: start, End: graphql.Now()}
	}
	return m, bad, nil
}

// appendAll is io.ReadAll that appends.
func appendAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, max(len(b), readBufferSize))
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// handle acts on a message and tells whether to go on reading.
func (c *conn) handle(m message) bool {
	c.mu.Lock()
	phase := c.phase
	c.mu.Unlock()
	if phase == closing {
		return true // Whatever it is, it came too late. The close frame's answer is what is read for.
	}

	switch m.kind {
	case kindInit:
		if phase != opened {
			c.close(tooManyRequests)
			return false
		}
		c.initialise(m.init)
	case kindSubscribe:
		if !c.mayOperate(phase) {
			c.close(unauthorized)
			return false
		}
		return c.start(m)
	case kindComplete:
		c.complete(m.id)
	case kindPing:
		if m.payload == nil {
			c.out.post(pongMessage)
		} else {
			c.out.post(payloadMessage("pong", m.payload))
		}
	case kindPong: // Being heard is all it is for.
	case kindTerminate:
		c.close(normalClosure)
		return false
	}
	return true
}

// mayOperate tells whether an operation may start. A legacy client sends it
// right after connection_init; it waits here for the acknowledgement.
func (c *conn) mayOperate(p phase) bool {
	if p == initialising && c.protocol.legacy {
		select {
		case <-c.initialised:
		case <-c.ctx.Done():
		}
		return true
	}
	return p == acknowledged
}

// shut begins closing. It returns false when that has happened before.
func (c *conn) shut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == closing {
		return false
	}
	c.phase = closing
	for _, op := range c.ops {
		op.over = true
		op.cancel()
	}
	c.ops = nil
	for _, t := range []*time.Timer{c.deadline, c.idle, c.ticker} {
		if t != nil {
			t.Stop()
		}
	}
	c.cancel()
	return true
}

// close tells the peer why and ends the socket. The first reason counts.
func (c *conn) close(why *closure) {
	if !c.shut() {
		return
	}
	c.out.close(c.lastWords(why))
	frame := websocket.FormatCloseMessage(why.code, why.reason)
	err := c.ws.WriteControl(websocket.CloseMessage, frame, time.Now().Add(closeGrace))
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		c.reset()
		return
	}
	// Closing with unread bytes in the kernel sends a reset, and a reset may
	// overtake the close frame. So only our half is closed, and the reader goes
	// on until the peer has hung up.
	c.farewell.Store(true)
	if half, ok := c.ws.NetConn().(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // The peer may have hung up already.
	}
	_ = c.ws.SetReadDeadline(time.Now().Add(closeGrace)) // Fails on a closed socket only, which needs none.
}

// lastWords are what a legacy peer is told before the close frame, whose code
// its client does not show.
func (c *conn) lastWords(why *closure) []byte {
	if c.protocol == nil || !c.protocol.legacy || why == normalClosure || why == serviceRestart || why == nothingRuns {
		return nil
	}
	payload, err := json.Marshal(map[string]string{"message": why.reason})
	if err != nil {
		return nil
	}
	return payloadMessage("connection_error", payload)
}

// abort ends the socket without a word, which the peer would not get, and
// counts the loss unless closing had begun before.
func (c *conn) abort(lost *atomic.Uint64) {
	if c.shut() {
		lost.Add(1)
	}
	c.out.close(nil)
	c.reset()
}

// reset frees what the kernel still holds for the peer.
func (c *conn) reset() {
	if tcp, ok := c.ws.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Fails on a closed socket only.
	}
	_ = c.ws.Close() // Being gone is what is wanted.
}

// writeFailed is the outbox's: the peer does not take what it is sent, or has
// hung up.
func (c *conn) writeFailed(err error) {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.abort(&c.t.slow)
	} else {
		c.abort(&c.t.cut)
	}
}

// end is the reader's last act. err is why it stopped, if reading failed.
func (c *conn) end(err error) {
	if errors.Is(err, websocket.ErrReadLimit) {
		c.close(tooBig(c.t.options.MaxFrame)) // Longer than numbers are.
	}
	c.shut()
	c.out.close(nil)
	var peer *websocket.CloseError
	if c.farewell.Load() && !errors.As(err, &peer) {
		_, _ = io.Copy(io.Discard, c.ws.NetConn()) // Until the peer hangs up, or closeGrace.
	}
	_ = c.ws.Close() // It may be closed already.
	c.goroutines.Wait()
	c.t.remove(c)
}

// recover is deferred where a panic would otherwise end the process.
func (c *conn) recover(doing string) {
	if r := recover(); r != nil {
		c.t.options.Log.Error("websocket: panic", "while", doing, "panic", r, "stack", string(debug.Stack()))
		c.close(internalError)
	}
}

// drain sends the peer away as soon as no query or mutation is in flight.
func (c *conn) drain() {
	c.mu.Lock()
	c.draining = true
	idle := c.pending == 0
	c.mu.Unlock()
	if idle {
		c.restart()
	}
}

func (c *conn) restart() {
	c.close(serviceRestart)
}
