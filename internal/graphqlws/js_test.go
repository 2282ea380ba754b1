package graphqlws_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"seatline/internal/graphqlws"
	"seatline/internal/testenv"
)

// stockClients are the clients from npm that speak each protocol.
var stockClients = map[string]string{transportWS: "graphql-ws", legacyWS: "subscriptions-transport-ws"}

// startClient has a client run operations, one after the other.
func startClient(tb testing.TB, protocol, url, as string, operations ...map[string]any) *testenv.Node {
	tb.Helper()
	input, err := json.Marshal(map[string]any{"url": url, "login": map[string]string{"as": as}, "operations": operations})
	if err != nil {
		tb.Fatal(err)
	}
	return testenv.StartNode(tb, "../../testdata/clients", "drive.mjs", stockClients[protocol], string(input))
}

func TestStockClients(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		s := newServer(t, graphqlws.Options{Init: initBy})
		var got []testenv.Event
		for _, e := range startClient(
			t, protocol, s.http.URL, "somebody",
			map[string]any{"query": `subscription { count(to: 3) }`},
			map[string]any{"query": `subscription { breaks(after: 1) }`},
			map[string]any{"query": `{ nothing }`},
			map[string]any{"query": `mutation Add($n: Int!) { add(n: $n) }`, "variables": map[string]any{"n": 4}},
		).Rest() {
			if e.Event != "connecting" && e.Event != "closed" {
				got = append(got, e)
			}
		}
		var want []testenv.Event
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
		c := startClient(
			t, protocol, s.http.URL, "somebody",
			map[string]any{"query": `subscription { count(to: 1000000) }`, "take": 3},
			map[string]any{"query": `{ hello }`},
		)
		c.Until("cancelled")
		if e, _ := c.Until("next"); !reflect.DeepEqual(e.Value, map[string]any{"data": map[string]any{"hello": "world"}}) {
			t.Errorf("got %v", e)
		}
		eventually(t, func() bool { return s.live.Load() == 0 }, "the cancelled source goes on")
		c.Rest()
	})
}

// A refused login is final: the client comes once, is told, and stays away.
func TestStockClientsRefused(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		s := newServer(t, graphqlws.Options{Init: initBy})
		events := startClient(t, protocol, s.http.URL, "nobody", map[string]any{"query": `subscription { never }`}).Rest()
		told := testenv.Event{Event: "error", Value: 4401.0}
		if protocol == legacyWS {
			told.Value = "Unauthorized"
		}
		if last := events[len(events)-1]; !reflect.DeepEqual(last, told) {
			t.Errorf("got %v, which does not end with %v", events, told)
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
		c := startClient(t, protocol, proxy.URL, "somebody", map[string]any{"query": `subscription { state(pad: 0) { n } }`, "take": 2})
		state := func(n float64) any {
			return map[string]any{"data": map[string]any{"state": map[string]any{"n": n}}}
		}
		if e, _ := c.Until("next"); !reflect.DeepEqual(e.Value, state(1)) {
			t.Fatalf("got %v", e)
		}
		before.Drain()
		if e, _ := c.Until("closed"); protocol == transportWS && e.Value != 1012.0 {
			t.Errorf("closed with %v", e.Value)
		}
		closed := time.Now()
		current.Store(after)
		if e, _ := c.Until("next"); !reflect.DeepEqual(e.Value, state(2)) {
			t.Fatalf("got %v", e)
		}
		if d := time.Since(closed); d < 50*time.Millisecond {
			t.Errorf("back after %v: no back-off", d)
		}
		if n := attempts.Load(); n > 5 {
			t.Errorf("%d connection attempts", n)
		}
		c.Rest()
	})
}
