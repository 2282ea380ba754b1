package graphqlws

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
)

const (
	// maxID bounds an operation's id, which the server keeps and repeats in every message.
	maxID = 128

	// maxDepth bounds the nesting of a message. Decoding recurses, and what a
	// deep one does to a goroutine's stack outlives it.
	maxDepth = 100
)

// kind is what a message from the client means, whatever its name.
type kind int

const (
	kindInit kind = iota + 1
	kindSubscribe
	kindComplete
	kindPing
	kindPong
	kindTerminate
)

// protocol is a subprotocol's vocabulary.
type protocol struct {
	name     string
	legacy   bool
	incoming map[string]kind
	next     string
}

var (
	transportWS = &protocol{
		name: "graphql-transport-ws",
		incoming: map[string]kind{
			"connection_init": kindInit,
			"subscribe":       kindSubscribe,
			"complete":        kindComplete,
			"ping":            kindPing,
			"pong":            kindPong,
		},
		next: "next",
	}
	legacyWS = &protocol{
		name:   "graphql-ws",
		legacy: true,
		incoming: map[string]kind{
			"connection_init":      kindInit,
			"start":                kindSubscribe,
			"stop":                 kindComplete,
			"connection_terminate": kindTerminate,
		},
		next: "data",
	}
)

// protocolOf returns nil where the handshake agreed on none.
func protocolOf(name string) *protocol {
	for _, p := range []*protocol{transportWS, legacyWS} {
		if p.name == name {
			return p
		}
	}
	return nil
}

// message is one that a client may send.
type message struct {
	kind    kind
	id      string             // of kindSubscribe and kindComplete
	params  *graphql.RawParams // of kindSubscribe
	init    map[string]any     // of kindInit; nil without a payload
	payload json.RawMessage    // of kindPing; nil without one
}

// decode reads a message, or returns the close that answers what is not one.
// Nothing in the message refers to data.
func (p *protocol) decode(data []byte) (message, *closure) {
	var envelope struct {
		Type    string          `json:"type"`
		ID      *string         `json:"id"`
		Payload json.RawMessage `json:"payload"`
	}
	if !utf8.Valid(data) || tooDeep(data) || json.Unmarshal(data, &envelope) != nil {
		return message{}, notAMessage
	}
	m := message{kind: p.incoming[envelope.Type]}
	if string(envelope.Payload) == "null" {
		envelope.Payload = nil
	}

	switch m.kind {
	case kindInit:
		if envelope.Payload != nil && json.Unmarshal(envelope.Payload, &m.init) != nil {
			return message{}, badPayload
		}
	case kindPing:
		if envelope.Payload != nil && envelope.Payload[0] != '{' {
			return message{}, badPayload
		}
		m.payload = envelope.Payload
	case kindPong, kindTerminate:
	case kindSubscribe, kindComplete:
		if envelope.ID == nil || *envelope.ID == "" || len(*envelope.ID) > maxID {
			return message{}, badID
		}
		m.id = *envelope.ID
		if m.kind == kindComplete {
			break
		}
		if m.params = decodeParams(envelope.Payload); m.params == nil {
			return message{}, badPayload
		}
	default:
		return message{}, unknownType
	}
	return m, nil
}

// tooDeep tells whether what may be JSON is nested beyond maxDepth.
func tooDeep(data []byte) bool {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case text && b == '\\':
			i++
		case b == '"':
			text = !text
		case text:
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}

// decodeParams returns nil unless payload is an object with a query in it.
// Numbers keep their digits: a variable may need more of them than a float has.
func decodeParams(payload json.RawMessage) *graphql.RawParams {
	var v struct {
		Query         *string        `json:"query"`
		OperationName string         `json:"operationName"`
		Variables     map[string]any `json:"variables"`
		Extensions    map[string]any `json:"extensions"`
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	if d.Decode(&v) != nil || v.Query == nil {
		return nil
	}
	return &graphql.RawParams{
		Query:         *v.Query,
		OperationName: v.OperationName,
		Variables:     v.Variables,
		Extensions:    v.Extensions,
	}
}

// The connection's own messages, which are the same every time.
var (
	ackMessage       = []byte(`{"type":"connection_ack"}`)
	pingMessage      = []byte(`{"type":"ping"}`)
	pongMessage      = []byte(`{"type":"pong"}`)
	keepAliveMessage = []byte(`{"type":"ka"}`)
)

// payloadMessage encodes a message of the connection itself. The payload is
// JSON already.
func payloadMessage(typ string, payload []byte) []byte {
	b := make([]byte, 0, len(payload)+40)
	b = append(append(append(b, `{"type":"`...), typ...), `","payload":`...)
	return append(append(b, payload...), '}')
}

// appendHead begins a message about the operation with the given id, which is
// a JSON string already. What is appended must end with a brace for the whole.
func appendHead(b, id []byte, typ string) []byte {
	b = append(append(b, `{"id":`...), id...)
	return append(append(append(b, `,"type":"`...), typ...), '"')
}
