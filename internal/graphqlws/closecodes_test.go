package graphqlws_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatline/internal/graphqlws"
)

// initBy lets the payload say how Init ends.
func initBy(ctx context.Context, payload map[string]any) (context.Context, map[string]any, time.Time, error) {
	switch payload["as"] {
	case "nobody":
		return ctx, nil, time.Time{}, fmt.Errorf("token eyJhbGciOi: %w", graphqlws.ErrUnauthenticated)
	case "banned":
		return ctx, nil, time.Time{}, fmt.Errorf("carol: %w", graphqlws.ErrForbidden)
	case "later":
		return ctx, nil, time.Time{}, fmt.Errorf("key server: %w", graphqlws.ErrUnavailable)
	case "fault":
		return ctx, nil, time.Time{}, errors.New("dial tcp 10.0.0.7:443")
	case "panic":
		panic("init")
	case "expired":
		return ctx, nil, time.Now().Add(-time.Second), nil
	case "brief":
		return ctx, nil, time.Now().Add(100 * time.Millisecond), nil
	case "ack":
		return ctx, map[string]any{"hello": "you"}, time.Time{}, nil
	case "slow":
		<-ctx.Done()
		return ctx, nil, time.Time{}, ctx.Err()
	}
	return ctx, nil, time.Time{}, nil
}

