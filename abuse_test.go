package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatline/internal/testenv"
)

// dial opens a socket that has said nothing yet. status is 101, or that of the
// refusal, whose body is returned.
func (s *instance) dial(protocol string, header http.Header) (ws *websocket.Conn, status int, body string) {
	s.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{protocol}, HandshakeTimeout: 10 * time.Second}
	ws, res, err := dialer.DialContext(s.t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", header)
	if res == nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if err != nil {
		b, _ := io.ReadAll(res.Body) // what there is of it
		return nil, res.StatusCode, string(b)
	}
	s.t.Cleanup(func() { ws.Close() })
	return ws, res.StatusCode, ""
}

// closedWith reads until the server closes, and gives the code.
func closedWith(t *testing.T, ws *websocket.Conn) int {
	t.Helper()
	_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		_, _, err := ws.ReadMessage()
		if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
			return closed.Code
		}
		if err != nil {
			t.Fatalf("instead of a close: %v", err)
		}
	}
}

// TestSocketsAndStreamsAreCountedTogether: of a person, of an address, and in
// all (A16). A place is free again however its connection ended.
func TestSocketsAndStreamsAreCountedTogether(t *testing.T) {
	s := start(t, env{"MAX_SOCKETS_PER_PERSON": "3", "MAX_SOCKETS_PER_ADDRESS": "6", "MAX_SOCKETS": "8", "TRUSTED_PROXIES": "127.0.0.1"})
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	watch := fmt.Sprintf(watched, id)
	open := []*stream{}
	for _, name := range []string{"graphql-transport-ws", "graphql-ws", "sse"} {
		one := transports[name](s, "kim", watch)
		one.untilStatus("NOT_QUEUED")
		open = append(open, one)
	}
	// The fourth of one person, on each transport.
	for _, protocol := range []string{"graphql-transport-ws", "graphql-ws"} {
		ws, _, _ := s.dial(protocol, nil)
		if err := ws.WriteJSON(map[string]any{"type": "connection_init", "payload": map[string]string{"Authorization": bearer(t, "kim")}}); err != nil {
			t.Fatal(err)
		}
		if code := closedWith(t, ws); code != 1013 {
			t.Errorf("%s: closed with %d", protocol, code)
		}
		ws.Close()
	}
	status, body := s.events("kim", watch, "")
	if status != 429 || !strings.Contains(body, "connections of this person") || !strings.Contains(body, `"RATE_LIMITED"`) || !strings.Contains(body, "retryAfterMs") {
		t.Errorf("events: %d %s", status, body)
	}
	if a := s.must("kim", `{viewer{userKey}}`); a.at("viewer.userKey") != "kim" {
		t.Errorf("a plain request: %v", a.Data)
	}
	// However one of them ends, another may come.
	for i, name := range []string{"sse", "graphql-transport-ws", "graphql-ws"} {
		open[i].close()
		testenv.Eventually(t, 20*time.Second, func() bool {
			open[i] = s.tryStream(name, "kim", watch)
			return open[i] != nil
		}, "a place that is free again, for "+name)
	}
	// The seventh of one address, and nobody else's.
	for range 3 {
		testenv.Eventually(t, 20*time.Second, func() bool {
			_, status, _ := s.dial("graphql-transport-ws", nil)
			return status == 101
		}, "a place that is free, for another socket of this address")
	}
	if _, status, body := s.dial("graphql-transport-ws", nil); status != 429 || !strings.Contains(body, "from this address") {
		t.Errorf("a seventh socket: %d %s", status, body)
	}
	if status, body := s.events("lee", watch, ""); status != 429 || !strings.Contains(body, "from this address") {
		t.Errorf("a seventh stream: %d %s", status, body)
	}
	elsewhere := http.Header{"X-Forwarded-For": {"203.0.113.9"}}
	for range 2 {
		if _, status, body := s.dial("graphql-ws", elsewhere); status != 101 {
			t.Errorf("from elsewhere: %d %s", status, body)
		}
	}
	// The ninth in all.
	if _, status, body := s.dial("graphql-ws", elsewhere); status != 503 || !strings.Contains(body, "too many connections to this server") {
		t.Errorf("a ninth: %d %s", status, body)
	}
	if status, body := s.events("lee", watch, "203.0.113.10"); status != 503 || !strings.Contains(body, `"UNAVAILABLE"`) {
		t.Errorf("a ninth stream: %d %s", status, body)
	}
}

