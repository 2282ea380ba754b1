package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"seatline/internal/testenv"
)

const secret = "a secret for tests, long enough to be one"

// instance is the whole program, running in this process on a port of its own.
type instance struct {
	t      testing.TB
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

// hurried lifts what tests, which poll and do not sleep, would run into: their
// rates are counted all the same.
var hurried = env{"RATE_PER_PERSON": "100000", "BURST_PER_PERSON": "1000000", "RATE_PER_ADDRESS": "100000", "BURST_PER_ADDRESS": "1000000"}

// backends are the stores that every story must be the same on.
var backends = map[string]func(t testing.TB) env{
	"embedded": func(testing.TB) env { return env{} },
	"postgres and redis": func(t testing.TB) env {
		return env{"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": testenv.Redis(t)}
	},
	"postgres and a redis cluster": func(t testing.TB) env {
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
	maps.Copy(all, hurried)
	for _, e := range settings {
		maps.Copy(all, e)
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
		if inside("seatline.(*program).run") == 0 { // else it is for the test's other instance, which goes on
			goleak.VerifyNone(t, goroutines)
		}
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
func bearer(t testing.TB, user string) string {
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

// exchange is do for who wants to see the headers.
func (s *instance) exchange(r *http.Request) (status int, header http.Header, body string) {
	s.t.Helper()
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

func (s *instance) decode(body string, into any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		s.t.Fatalf("not JSON: %.1000s", body)
	}
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
