package graph

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seatline/graph/generated"
	"seatline/graph/model"
	"seatline/internal/auth"
	"seatline/internal/lecture"
	"seatline/internal/waitroom"
)

// scripted answers subscriptions from a script, one for each lecture id.
type scripted struct {
	*Resolver
	scripts map[string]func(ctx context.Context, n int) (*model.QueuePosition, error)
}

func (s scripted) Subscription() generated.SubscriptionResolver { return scriptedSubscription{s} }

type scriptedSubscription struct{ scripted }

func (s scriptedSubscription) QueuePosition(ctx context.Context, lectureID string) (<-chan *model.QueuePosition, error) {
	n := 0
	return feedOf(ctx, func(ctx context.Context) (*model.QueuePosition, error) {
		n++
		return s.scripts[lectureID](ctx, n)
	}), nil
}

func (s scriptedSubscription) LineStats(context.Context, string) (<-chan *model.LineStats, error) {
	return nil, errors.New("not in the script")
}

func at(position int) *model.QueuePosition {
	return model.Source{}.Position(1, waitroom.Place{Status: waitroom.Waiting, Position: &position}, nil)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func serveScripts(t *testing.T, scripts map[string]func(ctx context.Context, n int) (*model.QueuePosition, error)) (string, *Handler, *lockedBuffer) {
	t.Helper()
	goroutines := goleak.IgnoreCurrent()
	verifier, err := auth.NewVerifier(auth.Options{Secret: []byte(strings.Repeat("x", auth.MinSecret))})
	if err != nil {
		t.Fatal(err)
	}
	log := &lockedBuffer{}
	h := NewHandler(Options{
		Resolver: scripted{&Resolver{}, scripts},
		Verifier: verifier,
		Limits: Limits{
			BodyBytes: 64 << 10, ParserTokens: 1000, Depth: 12, Complexity: 5000, MutationFields: 5,
			BodyTime: 10 * time.Second, RequestTime: 10 * time.Second, WriteTime: 10 * time.Second, KeepAlive: 20 * time.Millisecond,
		},
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Drain()
		s.Close()
		goleak.VerifyNone(t, goroutines)
	})
	return s.URL, h, log
}

// lines subscribes by SSE and gives what arrives, line by line, to the end.
func lines(t *testing.T, url, id string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	body := `{"query":"subscription{queuePosition(lectureId:\"` + id + `\"){position}}"}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/graphql", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return linesOf(t, res.Body, cancel)
}

func linesOf(t *testing.T, body io.Reader, cancel func()) <-chan string {
	t.Helper()
	out := make(chan string, 100)
	gone := make(chan struct{})
	go func() {
		defer close(out)
		for scan := bufio.NewScanner(body); scan.Scan(); {
			select {
			case out <- scan.Text():
			case <-gone:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(gone)
		cancel() // which ends the body
		for range out {
		}
	})
	return out
}

// events are the events among the lines, without the signs of life.
func eventsOf(out <-chan string) (all []string) {
	for line := range out {
		if line != "" && line != ":" {
			all = append(all, line)
		}
	}
	return all
}

func TestAStreamEndsAsItsStoryDoes(t *testing.T) {
	until := func(last int, end error) func(context.Context, int) (*model.QueuePosition, error) {
		return func(_ context.Context, n int) (*model.QueuePosition, error) {
			if n > last {
				return nil, end
			}
			return at(10 - n), nil
		}
	}
	url, _, log := serveScripts(t, map[string]func(context.Context, int) (*model.QueuePosition, error){
		"over":   until(2, io.EOF),
		"silent": until(0, io.EOF),
		"gone":   until(1, lecture.ErrNotFound),
		"broken": until(1, errors.New("secret of the driver")),
		"panics": func(_ context.Context, n int) (*model.QueuePosition, error) {
			if n == 3 {
				panic("secret of the runtime")
			}
			return at(10 - n), nil
		},
	})
	event := func(position string) []string {
		return []string{"event: next", `data: {"data":{"queuePosition":{"position":` + position + `}}}`}
	}
	for id, want := range map[string]struct {
		positions []string
		code      string
	}{
		"over":   {[]string{"9", "8"}, ""},
		"silent": {nil, ""},
		"gone":   {[]string{"9"}, "NOT_FOUND"},
		"broken": {[]string{"9"}, "INTERNAL"},
		"panics": {[]string{"9", "8"}, "INTERNAL"},
	} {
		got := eventsOf(lines(t, url, id))
		for _, p := range want.positions {
			if len(got) < 2 || got[0] != event(p)[0] || got[1] != event(p)[1] {
				t.Fatalf("%s: %q", id, got)
			}
			got = got[2:]
		}
		if want.code != "" {
			var e struct {
				Errors []struct{ Extensions map[string]any }
			}
			if len(got) < 2 || json.Unmarshal([]byte(strings.TrimPrefix(got[1], "data: ")), &e) != nil || len(e.Errors) != 1 || e.Errors[0].Extensions["code"] != want.code || strings.Contains(got[1], "secret") {
				t.Fatalf("%s: %q", id, got)
			}
			got = got[2:]
		}
		if len(got) != 2 || got[0] != "event: complete" || got[1] != "data:" {
			t.Errorf("%s: the end is %q", id, got)
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 2 {
		t.Errorf("%d errors are logged: %s", n, log)
	}
}

func TestASilentStreamShowsSignsOfLifeUntilTheServerStops(t *testing.T) {
	left := make(chan struct{})
	url, h, _ := serveScripts(t, map[string]func(context.Context, int) (*model.QueuePosition, error){
		"quiet": func(ctx context.Context, n int) (*model.QueuePosition, error) {
			if n == 1 {
				return at(1), nil
			}
			<-ctx.Done()
			close(left)
			return nil, ctx.Err()
		},
	})
	out := lines(t, url, "quiet")
	signs := 0
	for line := range out {
		if line == ":" {
			if signs++; signs == 5 {
				break
			}
		}
	}
	h.Drain()
	<-left
	for _, line := range eventsOf(out) {
		if strings.Contains(line, "complete") {
			t.Error("a stop looks like the end of the story")
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", strings.NewReader(`{"query":"subscription{queuePosition(lectureId:1){position}}"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "UNAVAILABLE") {
		t.Errorf("a new stream while stopping: %d %s", w.Code, w.Body)
	}
}

func TestEachErrorHasItsOneCode(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code string
	}{
		{errUnauthenticated, "UNAUTHENTICATED"},
		{errForbidden, "FORBIDDEN"},
		{errNotEnabled, "NOT_ENABLED"},
		{lecture.ErrNotFound, "NOT_FOUND"},
		{errors.Join(errors.New("pq: x"), lecture.ErrUnavailable), "UNAVAILABLE"},
		{context.DeadlineExceeded, "UNAVAILABLE"},
		{&model.BadInput{Reason: "r"}, "BAD_USER_INPUT"},
		{&RateLimited{RetryAfter: 3 * time.Second}, "RATE_LIMITED"},
		{errors.New("pq: syntax error"), "INTERNAL"},
		{errPanic, "INTERNAL"},
	} {
		p := problemOf(tc.err)
		if p.code != tc.code || strings.Contains(p.text, "pq") {
			t.Errorf("%v: %+v", tc.err, p)
		}
		e := p.extensions(t.Context())
		_, retry := e["retryAfterMs"]
		_, id := e["requestId"]
		if retry != (p.code == "UNAVAILABLE" || p.code == "RATE_LIMITED") || id != (p.code == "INTERNAL") {
			t.Errorf("%v: %v", tc.err, e)
		}
	}
}
