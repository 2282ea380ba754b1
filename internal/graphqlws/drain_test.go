package graphqlws_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatline/internal/graphqlws"
)

// At a restart subscriptions are cut with 1012, and no complete that would
// tell the client its stream is over; a mutation in flight is answered first.
func TestDrain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, protocol string) {
		s := newServer(t, graphqlws.Options{DrainTimeout: time.Minute})
		var watchers []*peer
		for range 20 {
			p := s.open(t, protocol)
			p.subscribe("a", `subscription{never}`)
			watchers = append(watchers, p)
		}
		opened := s.dial(t, protocol)
		idle := s.open(t, protocol)
		busy := s.open(t, protocol)
		busy.subscribe("s", `subscription{never}`)
		busy.subscribe("m", `mutation{hold(gate:"g")}`)
		<-s.holding
		eventually(t, func() bool { return s.live.Load() == 21 }, "not subscribed")

		s.Drain()
		s.Drain() // Twice is as good as once.
		for _, p := range append(watchers, opened, idle) {
			p.expectClose(1012, "Service Restart")
		}
		_, resp, err := websocket.DefaultDialer.Dial(s.url(), nil)
		if err == nil || resp == nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("upgrade while draining: %v %v", resp, err)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		expired, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := s.Wait(expired); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a mutation in flight Wait returns %v", err)
		}
		if protocol == transportWS {
			busy.subscribe("late", `mutation{add(n:100)}`) // Not begun: the client asks again elsewhere.
			busy.pingPong()
		}
		close(s.gate("g"))
		busy.expect(`{"id":"m","type":"`+nextType(protocol)+`","payload":{"data":{"hold":1}}}`, `{"id":"m","type":"complete"}`)
		busy.expectClose(1012, "Service Restart")
		if err := s.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if n := s.sum.Load(); n != 1 {
			t.Errorf("a mutation began after the drain: %d", n)
		}
	})
}

// What does not finish in time is cancelled.
func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{DrainTimeout: 100 * time.Millisecond})
	p := s.open(t, transportWS)
	p.subscribe("m", `mutation{hold(gate:"never")}`)
	<-s.holding
	s.Drain()
	p.expectClose(1012, "Service Restart")
	if err := s.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if n := s.sum.Load(); n != 0 {
		t.Error("the mutation went on")
	}
}
