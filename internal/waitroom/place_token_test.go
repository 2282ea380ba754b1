package waitroom

import (
	"strings"
	"testing"
)

func TestPlaceToken(t *testing.T) {
	p := placeTokens{key: []byte("a key")}
	want := placeToken{V: 1, Lecture: 3, Epoch: 2, Seq: 2_000_000_007, User: "서울 kim", Iat: 1_796_000_000_000}
	s := p.issue(want)
	if got, ok := p.parse(s); !ok || got != want {
		t.Fatalf("parse(issue(t)) = %+v, %v", got, ok)
	}
	if _, ok := (placeTokens{key: []byte("another")}).parse(s); ok {
		t.Error("a token of another key is accepted")
	}
	text, mac, _ := strings.Cut(s, ".")
	for name, forged := range map[string]string{
		"empty": "", "no mac": text, "empty mac": text + ".", "cut mac": text + "." + mac[:len(mac)-4],
		"other body": "eyJ2IjoxfQ." + mac, "too long": strings.Repeat("a", 5000) + "." + mac, "two dots": s + ".",
	} {
		if _, ok := p.parse(forged); ok {
			t.Errorf("%s is accepted", name)
		}
	}
	if s := (placeTokens{}).issue(want); s != "" {
		t.Errorf("without a key %q is issued", s)
	}
	if _, ok := (placeTokens{}).parse(s); ok {
		t.Error("without a key a token is accepted")
	}
}

func FuzzPlaceToken(f *testing.F) {
	p := placeTokens{key: []byte("a key")}
	issued := p.issue(placeToken{Lecture: 1, Epoch: 1, Seq: 1_000_000_001, User: "u"})
	last := len(issued) - 1
	f.Add(issued)
	f.Add(issued + "\n")
	f.Add(issued + "=")
	f.Add(issued[:last] + string(issued[last]+1)) // the same bytes, loosely decoded
	f.Add(p.issue(placeToken{User: "\ufffd<>&\u2028"}))
	f.Add("e30.e30")
	f.Add("e30." + p.mac("e30"))
	f.Add(".")
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := p.parse(s); ok && p.issue(got) != s {
			t.Errorf("%q is accepted and is not what would be issued", s)
		}
	})
}
