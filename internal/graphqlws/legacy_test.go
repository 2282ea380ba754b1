package graphqlws_test

import (
	"testing"
	"time"

	"seatline/internal/graphqlws"
)

func TestLegacyRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, frame, message string
		code                 int
	}{
		{"refused", `{"type":"connection_init","payload":{"as":"nobody"}}`, "Unauthorized", 4401},
		{"forbidden", `{"type":"connection_init","payload":{"as":"banned"}}`, "Forbidden", 4403},
		{"start before init", `{"id":"1","type":"start","payload":{"query":"{hello}"}}`, "Unauthorized", 4401},
		{"unknown type", `{"type":"subscribe"}`, "Unexpected message type", 4400},
		{"not JSON", `{`, "Invalid message received", 4400},
		{"no init", ``, "Connection initialisation timeout", 4408},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := graphqlws.Options{Init: initBy}
			if tt.frame == "" {
				o.InitTimeout = 50 * time.Millisecond
			}
			p := newServer(t, o).dial(t, legacyWS)
			if tt.frame != "" {
				p.send(tt.frame)
			}
			p.expect(`{"type":"connection_error","payload":{"message":"` + tt.message + `"}}`)
			p.expectClose(tt.code, tt.message)
		})
	}
}

// Its client starts operations without waiting for the acknowledgement.
func TestLegacyStartWaitsForAck(t *testing.T) {
	t.Parallel()
	p := newServer(t, graphqlws.Options{}).dial(t, legacyWS)
	p.send(`{"type":"connection_init","payload":{}}`)
	p.subscribe("1", `{hello}`)
	p.expect(`{"type":"connection_ack"}`, `{"type":"ka"}`,
		`{"id":"1","type":"data","payload":{"data":{"hello":"world"}}}`, `{"id":"1","type":"complete"}`)
}

func TestLegacyStartWaitsForARefusal(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{Init: initBy})
	p := s.dial(t, legacyWS)
	p.send(`{"type":"connection_init","payload":{"as":"nobody"}}`)
	p.subscribe("1", `mutation{add(n:1)}`)
	p.expect(`{"type":"connection_error","payload":{"message":"Unauthorized"}}`)
	p.expectClose(4401, "Unauthorized")
	if s.sum.Load() != 0 {
		t.Error("a mutation was executed")
	}
}

func TestLegacyTerminate(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	p := s.open(t, legacyWS)
	p.subscribe("1", `subscription{never}`)
	p.send(`{"type":"connection_terminate"}`)
	p.expectClose(1000, "")
	eventually(t, func() bool { return s.Stats().Sockets == 0 }, "the socket is still there")
}

func TestLegacyDuplicateAndLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{MaxSubscriptions: 1})
	p := s.open(t, legacyWS)
	p.subscribe("1", `subscription{never}`)
	p.subscribe("2", `subscription{never}`)
	p.expect(`{"id":"2","type":"error","payload":[{"message":"Too many operations on one socket; the limit is 1.","extensions":{"code":"RATE_LIMITED","retryAfterMs":1000}}]}`)
	p.subscribe("1", `subscription{never}`)
	p.expect(`{"type":"connection_error","payload":{"message":"Subscriber for 1 already exists"}}`)
	p.expectClose(4409, "Subscriber for 1 already exists")
}
