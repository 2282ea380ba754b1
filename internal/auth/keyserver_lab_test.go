package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// jwk is a key as a key server publishes it.
type jwk map[string]any

func (j jwk) with(changes jwk) jwk {
	all := maps.Clone(j)
	maps.Copy(all, changes)
	return all
}

// signer is a private key, what it signs with, and what is published of it.
type signer struct {
	id     string
	method jwt.SigningMethod
	key    crypto.Signer
	public jwk
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func newSigner(tb testing.TB, id string, method jwt.SigningMethod) signer {
	tb.Helper()
	must := func(key crypto.Signer, err error) crypto.Signer {
		if err != nil {
			tb.Fatal(err)
		}
		return key
	}
	s := signer{id: id, method: method}
	curve := func(c elliptic.Curve) { s.key = must(ecdsa.GenerateKey(c, rand.Reader)) }
	switch method.Alg() {
	case "ES256":
		curve(elliptic.P256())
	case "ES384":
		curve(elliptic.P384())
	case "ES512":
		curve(elliptic.P521())
	case "EdDSA":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		s.key = must(key, err)
	default:
		s.key = must(rsa.GenerateKey(rand.Reader, 2048))
	}
	s.public = publish(tb, id, s.key.Public())
	return s
}

// publish writes a public key as RFC 7518 and RFC 8037 say, without the library
// that reads it.
func publish(tb testing.TB, id string, key crypto.PublicKey) jwk {
	tb.Helper()
	j := jwk{"kid": id, "use": "sig"}
	switch key := key.(type) {
	case *rsa.PublicKey:
		j["kty"], j["n"], j["e"] = "RSA", b64(key.N.Bytes()), b64(big.NewInt(int64(key.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := key.Bytes() // 4, x, y
		if err != nil {
			tb.Fatal(err)
		}
		half := len(point) / 2
		j["kty"], j["crv"], j["x"], j["y"] = "EC", key.Params().Name, b64(point[1:1+half]), b64(point[1+half:])
	case ed25519.PublicKey:
		j["kty"], j["crv"], j["x"] = "OKP", "Ed25519", b64(key)
	}
	return j
}

// token is one that the signer signs, with claims as claims makes them.
func (s signer) token(tb testing.TB, changes jwt.MapClaims) string {
	tb.Helper()
	return s.tokenWith(tb, map[string]any{"kid": s.id}, changes)
}

// tokenWith has more in its header, or less: nil takes a field away.
func (s signer) tokenWith(tb testing.TB, header map[string]any, changes jwt.MapClaims) string {
	tb.Helper()
	t := jwt.NewWithClaims(s.method, claims(changes))
	for name, value := range header {
		if t.Header[name] = value; value == nil {
			delete(t.Header, name)
		}
	}
	signed, err := t.SignedString(s.key)
	if err != nil {
		tb.Fatal(err)
	}
	return signed
}

// lab is a key server, and a verifier that asks it, under one clock.
type lab struct {
	tb       testing.TB
	keys     *KeyServer
	verifier *Verifier

	mu    sync.Mutex
	reply http.HandlerFunc
	asked int
	clock time.Time
}

func newLab(tb testing.TB, o Options) *lab {
	tb.Helper()
	l := &lab{tb: tb, clock: now}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.asked++
		reply := l.reply
		l.mu.Unlock()
		reply(w, r)
	}))
	tb.Cleanup(server.Close)
	o.Now = l.now
	var err error
	l.keys, err = NewKeyServer(KeyServerOptions{URL: server.URL + "/keys", Timeout: 2 * time.Second, Now: l.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	o.Keys = l.keys
	if l.verifier, err = NewVerifier(o); err != nil {
		tb.Fatal(err)
	}
	return l
}

// keysAlone are options without a secret.
func keysAlone() Options {
	o := options()
	o.Secret = nil
	return o
}

func (l *lab) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock
}

func (l *lab) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock = l.clock.Add(d)
}

func (l *lab) questions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *lab) answer(reply http.HandlerFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reply = reply
}

// publish has the server answer with these keys.
func (l *lab) publish(keys ...jwk) {
	l.tb.Helper()
	b, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		l.tb.Fatal(err)
	}
	l.answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) })
}

// fetched is publish, and a fetch that must work.
func (l *lab) fetched(keys ...jwk) {
	l.tb.Helper()
	l.publish(keys...)
	if err := l.keys.Fetch(l.tb.Context()); err != nil {
		l.tb.Fatal(err)
	}
}

// fresh are claims of a token that was issued this moment.
func (l *lab) fresh(changes jwt.MapClaims) jwt.MapClaims {
	at := l.now()
	all := jwt.MapClaims{"iat": at.Unix(), "nbf": at.Unix(), "exp": at.Add(time.Hour).Unix()}
	maps.Copy(all, changes)
	return all
}

// outage is a server that takes questions and gives no keys.
func outage(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