// tryStream watches over one of the transports; nil where it is refused.
func (s *instance) tryStream(name, user, query string) *stream {
	s.t.Helper()
	out, err := (*stream)(nil), error(nil)
	switch name {
	case "sse":
		out = s.eventStream(user, query)
	case "graphql-ws":
		out, err = s.trySocket(bearer(s.t, user), name, "start", query)
	default:
		out, err = s.trySocket(bearer(s.t, user), name, "subscribe", query)
	}
	if err != nil {
		return nil
	}
	if e := out.until("an answer", func(event) bool { return true }); e.end != "" {
		out.close()
		return nil
	}
	return out
}

// events asks for a stream and gives its status, and its body where it is none.
func (s *instance) events(user, query, from string) (status int, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/graphql", strings.NewReader(fmt.Sprintf(`{"query":%q}`, query)))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Authorization": {bearer(s.t, user)}, "X-Forwarded-For": {from}}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		return res.StatusCode, ""
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestSocketsThatDoNothing: those that do not say who they are (A03), and those
// on which nothing runs, are let go; others are served meanwhile.
func TestSocketsThatDoNothing(t *testing.T) {
	s := start(t, env{"INIT_TIMEOUT": "1s", "SOCKET_IDLE_TIMEOUT": "2s"})
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	var silent []*websocket.Conn
	for range 100 {
		ws, _, _ := s.dial("graphql-transport-ws", nil)
		silent = append(silent, ws)
	}
	working := transports["graphql-transport-ws"](s, "kim", fmt.Sprintf(watched, id))
	working.untilStatus("NOT_QUEUED")
	for _, ws := range silent {
		if code := closedWith(t, ws); code != 4408 {
			t.Fatalf("closed with %d", code)
		}
	}
	idle, _, _ := s.dial("graphql-transport-ws", nil)
	if err := idle.WriteJSON(map[string]string{"type": "connection_init"}); err != nil {
		t.Fatal(err)
	}
	if code := closedWith(t, idle); code != 1001 {
		t.Errorf("an idle socket is closed with %d", code)
	}
	s.must("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
	working.untilStatus("ADMITTED")
}

// TestOperationsBeforeTheWelcomeAreNotRun (A04).
func TestOperationsBeforeTheWelcomeAreNotRun(t *testing.T) {
	s := start(t)
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	header := http.Header{"Authorization": {bearer(t, "kim")}} // known, and not welcome yet
	for protocol, kind := range map[string]string{"graphql-transport-ws": "subscribe", "graphql-ws": "start"} {
		ws, _, _ := s.dial(protocol, header)
		if err := ws.WriteJSON(map[string]any{"id": "1", "type": kind, "payload": map[string]string{"query": `mutation{joinQueue(lectureId:"` + id + `"){status}}`}}); err != nil {
			t.Fatal(err)
		}
		if code := closedWith(t, ws); code != 4401 {
			t.Errorf("%s: closed with %d", protocol, code)
		}
	}
	if a := s.must("kim", `{queuePosition(lectureId:"`+id+`"){status}}`); a.at("queuePosition.status") != "NOT_QUEUED" {
		t.Errorf("%v", a.Data)
	}
}

// TestWhatIsTooLargeIsCutOff: bodies and frames (A22).
func TestWhatIsTooLargeIsCutOff(t *testing.T) {
	s := start(t, env{"READ_TIMEOUT": "1s"})
	s.awaitReady()
	for name, r := range map[string]io.Reader{
		"a length":  strings.NewReader(`{"query":"{__typename}","x":"` + strings.Repeat("x", 8<<20) + `"}`),
		"no length": io.MultiReader(strings.NewReader(`{"query":"{__typename}","x":"`), io.LimitReader(endless{}, 8<<20)),
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/graphql", r)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		status, body, err := s.do(req)
		if err == nil && (status != 413 || !strings.Contains(body, "262144 bytes") || len(body) > 300) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		// Some clients go on sending into a closed connection and do not read the answer.
		if err != nil {
			t.Logf("%s: %v", name, err)
		}
	}
	// Who sends a byte now and then, to us or to a page, and headers likewise, is not waited for.
	for name, head := range map[string]string{
		"a chunked body":    "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"a body to nobody":  "POST /sdk.js HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"a body of a GET":   "GET /graphql?query={__typename} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"a body of no JSON": "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n",
		"headers":           "GET /graphql HTTP/1.1\r\nHost: x\r\n",
	} {
		begun := time.Now()
		s.trickle(head)
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("%s is waited for %v", name, took)
		}
	}
	for _, protocol := range []string{"graphql-transport-ws", "graphql-ws"} {
		ws, _, _ := s.dial(protocol, nil)
		_ = ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"connection_init","payload":{"x":"`+strings.Repeat("x", 2<<20)+`"}}`)) // may be cut off in the middle
		if code := closedWith(t, ws); code != 1009 {
			t.Errorf("%s: closed with %d", protocol, code)
		}
	}
	if a := s.must("", `{__typename}`); a.at("__typename") != "Query" {
		t.Errorf("afterwards: %v", a)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, "xxxxxxxxxxxxxxxx"), nil }

// trickle sends a byte every tenth of a second until the server hangs up.
func (s *instance) trickle(head string) {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, conn) // to the end, however it comes
	}()
	_, _ = io.WriteString(conn, head)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, _ = io.WriteString(conn, " ")
		case <-ctx.Done():
			return
		}
	}
}

// TestARefusalIsSmallAndNamesItsLimit, on every transport, and nothing has run (A20, A21).
func TestARefusalIsSmallAndNamesItsLimit(t *testing.T) {
	s := start(t, env{"MAX_DEPTH": "3"})
	s.awaitReady()
	id := s.newLecture(`capacity:3`)
	join := `joinQueue(lectureId:"` + id + `"){status}`
	for name, tc := range map[string]struct{ query, code, says string }{
		"tokens":     {`{__typename ` + strings.Repeat("@a ", 20000) + `}`, "GRAPHQL_PARSE_FAILED", "token limit of 1000"},
		"mutations":  {`mutation{` + fields(6, join) + `}`, "COMPLEXITY_LIMIT_EXCEEDED", "6 mutations; the limit is 5"},
		"complexity": {`{` + fields(60, `lectures(first:100){nodes{id}}`) + `}`, "COMPLEXITY_LIMIT_EXCEEDED", "the limit is 5000"},
		"depth":      {`{receipts{nodes{lecture{id}}}}`, "COMPLEXITY_LIMIT_EXCEEDED", "4 fields deep; the limit is 3"},
		"a page":     {`{lectures(first:101){totalCount}}`, "BAD_USER_INPUT", "100"},
		"bad fields": {`{` + strings.Repeat("nope ", 900) + `}`, "GRAPHQL_VALIDATION_FAILED", "nope"},
	} {
		for transport, send := range once {
			if transport != "http" && transport != "sse" && len(tc.query) > 60_000 {
				tc.query = tc.query[:50_000] + "}" // or the frame is too large
			}
			begun := time.Now()
			e := send(s, bearer(t, "kim"), tc.query)
			if e.code() != tc.code || len(e.Errors) > 10 || !strings.Contains(e.Errors[0].Message, tc.says) || time.Since(begun) > 10*time.Second {
				t.Errorf("%s, %s: %.300s", name, transport, fmt.Sprint(e))
			}
			if size := len(fmt.Sprint(e)); size > 4096 {
				t.Errorf("%s, %s: %d bytes", name, transport, size)
			}
		}
	}
	if a := s.must("kim", `{queuePosition(lectureId:"`+id+`"){status}}`); a.at("queuePosition.status") != "NOT_QUEUED" {
		t.Errorf("something ran: %v", a.Data)
	}
	// As many as are allowed make one enrolment.
	s.must("kim", `mutation{`+join+`}`)
	s.awaitStatus("kim", id, "ADMITTED")
	for range 20 {
		s.must("kim", `mutation{`+fields(5, `enroll(lectureId:"`+id+`"){status}`)+`}`)
	}
	s.checkInvariants()
}
