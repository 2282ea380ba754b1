package graphqlws_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatline/internal/graphqlws"
)

// lazy dials with hardly any room for what is not read.
func lazy() *websocket.Dialer {
	return &websocket.Dialer{NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}}
}

// A client that stops reading is gone within the write timeout, with all that
// ran for it. Who reads sees no gap meanwhile.
func TestSlowReaderIsGone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, protocol string) {
		const writeTimeout = 300 * time.Millisecond
		s := newServer(t, graphqlws.Options{WriteTimeout: writeTimeout})
		reader := s.open(t, protocol)
		reader.subscribe("a", `subscription{count(to:100000)}`)

		p := s.dialWith(t, lazy(), protocol)
		p.init()
		for i := range 10 {
			p.subscribe(fmt.Sprint(i), `subscription{blob(size:30000)}`)
		}
		n := 0
		for s.Stats().Slow == 0 {
			n++
			reader.expect(fmt.Sprintf(`{"id":"a","type":%q,"payload":{"data":{"count":%d}}}`, nextType(protocol), n))
		}
		eventually(t, func() bool { return s.live.Load() == 1 && s.Stats().Sockets == 1 }, "the slow reader's operations go on")
		for range 100 {
			n++
			reader.expect(fmt.Sprintf(`{"id":"a","type":%q,"payload":{"data":{"count":%d}}}`, nextType(protocol), n))
		}
		p.expectGone()
		if got := s.Stats(); got.Slow != 1 || got.Dead != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// What the connection itself says does not save a stalled socket, however it
// comes to write: pongs asked for without being read, errors, a close.
func TestStalledControlMessages(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 30_000)
	tests := map[string]string{
		"pongs":           `{"type":"ping","payload":{"pad":"` + pad + `"}}`,
		"refused":         `{"id":"1","type":"subscribe","payload":{"query":"{` + strings.Repeat("bad ", 100) + `}"}}`,
		"websocket pings": "",
	}
	for name, frame := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, graphqlws.Options{WriteTimeout: 300 * time.Millisecond, PingInterval: 500 * time.Millisecond, MaxMessages: -1})
			p := s.dialWith(t, lazy(), transportWS)
			p.init()
			_ = p.SetWriteDeadline(time.Now().Add(patience))
			for i := 0; ; i++ {
				var err error
				switch {
				case name == "refused":
					err = p.WriteMessage(websocket.TextMessage, []byte(strings.Replace(frame, `"1"`, fmt.Sprintf(`"%d"`, i), 1)))
				case frame != "":
					err = p.WriteMessage(websocket.TextMessage, []byte(frame))
				default:
					err = p.WriteControl(websocket.PingMessage, make([]byte, 125), time.Now().Add(patience))
				}
				if err != nil {
					break
				}
			}
			eventually(t, func() bool { return s.Stats().Sockets == 0 }, "the socket is still there")
		})
	}
}

// What a peer makes the connection say, and does not read, is bounded: in the
// end it is not read either.
func TestUnreadAnswersPressBack(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{WriteTimeout: time.Minute, MaxMessages: -1})
	p := s.dialWith(t, lazy(), transportWS)
	p.init()
	ping := []byte(`{"type":"ping","payload":{"pad":"` + strings.Repeat("x", 60_000) + `"}}`)
	const tooMuch = 128 << 20
	sent := 0
	for sent < tooMuch {
		_ = p.SetWriteDeadline(time.Now().Add(time.Second))
		if p.WriteMessage(websocket.TextMessage, ping) != nil {
			break
		}
		sent += len(ping)
	}
	if sent >= tooMuch {
		t.Errorf("%d bytes were read from a peer that reads nothing", sent)
	}
	_ = p.Close()
}

// A stalled peer is sent away by a restart like everybody else.
func TestDrainDoesNotWaitForAStalledPeer(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{WriteTimeout: time.Minute})
	p := s.dialWith(t, lazy(), transportWS)
	p.init()
	p.subscribe("a", `subscription{blob(size:30000)}`)
	s.stalled(t)
	start := time.Now()
	s.Drain()
	eventually(t, func() bool { return s.Stats().Sockets == 0 }, "the socket is still there")
	if d := time.Since(start); d > 15*time.Second {
		t.Errorf("gone after %v", d)
	}
}

// stalled returns when the blobs that a socket can take have been written.
func (s *server) stalled(t *testing.T) {
	last, since := s.emitted.Load(), time.Now()
	eventually(t, func() bool {
		if n := s.emitted.Load(); n != last {
			last, since = n, time.Now()
		}
		return last > 0 && time.Since(since) > 100*time.Millisecond
	}, "nothing stalls")
}

// A slow client that comes back in time has missed states, never the last one;
// the publisher has not waited for it.
func TestLatestStateWins(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	p := s.dialWith(t, lazy(), transportWS)
	p.init()
	p.subscribe("a", `subscription{state(pad:1){n pad}}`)
	eventually(t, func() bool { return s.live.Load() == 1 }, "not subscribed")
	const last = 2000
	pad := strings.Repeat("x", 2000)
	for n := range last {
		s.publish(map[string]any{"n": n + 1, "pad": pad})
	}
	received, previous := 0, 0
	for previous < last {
		var m struct {
			Payload struct {
				Data struct{ State struct{ N int } }
			}
		}
		if err := json.Unmarshal([]byte(p.next()), &m); err != nil {
			t.Fatal(err)
		}
		received++
		if m.Payload.Data.State.N <= previous {
			t.Fatalf("state %d after %d", m.Payload.Data.State.N, previous)
		}
		previous = m.Payload.Data.State.N
	}
	if received == last {
		t.Error("every state was sent: nothing was merged")
	}
	p.pingPong()
}
