package waitroom

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// placeToken proves a place: protocol.md section 4.
type placeToken struct {
	V       int    `json:"v"`
	Lecture int    `json:"lecture"`
	Epoch   int64  `json:"epoch"` // of the line that issued it
	Seq     int64  `json:"seq"`
	User    string `json:"user"`
	Iat     int64  `json:"iat"` // Redis time, ms
}

const (
	placeTokenVersion = 1
	maxPlaceToken     = 2048 // bytes; a longer one is not ours
)

type placeTokens struct{ key []byte }

// issue signs t as base64url(JSON) + "." + base64url(HMAC-SHA256), or returns
// "" where there is no key.
func (p placeTokens) issue(t placeToken) string {
	if len(p.key) == 0 {
		return ""
	}
	t.V = placeTokenVersion
	body, err := json.Marshal(t)
	if err != nil {
		return ""
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + p.mac(text)
}

// parse reads a token of ours; false for anything else.
func (p placeTokens) parse(s string) (placeToken, bool) {
	text, mac, ok := strings.Cut(s, ".")
	if !ok || len(p.key) == 0 || len(s) > maxPlaceToken {
		return placeToken{}, false
	}
	// The texts are compared: several would decode to the same bytes.
	if !hmac.Equal([]byte(mac), []byte(p.mac(text))) {
		return placeToken{}, false
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return placeToken{}, false
	}
	var t placeToken
	if json.Unmarshal(body, &t) != nil || t.V != placeTokenVersion {
		return placeToken{}, false
	}
	return t, true
}

func (p placeTokens) mac(text string) string {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// restorable is the sequence that the token brings back, or 0: only a token of
// an earlier line, of this person and lecture, without an enrolment or a
// cancellation since. Anything else is an ordinary join, never an error.
func (r *Room) restorable(ctx context.Context, id int, user, token string) (int64, error) {
	if token == "" {
		return 0, nil
	}
	t, ok := r.tokens.parse(token)
	if !ok || t.User != user || t.Lecture != id {
		return 0, nil
	}
	answer, err := r.onLine(ctx, r.scripts.people, id)
	if err != nil {
		return 0, err
	}
	if t.Epoch >= readingOf(answer.list(1)).epoch {
		return 0, nil
	}
	moved, err := r.seats.MovedSince(ctx, id, user, time.UnixMilli(t.Iat))
	if err != nil {
		return 0, fmt.Errorf("place token: %w", err)
	}
	if moved {
		return 0, nil
	}
	return t.Seq, nil
}

// tokenFor is the proof of a place as it is read now.
func (r *Room) tokenFor(id int, user string, st standing, rd reading) *string {
	s := r.tokens.issue(placeToken{Lecture: id, Epoch: rd.epoch, Seq: st.seq, User: user, Iat: rd.now.UnixMilli()})
	if s == "" {
		return nil
	}
	return &s
}
