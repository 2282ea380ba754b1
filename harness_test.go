package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"seatline/internal/testenv"
)

const secret = "a secret for tests, long enough to be one"

// instance is the whole program, running in this process on a port of its own.
type instance struct {
	t      *testing.T
	url    string
	log    *logBuffer
	client *http.Client
	cancel context.CancelFunc
	ended  chan error
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type env map[string]string

// backends are the stores that every story must be the same on.
var backends = map[string]func(t *testing.T) env{
	"embedded": func(*testing.T) env { return env{} },
	"postgres and redis": func(t *testing.T) env {
		return env{"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": testenv.Redis(t)}
	},
	"postgres and a redis cluster": func(t *testing.T) env {
		return env{"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": testenv.RedisCluster(t)}
	},
}

// onBackends runs a story on each of them.
func onBackends(t *testing.T, story func(t *testing.T, s *instance), more ...env) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			s := start(t, append([]env{backend(t)}, more...)...)
			s.awaitReady()
			story(t, s)
			s.checkInvariants()
		})
	}
}

// start runs the program with fast ticks. When the test ends it is stopped as by
// a signal, must end without an error, and must leave no goroutine behind.
func start(t *testing.T, settings ...env) *instance {
	t.Helper()
	goroutines := goleak.IgnoreCurrent()
	all := env{"ADDR": "127.0.0.1:0", "JWT_SECRET": secret, "TICK": "50ms", "LOG_LEVEL": "info"}
	for _, e := range settings {
		for k, v := range e {
			all[k] = v
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &instance{
		t: t, log: &logBuffer{}, cancel: cancel, ended: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second},
	}
	go func() {
		s.ended <- run(ctx, nil, func(k string) (string, bool) { v, ok := all[k]; return v, ok }, io.Discard, s.log)
	}()
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("the program ended with: %v", err)
		}
		if t.Failed() {
			t.Logf("its log:\n%s", s.log)
		}
		goleak.VerifyNone(t, goroutines)
	})
	testenv.Eventually(t, 20*time.Second, func() bool {
		_, rest, found := strings.Cut(s.log.String(), "msg=listening addr=")
		addr, _, whole := strings.Cut(rest, "\n")
		s.url = "http://" + addr
		return found && whole
	}, "listening")
	return s
}

// stop stops the program as a signal would and returns what it ended with.
func (s *instance) stop() error {
	s.cancel()
	s.client.CloseIdleConnections()
	select {
	case err := <-s.ended:
		s.ended <- err // for whoever asks again
		return err
	case <-time.After(30 * time.Second):
		s.t.Fatal("the program does not end")
		return nil
	}
}

func (s *instance) awaitReady() {
	s.t.Helper()
	testenv.Eventually(s.t, 30*time.Second, func() bool { status, _ := s.get("/readyz", ""); return status == 200 }, "ready")
}

// bearer is the token of a person; "operator" may run lectures, "" is nobody.
func bearer(t *testing.T, user string) string {
	t.Helper()
	if user == "" {
		return ""
	}
	claims := jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix()}
	if user == "operator" {
		claims["role"] = "operator"
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + token
}

// answer is a GraphQL response.
type answer struct {
	Data   map[string]any
	Errors []struct {
		Message    string
		Extensions map[string]any
	}
}

// code is the code of the first error, or "".
func (a answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	code, _ := a.Errors[0].Extensions["code"].(string)
	return code
}

// at follows a path of fields and returns what is there, as text where it is no
// object or list: "queuePosition.status".
func (a answer) at(path string) any {
	var v any = a.Data
	for name := range strings.SplitSeq(path, ".") {
		o, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = o[name]
	}
	return v
}

// ask sends an operation over HTTP.
func (s *instance) ask(user, query string) answer {
	s.t.Helper()
	a, _ := s.askRaw(user, query)
	return a
}

func (s *instance) askRaw(user, query string) (a answer, body string) {
	s.t.Helper()
	status, b, err := s.post(bearer(s.t, user), query)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &a); err != nil {
		s.t.Fatalf("%s: %d %s", query, status, b)
	}
	return a, b
}

// post may be called from any goroutine.
func (s *instance) post(authorization, query string) (status int, body string, err error) {
	b, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return 0, "", err
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/graphql", bytes.NewReader(b))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return s.do(r)
}

