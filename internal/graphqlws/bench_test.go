package graphqlws_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/ast"

	"seatline/internal/graphqlws"
)

// childVariable makes the test binary the server of BenchmarkSockets, so that
// its memory is the server's alone.
const childVariable = "GRAPHQLWS_CHILD"

const benchmarkSockets = 5000

type usage struct {
	Goroutines int
	Heap       float64 // bytes in live objects
	Stacks     float64
	Resident   float64
	Sockets    int
	Operations int
}

// serveChild serves until its standard input ends. Each line on it is a
// command: "usage", or "publish" and a number.
func serveChild() int {
	l := newLab()
	t := graphqlws.New(graphqlws.Options{PingInterval: time.Hour}) // The clients only listen.
	h := handler.New(l)
	h.SetQueryCache(lru.New[*ast.QueryDocument](100))
	h.AddTransport(t)
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() { _ = (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve(listener) }()
	fmt.Println(listener.Addr())
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		if n, ok := strings.CutPrefix(commands.Text(), "publish "); ok {
			l.publish(map[string]any{"n": n, "pad": strings.Repeat("x", 150)})
			fmt.Println("{}")
			continue
		}
		if err := json.NewEncoder(os.Stdout).Encode(measure(t)); err != nil {
			return 1
		}
	}
	return 0
}

// measure collects first, a few times: a collection halves a stack that has
// become too large.
func measure(t *graphqlws.Transport) usage {
	for range 5 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	u := usage{
		Goroutines: runtime.NumGoroutine(),
		Heap:       float64(samples[0].Value.Uint64()),
		Stacks:     float64(samples[1].Value.Uint64()),
		Sockets:    t.Stats().Sockets,
		Operations: t.Stats().Operations,
	}
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		if pages, err := strconv.Atoi(strings.Fields(string(statm))[1]); err == nil {
			u.Resident = float64(pages * os.Getpagesize())
		}
	}
	return u
}

type child struct {
	b   *testing.B
	in  io.WriteCloser
	out *bufio.Scanner
}

func startChild(b *testing.B) (c *child, url string) {
	b.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0]) // It ends with its standard input.
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("server: %v", err)
		}
	})
	c = &child{b, in, bufio.NewScanner(out)}
	if !c.out.Scan() {
		b.Fatal("the server did not start")
	}
	return c, "ws://" + c.out.Text()
}

func (c *child) ask(command string) (u usage) {
	c.b.Helper()
	if _, err := fmt.Fprintln(c.in, command); err != nil {
		c.b.Fatal(err)
	}
	if !c.out.Scan() {
		c.b.Fatal("the server has ended")
	}
	if err := json.Unmarshal(c.out.Bytes(), &u); err != nil {
		c.b.Fatal(err)
	}
	return u
}

// BenchmarkSockets reports what a socket with one subscription costs a server
// that does nothing else: when it has subscribed, and when some events have
// come over it. The goals are 2 goroutines and 32 KB.
func BenchmarkSockets(b *testing.B) {
	for range b.N {
		c, url := startChild(b)
		before := c.ask("usage")
		sockets := make([]*websocket.Conn, benchmarkSockets)
		for i := range sockets {
			sockets[i] = subscribeQuietly(b, url)
		}
		idle := c.ask("usage")
		if idle.Sockets != benchmarkSockets || idle.Operations != benchmarkSockets {
			b.Fatalf("%+v", idle)
		}
		for n := range 5 {
			c.ask(fmt.Sprint("publish ", n))
			for _, s := range sockets {
				receiveQuietly(b, s, `"state"`)
			}
		}
		busy := c.ask("usage")
		for _, s := range sockets {
			_ = s.Close()
		}

		per := func(after, before float64) float64 { return (after - before) / benchmarkSockets }
		live := func(u usage) float64 { return u.Heap + u.Stacks }
		b.ReportMetric(per(float64(idle.Goroutines), float64(before.Goroutines)), "goroutines/socket")
		b.ReportMetric(per(live(idle), live(before)), "B/socket")
		b.ReportMetric(per(live(busy), live(before)), "B/socket-after-events")
		b.ReportMetric(per(idle.Stacks, before.Stacks), "stack-B/socket")
		b.ReportMetric(per(idle.Resident, before.Resident), "rss-B/socket")
		b.ReportMetric(per(busy.Resident, before.Resident), "rss-B/socket-after-events")
	}
}

func subscribeQuietly(b *testing.B, url string) *websocket.Conn {
	b.Helper()
	d := &websocket.Dialer{Subprotocols: []string{transportWS}, ReadBufferSize: 512, WriteBufferSize: 512}
	c, resp, err := d.Dial(url, nil)
	if err != nil {
		b.Fatal(err)
	}
	_ = resp.Body.Close()
	for _, frame := range []string{
		`{"type":"connection_init"}`,
		`{"id":"0b7f7d2e-8e0c-4e62-9c5f-6e0b0c7d3a11","type":"subscribe","payload":{"query":"subscription Watch($pad: Int!) { state(pad: $pad) { n pad } }","variables":{"pad":1}}}`,
	} {
		if err := c.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
			b.Fatal(err)
		}
		if strings.Contains(frame, "connection_init") {
			receiveQuietly(b, c, `"connection_ack"`)
		}
	}
	return c
}

func receiveQuietly(b *testing.B, c *websocket.Conn, want string) {
	b.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if _, text, err := c.ReadMessage(); err != nil || !strings.Contains(string(text), want) {
		b.Fatalf("got %s, %v; want %s", text, err, want)
	}
}

// BenchmarkEvent is one subscription's events, one after the other, with the
// client's share in it.
func BenchmarkEvent(b *testing.B) {
	s := newServer(b, graphqlws.Options{})
	p := s.open(b, transportWS)
	b.ReportAllocs()
	p.subscribe("a", fmt.Sprintf(`subscription{count(to:%d)}`, b.N))
	b.ResetTimer()
	for range b.N {
		if _, _, err := p.ReadMessage(); err != nil {
			b.Fatal(err)
		}
	}
}
