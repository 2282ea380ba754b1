package graphqlws

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzDecode: whatever arrives is either a message whose parts are as
// promised, or is answered with 4400.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"type":"connection_init"}`,
		`{"type":"connection_init","payload":{"Authorization":"Bearer x"}}`,
		`{"id":"1","type":"subscribe","payload":{"query":"{hello}","variables":{"a":1e400}}}`,
		`{"id":"1","type":"start","payload":{"query":"","extensions":{"persistedQuery":{"version":1}}}}`,
		`{"id":"\ud800","type":"complete"}`,
		`{"type":"ping","payload": {"a":[1,2,{"b":null}]} }`,
		`{"TYPE":"ping","type":"pong"}`,
		`[]`, `null`, `"`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, p := range []*protocol{transportWS, legacyWS} {
			m, bad := p.decode(data)
			if bad != nil {
				if bad.code != 4400 || bad.reason == "" || len(bad.reason) > maxReason {
					t.Fatalf("closes with %+v", bad)
				}
				continue
			}
			check(t, p, m)
		}
	})
}

func check(t *testing.T, p *protocol, m message) {
	named := m.kind == kindSubscribe || m.kind == kindComplete
	if m.kind == 0 || named != (m.id != "") || (m.kind == kindSubscribe) != (m.params != nil) {
		t.Fatalf("%s: %+v", p.name, m)
	}
	if named {
		if len(m.id) > maxID || !utf8.ValidString(m.id) {
			t.Fatalf("id %q", m.id)
		}
		var back struct{ ID, Type string }
		head := append(appendHead(nil, quote(m.id), p.next), '}')
		if err := json.Unmarshal(head, &back); err != nil || back.ID != m.id || back.Type != p.next {
			t.Fatalf("%s is read as %+v: %v", head, back, err)
		}
		if c := alreadyExists(m.id); len(c.reason) > maxReason || !utf8.ValidString(c.reason) {
			t.Fatalf("reason %q", c.reason)
		}
	}
	if m.payload != nil && !json.Valid(payloadMessage("pong", m.payload)) {
		t.Fatalf("pong for %s", m.payload)
	}
}
