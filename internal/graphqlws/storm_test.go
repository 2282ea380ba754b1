package graphqlws_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"seatline/internal/graphqlws"
)

// After any storm of clients that come, subscribe and leave in every way there
// is, goroutines and counters are where they were.
func TestStorm(t *testing.T) {
	s := newServer(t, graphqlws.Options{})
	s.open(t, transportWS).pingPong() // What is set up once is set up.
	eventually(t, func() bool { return s.Stats().Sockets == 1 }, "not one socket")
	before := runtime.NumGoroutine()
	for round := range 3 {
		var clients sync.WaitGroup
		for worker := range 8 {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
				for range 25 {
					s.visit(t, random)
				}
			})
		}
		clients.Wait()
		eventually(t, func() bool {
			got := s.Stats()
			return got.Sockets == 1 && got.Operations == 0 && s.live.Load() == 0 && runtime.NumGoroutine() <= before+5
		}, "not back at baseline")
		if t.Failed() {
			t.Fatalf("round %d: %d goroutines, %d before; %+v", round, runtime.NumGoroutine(), before, s.Stats())
		}
	}
}

func (s *server) visit(t *testing.T, random *rand.Rand) {
	protocol := []string{transportWS, legacyWS}[random.IntN(2)]
	d := &websocket.Dialer{Subprotocols: []string{protocol}}
	c, resp, err := d.Dial(s.url(), nil)
	if err != nil {
		t.Errorf("dial: %v", err)
		return
	}
	_ = resp.Body.Close()
	defer func() { _ = c.Close() }()
	p := &peer{t, c}
	write := func(format string, args ...any) {
		_ = c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...))
	}
	start, stop := "subscribe", "complete"
	if protocol == legacyWS {
		start, stop = "start", "stop"
	}
	if random.IntN(10) == 0 {
		return // Upgraded, and never heard of again.
	}
	write(`{"type":"connection_init"}`)
	if _, err := p.receive(); err != nil {
		t.Errorf("no acknowledgement: %v", err)
		return
	}
	queries := []string{"{hello}", "subscription{never}", "subscription{blob(size:1000)}", "subscription{panics(after:1)}", "{"}
	for i := range 3 {
		write(`{"id":"%d","type":%q,"payload":{"query":%q}}`, i, start, queries[random.IntN(len(queries))])
	}
	switch random.IntN(5) {
	case 0:
		for i := range 3 {
			write(`{"id":"%d","type":%q}`, i, stop)
		}
		fallthrough
	case 1:
		_ = c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		for err == nil {
			_, err = p.receive()
		}
	case 2:
		_ = c.NetConn().(*net.TCPConn).SetLinger(0) // A reset.
	case 3:
		write(`nonsense`)
		for err == nil {
			_, err = p.receive()
		}
	case 4: // The connection just ends.
	}
}
