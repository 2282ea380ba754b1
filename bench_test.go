package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// figuresOnStdin makes a program that is the test binary answer each line on
// its standard input with its figures, on the first file beyond the usual ones.
const figuresOnStdin = "SEATLINE_TEST_FIGURES"

// figures are what a process costs at one moment.
type figures struct {
	Goroutines int
	Memory     uint64 // bytes of heap in use and of stacks, after a collection
}

func answerFigures() {
	answers := json.NewEncoder(os.NewFile(3, "figures"))
	line := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(line); err != nil {
			return
		}
		runtime.GC()
		runtime.GC()
		samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(samples)
		_ = answers.Encode(figures{runtime.NumGoroutine(), samples[0].Value.Uint64() + samples[1].Value.Uint64()})
	}
}

// BenchmarkSubscribers measures what a person who watches costs the server: a
// socket of their own and a subscription to their place, 5,000 times, in a
// process that does nothing else.
func BenchmarkSubscribers(b *testing.B) {
	const subscribers = 5000
	stores := backends["postgres and redis"](b)
	settings := env{figuresOnStdin: "on", "TICK": "1s", "MAX_SOCKETS_PER_ADDRESS": "10000"}
	for _, e := range []env{stores, hurried} {
		maps.Copy(settings, e)
	}
	p := spawn(b, settings)
	id := p.newLecture(`capacity:0`)
	for range b.N {
		before := p.figures()
		sockets := make([]*websocket.Conn, subscribers)
		var wg sync.WaitGroup
		for part := range slices.Chunk(sockets, subscribers/20) {
			wg.Go(func() {
				for i := range part {
					part[i] = p.subscribed(fmt.Sprintf("subscriber-%p-%d", part, i), id)
				}
			})
		}
		wg.Wait()
		p.client.CloseIdleConnections() // on which they joined
		<-time.After(5 * time.Second)   // what arriving costs is over
		after := p.figures()
		for _, ws := range sockets {
			if ws != nil {
				ws.Close()
			}
		}
		b.ReportMetric(float64(after.Goroutines-before.Goroutines)/subscribers, "goroutines/subscriber")
		b.ReportMetric(float64(after.Memory-before.Memory)/subscribers/1024, "KB/subscriber")
		b.ReportMetric(0, "ns/op")
	}
}

func (p *process) figures() (f figures) {
	p.t.Helper()
	if _, err := io.WriteString(p.asked, "\n"); err != nil {
		p.t.Fatal(err)
	}
	if err := p.answered.Decode(&f); err != nil {
		p.t.Fatal(err)
	}
	return f
}

// subscribed is a socket on which user waits and watches.
func (p *process) subscribed(user, lecture string) *websocket.Conn {
	_, body, err := p.post(bearer(p.t, user), `mutation{joinQueue(lectureId:"`+lecture+`"){status}}`)
	if err != nil || !strings.Contains(body, "WAITING") {
		p.t.Errorf("%s joins: %s, %v", user, body, err)
		return nil
	}
	dialer := websocket.Dialer{
		Subprotocols: []string{"graphql-transport-ws"}, ReadBufferSize: 1024, WriteBufferSize: 1024,
		NetDialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	}
	ws, res, err := dialer.DialContext(p.t.Context(), strings.Replace(p.url, "http", "ws", 1)+"/graphql", http.Header{})
	if err != nil {
		p.t.Error(err)
		return nil
	}
	res.Body.Close()
	for _, message := range []map[string]any{
		{"type": "connection_init", "payload": map[string]string{"Authorization": bearer(p.t, user)}},
		{"type": "subscribe", "id": "1", "payload": map[string]string{
			"query": `subscription{queuePosition(lectureId:"` + lecture + `"){status position total estimatedWaitSeconds serverTime}}`,
		}},
	} {
		var reply struct{ Type string }
		if err := ws.WriteJSON(message); err != nil {
			p.t.Error(err)
		} else if err := ws.ReadJSON(&reply); err != nil || reply.Type == "error" {
			p.t.Errorf("%s is answered with %v, %v", message["type"], reply, err)
		}
	}
	go func() { // reads what comes, as a client does
		for {
			if _, _, err := ws.NextReader(); err != nil {
				return
			}
		}
	}()
	return ws
}
