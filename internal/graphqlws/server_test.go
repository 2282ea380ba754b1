package graphqlws_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/goleak"

	"seatline/internal/graphqlws"
)

const (
	transportWS = "graphql-transport-ws"
	legacyWS    = "graphql-ws"

	// patience bounds every wait; nothing that works comes near it.
	patience = 20 * time.Second

	// httpTimeout is net/http's for a request. It must not outlive the upgrade.
	httpTimeout = time.Second
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(serveChild())
	}
	goleak.VerifyTestMain(m)
}

// server is the lab behind the transport under test, on a real socket.
type server struct {
	*lab
	*graphqlws.Transport
	http *httptest.Server
}

// newServer starts a server that must be as it was before when the test ends.
func newServer(tb testing.TB, o graphqlws.Options) *server {
	tb.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{lab: newLab(), Transport: graphqlws.New(o)}
	s.http = httptest.NewUnstartedServer(newHandler(s.lab, s.Transport))
	s.http.Listener = narrow{s.http.Listener}
	s.http.Config.ReadHeaderTimeout = httpTimeout
	s.http.Config.ReadTimeout = httpTimeout
	s.http.Config.WriteTimeout = httpTimeout
	s.http.Start()
	tb.Cleanup(func() {
		s.Drain()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Wait(ctx); err != nil {
			tb.Errorf("sockets are left after the test: %+v", s.Stats())
		}
		s.http.Close()
		eventually(tb, func() bool { return s.live.Load() == 0 }, "a source is still running")
		if s := s.Stats(); s.Sockets != 0 || s.Operations != 0 {
			tb.Errorf("left after the test: %+v", s)
		}
	})
	return s
}

// narrow gives accepted connections little room in the kernel, so that a peer
// that stops reading is felt soon.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(8 << 10)
	}
	return c, err
}

func newHandler(l *lab, t graphql.Transport) http.Handler {
	h := handler.New(l)
	h.AddTransport(t)
	h.AddTransport(transport.POST{})
	h.Use(extension.FixedComplexityLimit(50))
	h.SetErrorPresenter(present)
	h.SetRecoverFunc(func(_ context.Context, r any) error { return fmt.Errorf("recovered: %v", r) })
	return h
}

// present shows GraphQL's own errors and hides all others.
func present(ctx context.Context, err error) *gqlerror.Error {
	shown := graphql.DefaultErrorPresenter(ctx, err)
	if shown.Err != nil {
		return &gqlerror.Error{Message: "Internal error", Path: shown.Path, Extensions: map[string]any{"code": "INTERNAL"}}
	}
	return shown
}

func (s *server) url() string {
	return "ws" + strings.TrimPrefix(s.http.URL, "http")
}

// peer is a client that does nothing by itself.
type peer struct {
	tb testing.TB
	*websocket.Conn
}

// dial opens a socket and says nothing on it.
func (s *server) dial(tb testing.TB, protocol string) *peer {
	tb.Helper()
	return s.dialWith(tb, &websocket.Dialer{}, protocol)
}

func (s *server) dialWith(tb testing.TB, d *websocket.Dialer, protocol string) *peer {
	tb.Helper()
	if protocol != "" {
		d.Subprotocols = []string{protocol}
	}
	c, resp, err := d.Dial(s.url(), nil)
	if err != nil {
		tb.Fatalf("dial: %v (%v)", err, resp)
	}
	_ = resp.Body.Close()
	tb.Cleanup(func() { _ = c.Close() })
	return &peer{tb, c}
}

// open opens a socket and brings it to the acknowledgement.
func (s *server) open(tb testing.TB, protocol string) *peer {
	tb.Helper()
	p := s.dial(tb, protocol)
	p.init()
	return p
}

func (p *peer) init() {
	p.tb.Helper()
	p.send(`{"type":"connection_init"}`)
	p.expect(`{"type":"connection_ack"}`)
	if p.Subprotocol() == legacyWS {
		p.expect(`{"type":"ka"}`)
	}
}

func (p *peer) send(text string) {
	p.tb.Helper()
	if err := p.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		p.tb.Fatalf("sending %.200s: %v", text, err)
	}
}

func (p *peer) subscribe(id, query string) {
	p.tb.Helper()
	typ := "subscribe"
	if p.Subprotocol() == legacyWS {
		typ = "start"
	}
	b, err := json.Marshal(map[string]any{"id": id, "type": typ, "payload": map[string]any{"query": query}})
	if err != nil {
		p.tb.Fatal(err)
	}
	p.send(string(b))
}

func (p *peer) receive() (string, error) {
	_ = p.SetReadDeadline(time.Now().Add(patience))
	_, b, err := p.ReadMessage()
	return string(b), err
}

func (p *peer) next() string {
	p.tb.Helper()
	text, err := p.receive()
	if err != nil {
		p.tb.Fatalf("instead of a message: %v", err)
	}
	return text
}

// expect compares as JSON.
func (p *peer) expect(want ...string) {
	p.tb.Helper()
	for _, w := range want {
		if got := p.next(); !sameJSON(p.tb, got, w) {
			p.tb.Fatalf("got %.400s\nwant %s", got, w)
		}
	}
}

func sameJSON(tb testing.TB, a, b string) bool {
	tb.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		tb.Fatalf("comparing %.200s and %.200s: %v", a, b, err)
	}
	return reflect.DeepEqual(x, y)
}

func (p *peer) expectClose(code int, reason string) {
	p.tb.Helper()
	text, err := p.receive()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		p.tb.Fatalf("instead of close %d: %s %v", code, text, err)
	}
	if closed.Code != code || closed.Text != reason {
		p.tb.Fatalf("closed with %d %q, want %d %q", closed.Code, closed.Text, code, reason)
	}
}

// expectGone accepts any end of the socket but a close frame, after whatever was under way.
func (p *peer) expectGone() {
	p.tb.Helper()
	for {
		_, err := p.receive()
		if err == nil {
			continue
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			p.tb.Fatal("the socket is still there")
		}
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			p.tb.Fatalf("closed: %v", err)
		}
		return
	}
}

// pingPong shows that the socket works and that nothing was on its way.
func (p *peer) pingPong() {
	p.tb.Helper()
	p.send(`{"type":"ping","payload":{"n":1}}`)
	p.expect(`{"type":"pong","payload":{"n":1}}`)
}

func eventually(tb testing.TB, ok func() bool, otherwise string) {
	tb.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			tb.Error(otherwise)
			return
		}
	}
}

// both runs a test over both protocols.
func both(t *testing.T, f func(t *testing.T, protocol string)) {
	for _, p := range []string{transportWS, legacyWS} {
		t.Run(p, func(t *testing.T) { f(t, p) })
	}
}

// names of the messages that the protocols call differently
func nextType(protocol string) string {
	if protocol == legacyWS {
		return "data"
	}
	return "next"
}

func completeType(protocol string) string {
	if protocol == legacyWS {
		return "stop"
	}
	return "complete"
}
