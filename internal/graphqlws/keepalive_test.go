package graphqlws_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatline/internal/graphqlws"
)

// A peer that reads but answers nothing is gone after two intervals; it was
// asked before. One that answers stays, though nothing else happens.
func TestSilentPeerIsReaped(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, protocol string) {
		const interval = 200 * time.Millisecond
		s := newServer(t, graphqlws.Options{PingInterval: interval})
		alive := s.open(t, protocol)
		answered := make(chan struct{}, 100)
		go func() {
			defer close(answered)
			for {
				text, err := alive.receive() // gorilla answers WebSocket pings by itself
				if err != nil {
					return
				}
				if text == `{"type":"ping"}` {
					err = alive.WriteMessage(websocket.TextMessage, []byte(`{"type":"pong"}`))
				}
				if err == nil {
					answered <- struct{}{}
				}
			}
		}()

		p := s.open(t, protocol)
		pinged := false
		p.SetPingHandler(func(string) error {
			pinged = true
			return nil
		})
		p.subscribe("a", `subscription{never}`)
		start := time.Now()
		var heard []string
		for {
			text, err := p.receive()
			if err != nil {
				var timeout interface{ Timeout() bool }
				if errors.As(err, &timeout) && timeout.Timeout() {
					t.Fatal("the socket is still there")
				}
				break
			}
			heard = append(heard, text)
		}
		if d := time.Since(start); d < interval {
			t.Errorf("gone after %v already", d)
		}
		want := `{"type":"ping"}`
		if protocol == legacyWS {
			want = `{"type":"ka"}`
		}
		if len(heard) == 0 || heard[0] != want {
			t.Errorf("heard %q, want %s at first", heard, want)
		}
		if pinged != (protocol == legacyWS) {
			t.Errorf("WebSocket ping: %v", pinged)
		}
		eventually(t, func() bool { return s.live.Load() == 0 && s.Stats().Sockets == 1 }, "the dead peer's operation goes on")
		for range 8 { // Well beyond what the silent one was given.
			if _, ok := <-answered; !ok {
				t.Fatal("the peer that answers is gone, too")
			}
		}
		if got := s.Stats(); got.Dead != 1 || got.Sockets != 1 {
			t.Errorf("%+v", got)
		}
		_ = alive.Close()
		for range answered {
			continue
		}
	})
}
