package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"

	"seatline/internal/testenv"
)

// lazyDial connects with hardly any room for what is not read.
func lazyDial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	return c, err
}

// subscribers start a subscription and then read nothing more. What they return
// finds out whether the connection has ended.
var subscribers = map[string]func(s *instance, query string) (ended func() error){
	"graphql-transport-ws": func(s *instance, query string) func() error {
		return s.lazySocket("graphql-transport-ws", "subscribe", query)
	},
	"graphql-ws": func(s *instance, query string) func() error { return s.lazySocket("graphql-ws", "start", query) },
	"sse": func(s *instance, query string) func() error {
		s.lazyPost(query, "text/event-stream")
		// Reading what the kernel has kept for such a narrow window takes minutes.
		// The server is asked instead, where those that have just been closed here
		// take a moment to end.
		return func() error {
			testenv.Eventually(s.t, 20*time.Second, func() bool { return inside("net/http.(*conn).serve") == 1 }, "only the reader's connection is served")
			return nil
		}
	},
}

func (s *instance) lazySocket(protocol, subscribe, query string) func() error {
	s.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{protocol}, NetDialContext: lazyDial}
	ws, res, err := dialer.DialContext(s.t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close()
	s.t.Cleanup(func() { ws.Close() })
	for _, m := range []map[string]any{
		{"type": "connection_init", "payload": map[string]string{"Authorization": bearer(s.t, "operator")}},
		nil,
		{"type": subscribe, "id": "1", "payload": map[string]string{"query": query}},
	} {
		if m == nil { // the acknowledgement
			_, _, err = ws.ReadMessage()
		} else {
			err = ws.WriteJSON(m)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return func() error {
		_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
		for {
			_, _, err := ws.ReadMessage()
			if wait, ok := errors.AsType[net.Error](err); ok && wait.Timeout() {
				return err
			}
			if err != nil {
				return nil
			}
		}
	}
}

func (s *instance) lazyPost(query, accept string) {
	s.t.Helper()
	conn, err := lazyDial(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	body := fmt.Sprintf(`{"query":%q}`, query)
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: %s\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s",
		accept, bearer(s.t, "operator"), len(body), body)
}

// verbose asks for so much with each event that no buffer holds many.
func verbose(operation, field, id string) string {
	return fmt.Sprintf(`%s{%s(lectureId:"%s"){%s}}`, operation, field, id, fields(80, "lecture{description}"))
}

// TestWhoStopsReadingIsGone within the time to write, over every transport, and
// whoever reads has noticed nothing.
func TestWhoStopsReadingIsGone(t *testing.T) {
	for name, subscribe := range subscribers {
		t.Run(name, func(t *testing.T) {
			s := start(t, env{
				"WRITE_TIMEOUT": "1s", "TICK": "20ms", "READ_TIMEOUT": "1s", "REQUEST_TIMEOUT": "1s", "MAX_COMPLEXITY": "100000",
				"MAX_SOCKETS_PER_PERSON": "1000", "MAX_SOCKETS": "2",
			})
			s.awaitReady()
			id := s.newLecture(`capacity:1,description:"` + strings.Repeat("설명", 2000) + `"`)
			reader := transports[name](s, "operator", `subscription{lineStats(lectureId:"`+id+`"){serverTime}}`)
			defer reader.close()
			reader.until("an event", func(e event) bool { return e.Data != nil })
			ended := subscribe(s, verbose("subscription", "lineStats", id))
			if _, status, _ := s.dial("graphql-transport-ws", nil); status != http.StatusServiceUnavailable {
				t.Fatalf("there are two, and a third gets %d", status)
			}
			// The reader's events come all the while. Nobody counts two any more once the other is gone.
			longest, last, gone := time.Duration(0), time.Now(), false
			for end := time.Now().Add(20 * time.Second); !gone && time.Now().Before(end); last = time.Now() {
				reader.until("another event", func(e event) bool { return e.Data != nil })
				longest = max(longest, time.Since(last))
				ws, status, _ := s.dial("graphql-transport-ws", nil)
				if gone = status == http.StatusSwitchingProtocols; gone {
					ws.Close()
				}
			}
			if !gone {
				t.Error("who does not read is still served")
			}
			if longest > 5*time.Second {
				t.Errorf("who reads waited %v for an event", longest)
			}
			s.client.CloseIdleConnections()
			if err := ended(); err != nil {
				t.Errorf("the connection is still open: %v", err)
			}
			reader.until("an event after all this", func(e event) bool { return e.Data != nil })
		})
	}
}

// TestAnUnreadReplyIsNotKeptForEver, large as it may be.
func TestAnUnreadReplyIsNotKeptForEver(t *testing.T) {
	s := start(t, env{"WRITE_TIMEOUT": "1s", "READ_TIMEOUT": "1s", "REQUEST_TIMEOUT": "10s", "MAX_COMPLEXITY": "100000"})
	s.awaitReady()
	id := s.newLecture(`capacity:1,description:"` + strings.Repeat("설명", 2000) + `"`)
	s.lazyPost(`{`+fields(40, `lecture(id:"`+id+`"){...f}`)+`} fragment f on Lecture{`+fields(80, "description")+`}`, "application/json")
	testenv.Eventually(t, 30*time.Second, func() bool { return inside("net/http.(*response).Write") == 1 }, "a reply of 38 MB is being written")
	testenv.Eventually(t, 30*time.Second, func() bool { return inside("net/http.(*response).Write") == 0 }, "nobody waits for the reader any more")
}

// inside is how many goroutines are in a function.
func inside(function string) int {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "\n"+function)
}

// TestPeersThatVanish: the network goes away without a word (A02). Sockets are
// reaped, the place in line stays.
func TestPeersThatVanish(t *testing.T) {
	s := start(t, env{"KEEPALIVE": "1s"})
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	s.mustEnroll("first", id)
	s.must("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
	network := testenv.NewProxy(t, strings.TrimPrefix(s.url, "http://"))
	far := *s
	far.url = "http://" + network.Addr
	s.client.CloseIdleConnections()
	steady := transports["graphql-transport-ws"](s, "kim", fmt.Sprintf(watched, id))
	steady.untilStatus("WAITING")
	var lost []*stream
	for _, protocol := range []string{"graphql-transport-ws", "graphql-ws"} {
		for range 5 {
			one := transports[protocol](&far, "kim", fmt.Sprintf(watched, id))
			one.untilStatus("WAITING")
			lost = append(lost, one)
		}
	}
	const served = "seatline/internal/graphqlws.(*conn).serve("
	if n := inside(served); n != 1+len(lost) {
		t.Fatalf("%d sockets are served", n)
	}
	network.Stall()
	// Their readers here and the proxy still wait; the server's part of it is gone.
	testenv.Eventually(t, 20*time.Second, func() bool { return inside(served) == 1 && s.figure("seatline_sockets") == "1" }, "the server gives them up")
	if a := s.must("kim", `{queuePosition(lectureId:"`+id+`"){status position}}`); a.at("queuePosition.position") != 1.0 {
		t.Errorf("the place: %v", a.Data)
	}
	network.Refuse()
	for _, one := range lost {
		one.close()
	}
	s.must("first", `mutation{cancelEnrollment(lectureId:"`+id+`"){number}}`)
	steady.untilStatus("ADMITTED")
}

// TestAfterAStormAllIsAsBefore: clients come, subscribe and leave in every way
// there is, over every transport, many at once (A01, A29).
func TestAfterAStormAllIsAsBefore(t *testing.T) {
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	s := start(t, env{"DATABASE_URL": databaseURL, "REDIS_URL": redisURL, "MAX_SOCKETS_PER_PERSON": "1000"})
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	s.mustEnroll("first", id)
	connections := redisConnections(t, redisURL)
	steady := transports["graphql-transport-ws"](s, "steady", fmt.Sprintf(watched, id))
	steady.untilStatus("NOT_QUEUED")
	s.client.CloseIdleConnections()
	var goroutines, heap []int
	const rounds, visitors = 4, 24
	for round := range rounds {
		var all sync.WaitGroup
		for i := range visitors {
			random := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			all.Go(func() { s.visit(random, id, fmt.Sprint("visitor-", i)) })
		}
		all.Wait()
		if round == 0 { // what is set up once is set up
			s.settle(t)
			goroutines = append(goroutines, runtime.NumGoroutine())
			heap = append(heap, heapInUse())
			continue
		}
		testenv.Eventually(t, 30*time.Second, func() bool { return runtime.NumGoroutine() <= goroutines[0]+5 }, "goroutines are back where they were")
		goroutines, heap = append(goroutines, runtime.NumGoroutine()), append(heap, heapInUse())
	}
	if last := heap[rounds-1]; last > heap[0]+16<<20 {
		t.Errorf("memory grows: %v", heap)
	}
	testenv.Eventually(t, 60*time.Second, func() bool { return connections() <= 60 }, "few connections to redis")
	s.must("first", `mutation{cancelEnrollment(lectureId:"`+id+`"){number}}`)
	s.must("steady", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
	steady.untilStatus("ADMITTED")
	s.checkInvariants()
}

// settle returns when the number of goroutines has not changed for a second.
func (s *instance) settle(t *testing.T) {
	last, since := runtime.NumGoroutine(), time.Now()
	testenv.Eventually(t, 30*time.Second, func() bool {
		if n := runtime.NumGoroutine(); n < last-1 || n > last+1 {
			last, since = n, time.Now()
		}
		return time.Since(since) > time.Second
	}, "a quiet second")
}

func heapInUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func redisConnections(t *testing.T, url string) func() int {
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { rdb.Close() })
	return func() int {
		list, err := rdb.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(list, "\n")
	}
}

// visit comes by one transport, watches, and leaves in one way of many.
func (s *instance) visit(random *rand.Rand, id, user string) {
	query := fmt.Sprintf(watched, id)
	if random.IntN(3) == 0 {
		s.visitByEvents(random, query, user)
		return
	}
	protocol := []string{"graphql-transport-ws", "graphql-ws"}[random.IntN(2)]
	start, stop := "subscribe", "complete"
	if protocol == "graphql-ws" {
		start, stop = "start", "stop"
	}
	ws, res, err := (&websocket.Dialer{Subprotocols: []string{protocol}}).DialContext(s.t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", nil)
	if err != nil {
		s.t.Errorf("dial: %v", err)
		return
	}
	res.Body.Close()
	defer ws.Close()
	_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	_ = ws.WriteJSON(map[string]any{"type": "connection_init", "payload": map[string]string{"Authorization": bearer(s.t, user)}})
	for i := range 3 {
		_ = ws.WriteJSON(map[string]any{"type": start, "id": fmt.Sprint(i), "payload": map[string]string{"query": query}})
		if i == 0 { // the welcome; in the newer protocol nothing may come before it
			if _, _, err := ws.ReadMessage(); err != nil && protocol == "graphql-ws" {
				s.t.Errorf("no welcome: %v", err)
			}
		}
	}
	switch random.IntN(4) {
	case 0:
		for i := range 3 {
			_ = ws.WriteJSON(map[string]any{"type": stop, "id": fmt.Sprint(i)})
		}
	case 1:
		_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		for err == nil {
			_, _, err = ws.ReadMessage()
		}
	case 2:
		_ = ws.NetConn().(*net.TCPConn).SetLinger(0) // a reset
	case 3: // it just ends
	}
}

func (s *instance) visitByEvents(random *rand.Rand, query, user string) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/graphql", bytes.NewReader(fmt.Appendf(nil, `{"query":%q}`, query)))
	if err != nil {
		s.t.Error(err)
		return
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Authorization": {bearer(s.t, user)}}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		s.t.Errorf("events: %v", err)
		return
	}
	defer res.Body.Close()
	if random.IntN(2) == 0 {
		_, _ = res.Body.Read(make([]byte, 100))
	}
}
