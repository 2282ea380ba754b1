package registrar_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// commitMessage is COMMIT as pgx sends it: a simple query.
var commitMessage = []byte("commit\x00")

// proxy stands between a pool and PostgreSQL and can lose the answer to a
// COMMIT: the client's connection breaks when COMMIT is sent, and the COMMIT
// arrives after a delay, or never.
type proxy struct {
	url    string
	target string

	mu     sync.Mutex
	lose   int           // how many COMMITs
	delay  time.Duration // until they arrive
	drop   bool          // or they never do
	lost   chan struct{} // one for each
	server sync.WaitGroup
}

func newProxy(t *testing.T, databaseURL string) *proxy {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: u.Host, lost: make(chan struct{}, 100)}
	u.Host = listener.Addr().String()
	p.url = u.String()
	p.server.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.server.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.server.Wait()
	})
	return p
}

// loseCommits breaks the connections of the next n COMMITs.
func (p *proxy) loseCommits(n int, delay time.Duration, drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.delay, p.drop = n, delay, drop
}

func (p *proxy) loses() (delay time.Duration, drop, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose == 0 {
		return 0, false, false
	}
	p.lose--
	return p.delay, p.drop, true
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	answered := make(chan struct{}) // the server's last answer has come, wanted or not
	p.server.Go(func() {
		defer close(answered)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if bytes.HasSuffix(buf[:n], commitMessage) {
			if delay, drop, lost := p.loses(); lost {
				_ = client.Close()
				p.lost <- struct{}{}
				if drop {
					return
				}
				arrival := time.NewTimer(delay)
				<-arrival.C
				_, _ = server.Write(buf[:n])
				<-answered
				return
			}
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}
