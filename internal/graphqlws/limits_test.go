package graphqlws_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatline/internal/graphqlws"
)

// A socket has 20 operations in flight at most; who asks for more is told so
// for each, and the socket stays. Every way an operation can end frees its slot.
func TestMaxSubscriptions(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{MaxMessages: -1})
	p := s.open(t, transportWS)
	refused := `{"id":"%s","type":"error","payload":[{"message":"Too many operations on one socket; the limit is 20.","extensions":{"code":"RATE_LIMITED","retryAfterMs":1000}}]}`
	for i := range 19 {
		p.subscribe(fmt.Sprint(i), `subscription{never}`)
	}
	ends := map[string][]string{
		`subscription{count(to:1)}`:     {`{"id":"x","type":"next","payload":{"data":{"count":1}}}`, `{"id":"x","type":"complete"}`},
		`subscription{breaks(after:0)}`: {`{"id":"x","type":"error","payload":[{"message":"broken off"}]}`},
		`subscription{panics(after:0)}`: {`{"id":"x","type":"error","payload":[{"message":"Internal error","extensions":{"code":"INTERNAL"}}]}`},
		`subscription{refuses}`:         {`{"id":"x","type":"error","payload":[{"message":"not today"}]}`},
		`{hello}`:                       {`{"id":"x","type":"next","payload":{"data":{"hello":"world"}}}`, `{"id":"x","type":"complete"}`},
	}
	for query, want := range ends {
		for range 3 {
			p.subscribe("x", query)
			p.expect(want...)
		}
	}
	for range 3 {
		p.subscribe("x", `subscription{never}`)
		p.send(`{"id":"x","type":"complete"}`)
	}
	p.subscribe("x", `subscription{never}`)
	p.pingPong()
	for i := range 500 { // A client that does not read them all before it writes.
		p.subscribe(fmt.Sprint("over", i), `subscription{never}`)
	}
	for i := range 500 {
		p.expect(fmt.Sprintf(refused, fmt.Sprint("over", i)))
	}
	eventually(t, func() bool { return s.live.Load() == 20 }, "not 20 sources")
	p.pingPong()
}

// An id is free at once when the client completes it, but who completes faster
// than the resolvers let go comes to a limit.
func TestStubbornResolversAreLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{MaxSubscriptions: 2})
	p := s.open(t, transportWS)
	for _, id := range []string{"a", "b", "a", "b"} {
		p.subscribe(id, `mutation{wedge(gate:"g")}`)
		<-s.holding
		p.send(`{"id":"` + id + `","type":"complete"}`)
	}
	p.subscribe("a", `{hello}`)
	p.expect(`{"id":"a","type":"error","payload":[{"message":"Too many operations on one socket; the limit is 2.","extensions":{"code":"RATE_LIMITED","retryAfterMs":1000}}]}`)
	close(s.gate("g"))
	eventually(t, func() bool { return s.Stats().Operations == 0 }, "operations do not end")
	p.subscribe("a", `{hello}`)
	p.expect(`{"id":"a","type":"next","payload":{"data":{"hello":"world"}}}`, `{"id":"a","type":"complete"}`)
}

type personKey struct{}

func byName(ctx context.Context, payload map[string]any) (context.Context, map[string]any, time.Time, error) {
	name, _ := payload["name"].(string)
	return context.WithValue(ctx, personKey{}, name), nil, time.Time{}, nil
}

func TestMaxSocketsPerPerson(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{
		Init:                byName,
		Person:              func(ctx context.Context) string { return ctx.Value(personKey{}).(string) },
		MaxSocketsPerPerson: 2,
	})
	enter := func(name string) *peer {
		p := s.dial(t, transportWS)
		p.send(`{"type":"connection_init","payload":{"name":"` + name + `"}}`)
		return p
	}
	const ack = `{"type":"connection_ack"}`
	first := enter("ann")
	first.expect(ack)
	enter("ann").expect(ack)
	for range 3 {
		enter("ann").expectClose(1013, "Too many sockets")
	}
	enter("bob").expect(ack)
	for range 4 {
		enter("").expect(ack) // Nobody in particular is not counted.
	}
	_ = first.Close()
	eventually(t, func() bool { return s.Stats().Sockets == 6 }, "a closed socket is still counted")
	enter("ann").expect(ack)
	enter("ann").expectClose(1013, "Too many sockets")
}

func TestMaxSockets(t *testing.T) {
	t.Parallel()
	address := func(r *http.Request) string { return r.Header.Get("X-Address") }
	s := newServer(t, graphqlws.Options{MaxSockets: 3, Address: address, MaxSocketsPerAddress: 2})
	refusals := map[int]string{
		429: `{"errors":[{"message":"too many connections from this address","extensions":{"code":"RATE_LIMITED","retryAfterMs":5000}}]}`,
		503: `{"errors":[{"message":"too many connections to this server","extensions":{"code":"UNAVAILABLE","retryAfterMs":5000}}]}`,
	}
	dial := func(from string, status int) *websocket.Conn {
		t.Helper()
		c, resp, err := (&websocket.Dialer{Subprotocols: []string{transportWS}}).Dial(s.url(), http.Header{"X-Address": {from}})
		if resp == nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != status {
			t.Errorf("from %q: %s, want %d", from, resp.Status, status)
		}
		if status >= 400 {
			said, _ := io.ReadAll(resp.Body)
			if resp.Header.Get("Retry-After") == "" || string(said) != refusals[status] {
				t.Errorf("%s, Retry-After %q: %s", resp.Status, resp.Header.Get("Retry-After"), said)
			}
		}
		if c != nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return c
	}
	dial("a", 101)
	second := dial("a", 101)
	dial("a", 429)
	dial("b", 101)
	dial("c", 503)
	_ = second.Close()
	eventually(t, func() bool { return s.Stats().Sockets == 2 }, "a closed socket is still counted")
	dial("a", 101)
	eventually(t, func() bool { return s.Stats().Opened == 4 && s.Stats().Refused == 2 }, "counted wrongly")
}