func (s *instance) do(r *http.Request) (status int, body string, err error) {
	res, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func (s *instance) get(path, user string) (status int, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if user != "" {
		r.Header.Set("Authorization", bearer(s.t, user))
	}
	status, body, err = s.do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return status, body
}

// must is ask for what cannot go wrong.
func (s *instance) must(user, query string) answer {
	s.t.Helper()
	a, body := s.askRaw(user, query)
	if len(a.Errors) > 0 {
		s.t.Fatalf("%s as %q: %s", query, user, body)
	}
	return a
}

// newLecture creates a lecture; fields are those of its input beside the title.
func (s *instance) newLecture(fields string) (id string) {
	s.t.Helper()
	return s.must("operator", `mutation{createLecture(input:{title:"라임 Lecture",`+fields+`}){id}}`).at("createLecture.id").(string)
}

// event is what a subscription says: a response, or how it ended.
type event struct {
	answer
	end string // "complete", "error", or the close of the connection
}

// stream is a subscription over one of the transports.
type stream struct {
	t      *testing.T
	events chan event
	close  func() // ends it, and waits until its reader is gone
}

// transports are the ways to subscribe.
var transports = map[string]func(s *instance, user, query string) *stream{
	"graphql-transport-ws": func(s *instance, user, query string) *stream {
		return s.socket("graphql-transport-ws", "subscribe", user, query)
	},
	"graphql-ws": func(s *instance, user, query string) *stream { return s.socket("graphql-ws", "start", user, query) },
	"sse":        (*instance).eventStream,
}

func (s *instance) socket(protocol, subscribe, user, query string) *stream {
	s.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{protocol}, HandshakeTimeout: 10 * time.Second}
	ws, res, err := dialer.DialContext(s.t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", nil)
	if err != nil {
		s.t.Fatalf("dial: %v, %v", err, res)
	}
	s.t.Cleanup(func() { ws.Close() })
	params := map[string]string{}
	if user != "" {
		params["Authorization"] = bearer(s.t, user)
	}
	for _, message := range []map[string]any{
		{"type": "connection_init", "payload": params},
		nil,
		{"type": subscribe, "id": "1", "payload": map[string]any{"query": query}},
	} {
		if message == nil { // the acknowledgement comes first
			var ack struct{ Type string }
			if err := ws.ReadJSON(&ack); err != nil || ack.Type != "connection_ack" {
				s.t.Fatalf("%s: %v %v", protocol, ack, err)
			}
			continue
		}
		if err := ws.WriteJSON(message); err != nil {
			s.t.Fatal(err)
		}
	}
	return newStream(s.t, ws, func(out *stream) { out.readSocket(ws) })
}

func newStream(t *testing.T, conn io.Closer, read func(*stream)) *stream {
	out := &stream{t: t, events: make(chan event, 1000)}
	out.close = func() {
		conn.Close()
		for range out.events {
		}
	}
	t.Cleanup(out.close)
	go read(out)
	return out
}

func (out *stream) readSocket(ws *websocket.Conn) {
	defer close(out.events)
	for {
		var m struct {
			Type    string
			Payload json.RawMessage
		}
		if err := ws.ReadJSON(&m); err != nil {
			out.events <- event{end: err.Error()}
			return
		}
		switch m.Type {
		case "next", "data":
			var e event
			if err := json.Unmarshal(m.Payload, &e.answer); err != nil {
				e.end = err.Error()
			}
			out.events <- e
		case "error":
			e := event{end: "error"}
			if err := json.Unmarshal(m.Payload, &e.Errors); err != nil { // a list, or in the older protocol one error
				_ = json.Unmarshal([]byte(`[`+string(m.Payload)+`]`), &e.Errors)
			}
			out.events <- e
		case "complete":
			out.events <- event{end: "complete"}
		case "ping":
			_ = ws.WriteJSON(map[string]string{"type": "pong"})
		}
	}
}

func (s *instance) eventStream(user, query string) *stream {
	s.t.Helper()
	b, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/graphql", bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", bearer(s.t, user))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return newStream(s.t, res.Body, func(out *stream) { out.readEvents(res.Body) })
}

func (out *stream) readEvents(body io.Reader) {
	defer close(out.events)
	kind := ""
	for lines := bufio.NewScanner(body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimPrefix(value, " "); {
		case name == "event":
			kind = value
		case name == "data" && kind == "next":
			var e event
			if err := json.Unmarshal([]byte(value), &e.answer); err != nil {
				e.end = err.Error()
			}
			out.events <- e
		case name == "data" && kind == "complete":
			out.events <- event{end: "complete"}
		}
	}
	out.events <- event{end: "the connection ended"}
}

// until reads events until one is as wanted, and returns it.
func (out *stream) until(what string, wanted func(event) bool) event {
	out.t.Helper()
	within := time.After(20 * time.Second)
	var last event
	for {
		select {
		case e, ok := <-out.events:
			if !ok {
				out.t.Fatalf("waiting for %s: nothing more after %+v", what, last)
			}
			if last = e; wanted(e) {
				return e
			}
		case <-within:
			out.t.Fatalf("waiting for %s: not after %+v", what, last)
		}
	}
}

// untilStatus reads until the position's status is this one.
func (out *stream) untilStatus(status string) event {
	out.t.Helper()
	return out.until(status, func(e event) bool { return e.at("queuePosition.status") == status })
}

// completed expects the end, and nothing but it.
func (out *stream) completed() {
	out.t.Helper()
	if e := out.until("the end", func(e event) bool { return true }); e.end != "complete" {
		out.t.Errorf("after the last event came %+v", e)
	}
}

// checkInvariants looks at every lecture's seats: what must hold after any story.
func (s *instance) checkInvariants() {
	s.t.Helper()
	lectures := s.must("operator", `{lectures(first:100){nodes{id capacity enrolledCount seatsLeft}}}`).at("lectures.nodes").([]any)
	for _, l := range lectures {
		l := answer{Data: l.(map[string]any)}
		roster := s.must("operator", `{enrollments(lectureId:"`+l.at("id").(string)+`",first:100){totalCount nodes{userKey}}}`)
		count, capacity := l.at("enrolledCount").(float64), l.at("capacity").(float64)
		if rows := roster.at("enrollments.totalCount").(float64); rows != count || count > capacity || l.at("seatsLeft").(float64) != capacity-count {
			s.t.Errorf("lecture %v: %v rows, %v counted, %v seats", l.at("id"), rows, count, capacity)
		}
		seen := map[any]bool{}
		for _, n := range roster.at("enrollments.nodes").([]any) {
			user := n.(map[string]any)["userKey"]
			if seen[user] {
				s.t.Errorf("lecture %v: %v has two seats", l.at("id"), user)
			}
			seen[user] = true
		}
	}
}
