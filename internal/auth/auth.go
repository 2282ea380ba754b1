// Package auth decides who is asking. One Verifier reads the tokens of HTTP
// requests and of sockets, so that no transport is more credulous than another,
// and what it concludes, a Viewer, travels in the context.
//
// Tokens are JSON Web Tokens. HS256 is checked with the secret and nothing else,
// RS256, PS256, ES256, ES384, ES512 and EdDSA with the keys of a KeyServer and
// nothing else; which of the two there are is configured. A key checks only what
// its type is for, so that no public key is ever taken for a secret.
//
// The subject is the user key: it is validated here, once, and is the same bytes
// in Redis, in SQL and on receipts from then on. Keys are compared byte for byte:
// "kim" and "Kim", and two Unicode spellings of one name, are different people, as
// whoever issues the tokens has called them.
package auth

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrNoToken is returned by FromRequest and FromPayload where no token is
	// given: the caller is anonymous.
	ErrNoToken = errors.New("no token")
	// ErrInvalidToken is returned where a token, or what stands in the place
	// of one, is not acceptable. The error that wraps it says why, for the log;
	// it repeats nothing of the token.
	ErrInvalidToken = errors.New("invalid token")
	// ErrExpiredToken is the ErrInvalidToken of a token that has run out.
	ErrExpiredToken = fmt.Errorf("%w: it has expired", ErrInvalidToken)
	// ErrUnavailable is returned where a token may be good or not, and the key
	// server does not tell. It is no word on the token, which may be sent again.
	ErrUnavailable = errors.New("the token cannot be judged now")
	// ErrInvalidUserKey is returned by ValidUserKey.
	ErrInvalidUserKey = errors.New("invalid user key")
	// ErrInvalidName is returned by Guests.Start.
	ErrInvalidName = errors.New("invalid name")
)

// Viewer is who is asking.
type Viewer struct {
	UserKey   string
	Name      string // for people to read; the user key where the token has none
	Operator  bool
	ExpiresAt time.Time // when the token runs out: a socket is closed then
}

type viewerKey struct{}

// NewContext returns a context that carries the viewer.
func NewContext(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// FromContext returns the viewer, or false when nobody is signed in.
func FromContext(ctx context.Context) (Viewer, bool) {
	v, ok := ctx.Value(viewerKey{}).(Viewer)
	return v, ok
}

const (
	maxUserKey = 128 // bytes
	maxName    = 100 // characters
)

// ValidUserKey returns an ErrInvalidUserKey unless key is 1 to 128 bytes of valid
// UTF-8 without control characters (C0, DEL, C1) and without U+FFFD. That one is
// what decoders put in the place of bytes and surrogates that mean nothing: two
// keys that differ in nothing else would become one person.
func ValidUserKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrInvalidUserKey)
	case len(key) > maxUserKey:
		return fmt.Errorf("%w: it has %d bytes, more than %d", ErrInvalidUserKey, len(key), maxUserKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: it is not UTF-8", ErrInvalidUserKey)
	}
	for _, r := range key {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return fmt.Errorf("%w: it contains %U", ErrInvalidUserKey, r)
		}
	}
	return nil
}

// validName reports whether a name can be shown to people.
func validName(name string) bool {
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName {
		return false
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}
