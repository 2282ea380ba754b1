package testenv

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to a server and spoils them on command, for
// tests of what happens when the network does not do its part. Commands act on
// connections that are open as well as on later ones.
type Proxy struct {
	Addr string // 127.0.0.1:port, to connect to

	upstream string
	listener net.Listener
	running  sync.WaitGroup
	closed   chan struct{}

	mu    sync.Mutex
	conns map[*proxied]struct{}
	fault fault
}

// fault is how connections are spoilt at the moment.
type fault struct {
	delay     time.Duration
	stall     chan struct{} // nil, or closed when things move again
	swallow   bool
	refuse    bool
	intercept func(*Chunk) Verdict
}

// Chunk is some bytes on their way through a Proxy, as one read returned them.
type Chunk struct {
	Data     []byte // valid during the call
	ToServer bool   // false: a reply

	conn *proxied
}

// HangUp closes the client's side at once, in the middle of things, while what
// the client sent still goes on to the server.
func (c *Chunk) HangUp() { c.conn.client.Close() }

// Verdict is what becomes of a Chunk.
type Verdict int

// The verdicts.
const (
	Pass    Verdict = iota // it goes on
	Swallow                // it is lost, the connection stays
	Cut                    // it is lost and the connection is closed on both sides
)

// NewProxy starts a proxy to upstream (host:port), which ends with the test.
func NewProxy(tb testing.TB, upstream string) *Proxy {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{
		Addr:     l.Addr().String(),
		upstream: upstream,
		listener: l,
		closed:   make(chan struct{}),
		conns:    make(map[*proxied]struct{}),
	}
	p.running.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Heal lets everything pass again. What was stalled goes on.
func (p *Proxy) Heal() { p.spoil(fault{}) }

// Delay holds every chunk back for d, in both directions. Chunks of one
// direction follow one another, so this is the latency of a client that sends
// one request at a time.
func (p *Proxy) Delay(d time.Duration) { p.spoil(fault{delay: d}) }

// Stall lets nothing pass and keeps connections open, as a network that lost
// its route does.
func (p *Proxy) Stall() { p.spoil(fault{stall: make(chan struct{})}) }

// SwallowReplies lets requests pass and loses what the server answers.
func (p *Proxy) SwallowReplies() { p.spoil(fault{swallow: true}) }

// Intercept asks f about every chunk. It may block to hold a chunk back, until
// the test ends at the latest, and is called by several goroutines at once.
func (p *Proxy) Intercept(f func(*Chunk) Verdict) { p.spoil(fault{intercept: f}) }

// Refuse closes all connections, and new ones as soon as they are made.
func (p *Proxy) Refuse() {
	p.spoil(fault{refuse: true})
	p.Cut()
}

// Cut closes all connections on both sides. New ones are served.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.close()
	}
}

// Connections is how many connections are open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

func (p *Proxy) spoil(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.stall != nil {
		close(p.fault.stall)
	}
	p.fault = f
}

func (p *Proxy) current() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

func (p *Proxy) close() {
	close(p.closed)
	p.listener.Close()
	p.Refuse()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// proxied is one connection through the proxy.
type proxied struct{ client, server net.Conn }

func (c *proxied) close() {
	// Unsent bytes are thrown away, and the other side sees a reset.
	for _, conn := range []net.Conn{c.client, c.server} {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // fails only where it is closed already
		}
		conn.Close()
	}
}

func (p *Proxy) serve(client net.Conn) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	server, err := dialer.DialContext(context.Background(), "tcp", p.upstream)
	if err != nil {
		client.Close()
		return
	}
	c := &proxied{client, server}
	if !p.add(c) {
		c.close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(c, true) })
	both.Go(func() { p.pump(c, false) })
	both.Wait()
	client.Close()
	server.Close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func (p *Proxy) add(c *proxied) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.refuse {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

// pump carries one direction until it ends. The end of a direction is passed on
// as such: the other one may have something to say still.
func (p *Proxy) pump(c *proxied, toServer bool) {
	from, to := c.server, c.client
	if toServer {
		from, to = c.client, c.server
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			switch p.judge(&Chunk{Data: buf[:n], ToServer: toServer, conn: c}) {
			case Pass:
				if _, werr := to.Write(buf[:n]); werr != nil && toServer {
					c.close()
					return
				}
				// A client that hung up is no reason to stop reading what
				// the server has to say.
			case Swallow:
			case Cut:
				c.close()
				return
			}
		}
		if err != nil {
			if tcp, ok := to.(*net.TCPConn); ok && errors.Is(err, io.EOF) {
				_ = tcp.CloseWrite() // fails only where it is closed already
			} else {
				to.Close()
			}
			return
		}
	}
}

// judge applies the fault of the moment to a chunk.
func (p *Proxy) judge(c *Chunk) Verdict {
	f := p.current()
	switch {
	case f.intercept != nil:
		return f.intercept(c)
	case f.stall != nil:
		select {
		case <-f.stall:
			return p.judge(c)
		case <-p.closed:
			return Cut
		}
	case f.delay > 0:
		timer := time.NewTimer(f.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
			return Pass
		case <-p.closed:
			return Cut
		}
	case f.swallow && !c.ToServer:
		return Swallow
	}
	return Pass
}
