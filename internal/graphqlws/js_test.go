package graphqlws_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatline/internal/graphqlws"
)

const scripts = "testdata/js"

// stockClient is a client from npm in a process of its own.
type stockClient struct {
	tb     testing.TB
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr strings.Builder
}

type event struct {
	Event string
	Value any
}

var installClients = sync.OnceValue(func() error {
	if _, err := os.Stat(filepath.Join(scripts, "node_modules", ".package-lock.json")); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci")
	install.Dir = scripts
	install.Stdout, install.Stderr = os.Stderr, os.Stderr
	return install.Run()
})

// startClient runs a script. Node and npm are part of what the tests need: a
// machine without them fails here.
func startClient(tb testing.TB, script, url, scenario string) *stockClient {
	tb.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			tb.Fatalf("the stock clients need %s 20 or later: %v", tool, err)
		}
	}
	if err := installClients(); err != nil {
		tb.Fatalf("npm ci in %s: %v", scripts, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tb.Cleanup(cancel)
	c := &stockClient{tb: tb, cmd: exec.CommandContext(ctx, "node", script, url, scenario)}
	c.cmd.Dir = scripts
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	return c
}

// next returns the next event, or io.EOF's when the client is done.
func (c *stockClient) next() (event, error) {
	if !c.lines.Scan() {
		return event{}, io.EOF
	}
	var e event
	if err := json.Unmarshal(c.lines.Bytes(), &e); err != nil {
		c.tb.Fatalf("%q: %v", c.lines.Text(), err)
	}
	return e, nil
}

// rest returns what happens until the client ends by itself.
func (c *stockClient) rest() (events []event) {
	c.tb.Helper()
	for {
		e, err := c.next()
		if err != nil {
			break
		}
		events = append(events, e)
	}
	if err := c.cmd.Wait(); err != nil {
		c.tb.Fatalf("%v: %v\n%s", c.cmd.Args, err, &c.stderr)
	}
	return events
}

// until returns the first event of that name.
func (c *stockClient) until(name string) event {
	c.tb.Helper()
	for {
		e, err := c.next()
		if err != nil {
			c.tb.Fatalf("ended before %q\n%s", name, &c.stderr)
		}
		if e.Event == name {
			return e
		}
	}
}

var stockClients = map[string]string{transportWS: "transport-ws.mjs", legacyWS: "legacy.cjs"}

func TestStockClients(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		s := newServer(t, graphqlws.Options{Init: initBy})
		var got []event
		for _, e := range startClient(t, stockClients[protocol], s.url(), "operations").rest() {
			if e.Event != "connecting" && e.Event != "closed" {
				got = append(got, e)
			}
		}
		var want []event
		if err := json.Unmarshal([]byte(`[
			{"event":"next","value":{"data":{"count":1}}},
			{"event":"next","value":{"data":{"count":2}}},
			{"event":"next","value":{"data":{"count":3}}},
			{"event":"complete"},
			{"event":"next","value":{"data":{"breaks":1}}},
			{"event":"error","value":[{"message":"broken off"}]},
			{"event":"error","value":[{"message":"Cannot query field \"nothing\" on type \"Query\".","locations":[{"line":1,"column":3}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]},
			{"event":"next","value":{"data":{"add":4}}},
			{"event":"complete"}
		]`), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
}

func TestStockClientsCancel(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		s := newServer(t, graphqlws.Options{Init: initBy})
		c := startClient(t, stockClients[protocol], s.url(), "cancel")
		c.until("cancelled")
		if e := c.until("next"); !reflect.DeepEqual(e.Value, map[string]any{"data": map[string]any{"hello": "world"}}) {
			t.Errorf("got %v", e)
		}
		eventually(t, func() bool { return s.live.Load() == 0 }, "the cancelled source goes on")
		c.rest()
	})
}

// A refused login is final: the client comes once, is told, and stays away.
func TestStockClientsRefused(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		s := newServer(t, graphqlws.Options{Init: initBy})
		got := startClient(t, stockClients[protocol], s.url(), "refused").rest()
		told := event{"error", 4401.0}
		if protocol == legacyWS {
			told = event{"refused", map[string]any{"message": "Unauthorized"}}
		}
		heard := false
		for _, e := range got {
			heard = heard || reflect.DeepEqual(e, told)
		}
		if !heard {
			t.Errorf("got %v without %v", got, told)
		}
		if n := s.Stats().Opened; n != 1 {
			t.Errorf("%d connection attempts", n)
		}
	})
}

// A restart sends clients away with 1012; they come back after a pause, to the
// next instance, and go on.
func TestStockClientsSurviveARestart(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		t.Parallel()
		before, after := newServer(t, graphqlws.Options{}), newServer(t, graphqlws.Options{})
		var current atomic.Pointer[server]
		var attempts atomic.Int64
		current.Store(before)
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			attempts.Add(1)
			current.Load().http.Config.Handler.ServeHTTP(w, r)
		}))
		defer proxy.Close()

		before.publish(map[string]any{"n": 1})
		after.publish(map[string]any{"n": 2})
		c := startClient(t, stockClients[protocol], "ws"+strings.TrimPrefix(proxy.URL, "http"), "restart")
		state := func(n float64) any {
			return map[string]any{"data": map[string]any{"state": map[string]any{"n": n}}}
		}
		if e := c.until("next"); !reflect.DeepEqual(e.Value, state(1)) {
			t.Fatalf("got %v", e)
		}
		before.Drain()
		if e := c.until("closed"); protocol == transportWS && e.Value != 1012.0 {
			t.Errorf("closed with %v", e.Value)
		}
		closed := time.Now()
		current.Store(after)
		if e := c.until("next"); !reflect.DeepEqual(e.Value, state(2)) {
			t.Fatalf("got %v", e)
		}
		if d := time.Since(closed); d < 50*time.Millisecond {
			t.Errorf("back after %v: no back-off", d)
		}
		if n := attempts.Load(); n > 5 {
			t.Errorf("%d connection attempts", n)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.cmd.Wait() // Killed, it says.
	})
}
