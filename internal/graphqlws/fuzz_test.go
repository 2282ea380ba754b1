package graphqlws_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/gorilla/websocket"

	"seatline/internal/graphqlws"
)

// FuzzFrames sends lines as frames, whatever they are, to a real socket. The
// server answers with messages of the protocol and closes with a code from the
// table, or echoes the close that the client sends at last; it never fails
// inside, and nothing is left.
func FuzzFrames(f *testing.F) {
	for _, lines := range []string{
		"{\"type\":\"connection_init\"}\n{\"id\":\"1\",\"type\":\"subscribe\",\"payload\":{\"query\":\"subscription{count(to:3)}\"}}\n{\"id\":\"1\",\"type\":\"complete\"}",
		"{\"type\":\"connection_init\"}\n{\"id\":\"1\",\"type\":\"start\",\"payload\":{\"query\":\"subscription{never}\"}}\n{\"id\":\"1\",\"type\":\"stop\"}\n{\"type\":\"connection_terminate\"}",
		"{\"type\":\"connection_init\",\"payload\":{}}\n{\"type\":\"ping\",\"payload\":{}}\n{\"type\":\"pong\"}\n{\"type\":\"connection_init\"}",
		"{\"type\":\"connection_init\"}\n{\"id\":\"a\",\"type\":\"subscribe\",\"payload\":{\"query\":\"{panics}\"}}\n{\"id\":\"a\",\"type\":\"subscribe\",\"payload\":{\"query\":\"{\"}}",
		"\n\n{}",
	} {
		f.Add(false, []byte(lines))
		f.Add(true, []byte(lines))
	}
	s := newServer(f, graphqlws.Options{})
	f.Fuzz(func(t *testing.T, legacy bool, data []byte) {
		protocol := transportWS
		if legacy {
			protocol = legacyWS
		}
		p := s.dial(t, protocol)
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if p.WriteMessage(websocket.TextMessage, line) != nil {
				break // The server has closed.
			}
		}
		_ = p.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4999, ""))
		for {
			text, err := p.receive()
			if err != nil {
				checkEnd(t, err)
				break
			}
			checkMessage(t, legacy, text)
		}
		_ = p.Close()
		eventually(t, func() bool { return s.Stats().Sockets == 0 && s.Stats().Operations == 0 && s.live.Load() == 0 }, "something is left")
	})
}

func checkEnd(t *testing.T, err error) {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		t.Fatalf("ended without a close frame: %v", err)
	}
	switch closed.Code {
	case 1000, 1009, 4400, 4401, 4409, 4429, 4999:
	default:
		t.Fatalf("closed with %d %q", closed.Code, closed.Text)
	}
}

func checkMessage(t *testing.T, legacy bool, text string) {
	var m struct{ Type string }
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	known := map[string]bool{"connection_ack": true, "complete": true, "error": true}
	if legacy {
		known["ka"], known["data"], known["connection_error"] = true, true, true
	} else {
		known["next"], known["pong"] = true, true
	}
	if !known[m.Type] {
		t.Fatalf("the server sent %q", text)
	}
}