// A client that has nothing to do with the silent ones is served meanwhile.
func TestSilentSocketsDoNotBlock(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{InitTimeout: 2 * time.Second})
	silent := make([]*peer, 100)
	for i := range silent {
		silent[i] = s.dial(t, transportWS)
	}
	p := s.open(t, transportWS)
	p.subscribe("1", `{hello}`)
	p.expect(`{"id":"1","type":"next","payload":{"data":{"hello":"world"}}}`, `{"id":"1","type":"complete"}`)
	for _, q := range silent {
		q.expectClose(4408, "Connection initialisation timeout")
	}
	p.pingPong()
}

// What is no socket, and is counted with them, is let in and refused with them.
func TestAdmit(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{
		Init:       byName,
		Person:     func(ctx context.Context) string { return ctx.Value(personKey{}).(string) },
		Address:    func(r *http.Request) string { return r.Header.Get("X-Address") },
		MaxSockets: 4, MaxSocketsPerPerson: 2, MaxSocketsPerAddress: 3,
	})
	ask := func(address, person string) (func(), *graphqlws.Refusal) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", nil)
		r.Header.Set("X-Address", address)
		return s.Admit(r, person)
	}
	admit := func(address, person string) func() {
		t.Helper()
		leave, why := ask(address, person)
		if why != nil {
			t.Fatalf("%s at %s: %s", person, address, why.Message)
		}
		return leave
	}
	refuse := func(address, person string, status int) {
		t.Helper()
		if _, why := ask(address, person); why == nil || why.Status != status {
			t.Errorf("%s at %s: %+v, want %d", person, address, why, status)
		}
	}
	first := admit("a", "ann")
	p := s.dial(t, transportWS)
	p.send(`{"type":"connection_init","payload":{"name":"ann"}}`)
	p.expect(`{"type":"connection_ack"}`)
	refuse("a", "ann", 429)
	other := s.dial(t, transportWS)
	other.send(`{"type":"connection_init","payload":{"name":"ann"}}`)
	other.expectClose(1013, "Too many sockets")
	eventually(t, func() bool { return s.Stats().Sockets == 2 }, "a refused socket is counted")
	leaves := []func(){admit("a", "bob"), admit("a", "")}
	refuse("a", "", 503)
	leaves[1]()
	leaves[1]() // Once is enough.
	admit("b", "")()
	leaves = append(leaves, admit("a", ""))
	leaves[0]()
	first()
	eventually(t, func() bool { return s.Stats().Sockets == 2 }, "what left is still counted")
	s.Drain()
	refuse("b", "", 503)
	p.expectClose(1012, "Service Restart")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Wait(ctx); err == nil {
		t.Error("Wait does not wait for who was admitted")
	}
	leaves[2]()
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// A socket on which nothing runs is let go, and not while something does.
func TestIdleSocketIsClosed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, protocol string) {
		const idle = 300 * time.Millisecond
		s := newServer(t, graphqlws.Options{IdleTimeout: idle})
		busy := s.open(t, protocol)
		busy.subscribe("a", `subscription{state(pad:1){n pad}}`)
		begun := time.Now()
		p := s.open(t, protocol)
		p.subscribe("1", `{hello}`)
		p.expect(`{"id":"1","type":"`+nextType(protocol)+`","payload":{"data":{"hello":"world"}}}`, `{"id":"1","type":"complete"}`)
		p.expectClose(1001, "Nothing runs here")
		if d := time.Since(begun); d < idle {
			t.Errorf("closed after %v", d)
		}
		s.publish(map[string]any{"n": 1, "pad": "x"})
		busy.expect(fmt.Sprintf(`{"id":"a","type":%q,"payload":{"data":{"state":{"n":1,"pad":"x"}}}}`, nextType(protocol)))
		stop := "complete"
		if protocol == legacyWS {
			stop = "stop"
		}
		busy.send(`{"id":"a","type":"` + stop + `"}`)
		busy.expectClose(1001, "Nothing runs here")
		eventually(t, func() bool { return s.Stats().Sockets == 0 }, "still counted")
	})
}

// Messages that come faster than they may are answered all the same, later.
func TestMaxMessages(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{MaxMessages: 100})
	p := s.open(t, transportWS)
	begun := time.Now()
	const burst, more = 1000, 60
	for range burst + more {
		p.send(`{"type":"ping"}`)
	}
	for range burst + more {
		p.expect(`{"type":"pong"}`)
	}
	if took := time.Since(begun); took < more*time.Second/100/2 {
		t.Errorf("%d messages are read in %v", burst+more, took)
	}
}