func TestCloseCodes(t *testing.T) {
	t.Parallel()
	const ack = `{"type":"connection_init"}`
	long := strings.Repeat("é", 60)
	tests := []struct {
		name   string
		frames []string
		code   int
		reason string
	}{
		{"not JSON", []string{ack, `not json`}, 4400, "Invalid message received"},
		{"not JSON at first", []string{`{`}, 4400, "Invalid message received"},
		{"empty", []string{ack, ``}, 4400, "Invalid message received"},
		{"array", []string{ack, `[]`}, 4400, "Invalid message received"},
		{"number", []string{ack, `7`}, 4400, "Invalid message received"},
		{"two values", []string{ack, `{"type":"ping"}{"type":"ping"}`}, 4400, "Invalid message received"},
		{"not UTF-8", []string{ack, "{\"type\":\"ping\",\"payload\":{\"a\":\"\xff\"}}"}, 4400, "Invalid message received"},
		{"too deep", []string{ack, `{"type":"ping","payload":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100) + `}`}, 4400, "Invalid message received"},
		{"null", []string{ack, `null`}, 4400, "Unexpected message type"},
		{"unknown type", []string{ack, `{"type":"bogus"}`}, 4400, "Unexpected message type"},
		{"no type", []string{ack, `{"id":"1"}`}, 4400, "Unexpected message type"},
		{"type of another kind", []string{ack, `{"type":7}`}, 4400, "Invalid message received"},
		{"next from a client", []string{ack, `{"id":"1","type":"next","payload":{}}`}, 4400, "Unexpected message type"},
		{"error from a client", []string{ack, `{"id":"1","type":"error","payload":[]}`}, 4400, "Unexpected message type"},
		{"connection_ack from a client", []string{ack, `{"type":"connection_ack"}`}, 4400, "Unexpected message type"},
		{"legacy start", []string{ack, `{"id":"1","type":"start","payload":{"query":"{hello}"}}`}, 4400, "Unexpected message type"},
		{"subscribe without id", []string{ack, `{"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "Invalid message id"},
		{"subscribe with an empty id", []string{ack, `{"id":"","type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "Invalid message id"},
		{"subscribe with a number for an id", []string{ack, `{"id":1,"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "Invalid message received"},
		{"subscribe with a huge id", []string{ack, `{"id":"` + strings.Repeat("x", 129) + `","type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "Invalid message id"},
		{"subscribe without payload", []string{ack, `{"id":"1","type":"subscribe"}`}, 4400, "Invalid message payload"},
		{"subscribe with null payload", []string{ack, `{"id":"1","type":"subscribe","payload":null}`}, 4400, "Invalid message payload"},
		{"subscribe without query", []string{ack, `{"id":"1","type":"subscribe","payload":{}}`}, 4400, "Invalid message payload"},
		{"query of another kind", []string{ack, `{"id":"1","type":"subscribe","payload":{"query":{}}}`}, 4400, "Invalid message payload"},
		{"variables of another kind", []string{ack, `{"id":"1","type":"subscribe","payload":{"query":"{hello}","variables":[]}}`}, 4400, "Invalid message payload"},
		{"complete without id", []string{ack, `{"type":"complete"}`}, 4400, "Invalid message id"},
		{"ping with a text", []string{ack, `{"type":"ping","payload":"x"}`}, 4400, "Invalid message payload"},
		{"init with a list", []string{`{"type":"connection_init","payload":[]}`}, 4400, "Invalid message payload"},
		{"subscribe before init", []string{`{"id":"1","type":"subscribe","payload":{"query":"mutation{add(n:1)}"}}`}, 4401, "Unauthorized"},
		{"subscribe before ack", []string{`{"type":"connection_init","payload":{"as":"slow"}}`, `{"id":"1","type":"subscribe","payload":{"query":"mutation{add(n:1)}"}}`}, 4401, "Unauthorized"},
		{"refused", []string{`{"type":"connection_init","payload":{"as":"nobody"}}`}, 4401, "Unauthorized"},
		{"expired", []string{`{"type":"connection_init","payload":{"as":"expired"}}`}, 4401, "Unauthorized"},
		{"expires", []string{`{"type":"connection_init","payload":{"as":"brief"}}`}, 4401, "Unauthorized"},
		{"forbidden", []string{`{"type":"connection_init","payload":{"as":"banned"}}`}, 4403, "Forbidden"},
		{"init unavailable", []string{`{"type":"connection_init","payload":{"as":"later"}}`}, 1013, "Try again later"},
		{"init fails", []string{`{"type":"connection_init","payload":{"as":"fault"}}`}, 1011, "Internal server error"},
		{"init panics", []string{`{"type":"connection_init","payload":{"as":"panic"}}`}, 1011, "Internal server error"},
		{"no init", nil, 4408, "Connection initialisation timeout"},
		{"init does not return", []string{`{"type":"connection_init","payload":{"as":"slow"}}`}, 4408, "Connection initialisation timeout"},
		{"second init", []string{ack, ack}, 4429, "Too many initialisation requests"},
		{"second init before ack", []string{`{"type":"connection_init","payload":{"as":"slow"}}`, ack}, 4429, "Too many initialisation requests"},
		{
			"id in use",
			[]string{ack, `{"id":"a","type":"subscribe","payload":{"query":"subscription{never}"}}`, `{"id":"a","type":"subscribe","payload":{"query":"{hello}"}}`},
			4409, "Subscriber for a already exists",
		},
		{
			"long id in use",
			[]string{ack, `{"id":"` + long + `","type":"subscribe","payload":{"query":"subscription{never}"}}`, `{"id":"` + long + `","type":"subscribe","payload":{"query":"{hello}"}}`},
			4409, "Subscriber for " + strings.Repeat("é", 46) + " already exists",
		},
		{"too big", []string{ack, `{"type":"ping","payload":{"pad":"` + strings.Repeat("x", 64<<10) + `"}}`}, 1009, "Message larger than 65536 bytes"},
		{"too big at first", []string{strings.Repeat("x", 2<<20)}, 1009, "Message larger than 65536 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := graphqlws.Options{Init: initBy}
			if tt.code == 4408 {
				o.InitTimeout = 100 * time.Millisecond
			}
			s := newServer(t, o)
			bystander := s.openBystander(t, tt.code)
			p := s.dial(t, transportWS)
			for i, f := range tt.frames {
				if err := p.WriteMessage(websocket.TextMessage, []byte(f)); err != nil {
					break // The server may have closed by now.
				}
				if i == 0 && f == ack {
					p.expect(`{"type":"connection_ack"}`)
				}
			}
			if strings.Contains(tt.name, "expires") {
				p.expect(`{"type":"connection_ack"}`)
			}
			p.expectClose(tt.code, tt.reason)
			if n := s.sum.Load(); n != 0 {
				t.Errorf("a mutation was executed")
			}
			if bystander != nil {
				bystander.pingPong()
			}
		})
	}
}

// openBystander opens a socket that must not notice what happens to others.
func (s *server) openBystander(t *testing.T, code int) *peer {
	if code == 4408 {
		return nil // Its InitTimeout is short, and the bystander need not make it.
	}
	return s.open(t, transportWS)
}

func TestBinaryMessagesAreRefused(t *testing.T) {
	t.Parallel()
	p := newServer(t, graphqlws.Options{}).open(t, transportWS)
	if err := p.WriteMessage(websocket.BinaryMessage, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	p.expectClose(4400, "Invalid message received")
}

func TestSubprotocolIsRequired(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	for _, offered := range []string{"", "mqtt", "graphql-transport-ws2"} {
		p := s.dial(t, offered)
		if got := p.Subprotocol(); got != "" {
			t.Errorf("offered %q: the server chose %q", offered, got)
		}
		p.expectClose(4406, "Subprotocol not acceptable")
	}
}

func TestBetterSubprotocolIsChosen(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	d := &websocket.Dialer{Subprotocols: []string{legacyWS, "other", transportWS}}
	if got := s.dialWith(t, d, "").Subprotocol(); got != transportWS {
		t.Errorf("the server chose %q", got)
	}
}

// The peer's own close is echoed, with its code, and ends its operations.
func TestPeerCloses(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, protocol string) {
		s := newServer(t, graphqlws.Options{})
		for _, code := range []int{websocket.CloseNormalClosure, websocket.CloseGoingAway, 4999} {
			p := s.open(t, protocol)
			p.subscribe("a", `subscription{never}`)
			eventually(t, func() bool { return s.live.Load() == 1 }, "not subscribed")
			if err := p.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(code, "bye")); err != nil {
				t.Fatal(err)
			}
			p.expectClose(code, "")
			eventually(t, func() bool { return s.live.Load() == 0 && s.Stats().Sockets == 0 }, "the operation goes on")
		}
	})
}

// A close frame must not be lost to the reset that unread bytes would cause: the
// connection ends in good order behind it.
func TestCloseFrameSurvivesUnreadBytes(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	for range 20 {
		var tcp *corked
		d := &websocket.Dialer{NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			tcp = &corked{Conn: c}
			return tcp, err
		}}
		p := s.dialWith(t, d, transportWS)
		p.init()
		tcp.cork = true
		p.send(`nonsense`)
		for range 10 {
			p.send(strings.Repeat("x", 4000))
		}
		if _, err := tcp.Conn.Write(tcp.held); err != nil {
			t.Fatal(err)
		}
		p.expectClose(4400, "Invalid message received")
		if _, err := tcp.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the close frame: %v", err)
		}
	}
}

// corked holds back what is written, for one segment to carry it all.
type corked struct {
	net.Conn
	cork bool
	held []byte
}

func (c *corked) Write(b []byte) (int, error) {
	if !c.cork {
		return c.Conn.Write(b)
	}
	c.held = append(c.held, b...)
	return len(b), nil
}

func TestAckCarriesPayload(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, protocol string) {
		p := newServer(t, graphqlws.Options{Init: initBy}).dial(t, protocol)
		p.send(`{"type":"connection_init","payload":{"as":"ack"}}`)
		p.expect(`{"type":"connection_ack","payload":{"hello":"you"}}`)
	})
}

// Nothing about a refused login but the fixed reason leaves the server; what
// only the operator may know is in the log.
func TestRefusalsTellNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newServer(t, graphqlws.Options{Init: initBy, Log: slog.New(slog.NewTextHandler(&log, nil))})
	p := s.dial(t, transportWS)
	p.send(`{"type":"connection_init","payload":{"as":"fault"}}`)
	p.expectClose(1011, "Internal server error")
	eventually(t, func() bool { return s.Stats().Sockets == 0 }, "the socket is still there")
	if !strings.Contains(log.String(), "10.0.0.7") {
		t.Errorf("the log does not say what happened: %s", &log)
	}
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	allow := func(r *http.Request) bool {
		o := r.Header.Get("Origin")
		return o == "" || o == "https://seats.example"
	}
	tests := []struct {
		check  func(*http.Request) bool
		origin string
		status int
	}{
		{nil, "http://evil.example", http.StatusForbidden},
		{nil, "", http.StatusSwitchingProtocols},
		{allow, "http://evil.example", http.StatusForbidden},
		{allow, "https://seats.example", http.StatusSwitchingProtocols},
	}
	for _, tt := range tests {
		s := newServer(t, graphqlws.Options{CheckOrigin: tt.check})
		header := http.Header{}
		if tt.origin != "" {
			header.Set("Origin", tt.origin)
		}
		c, resp, err := (&websocket.Dialer{Subprotocols: []string{transportWS}}).Dial(s.url(), header)
		if resp == nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("origin %q: %s, want %d", tt.origin, resp.Status, tt.status)
		}
		if c != nil {
			_ = c.Close()
		}
		eventually(t, func() bool { return s.Stats().Sockets == 0 }, "a refused upgrade is still counted")
	}
}
