package auth

import (
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var allMethods = []jwt.SigningMethod{
	jwt.SigningMethodRS256, jwt.SigningMethodPS256,
	jwt.SigningMethodES256, jwt.SigningMethodES384, jwt.SigningMethodES512, jwt.SigningMethodEdDSA,
}

// TestSignatures: each key checks what it signed, and nothing that another key
// signed, whatever the token calls its key.
func TestSignatures(t *testing.T) {
	l := newLab(t, keysAlone())
	var all []signer
	var published []jwk
	for _, method := range allMethods {
		s := newSigner(t, method.Alg(), method)
		all = append(all, s)
		published = append(published, s.public)
	}
	l.fetched(published...)
	for _, s := range all {
		got, err := l.verifier.Verify(t.Context(), s.token(t, jwt.MapClaims{"role": "operator"}))
		if err != nil || got != (Viewer{"kim", "Kim Minji", true, now.Add(time.Hour)}) {
			t.Errorf("%s: %+v, %v", s.id, got, err)
		}
		if _, err := l.verifier.Verify(t.Context(), s.tokenWith(t, map[string]any{"kid": nil}, nil)); err != nil {
			t.Errorf("%s, which does not name its key: %v", s.id, err)
		}
		for _, other := range all {
			if other.id == s.id {
				continue
			}
			if _, err := l.verifier.Verify(t.Context(), s.tokenWith(t, map[string]any{"kid": other.id}, nil)); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("%s with the key of %s: %v", s.id, other.id, err)
			}
		}
		good := s.token(t, nil)
		parts := strings.Split(good, ".")
		eve := strings.Split(s.token(t, jwt.MapClaims{"sub": "eve"}), ".")
		for name, token := range map[string]string{
			"another's claims": parts[0] + "." + eve[1] + "." + parts[2],
			"no signature":     parts[0] + "." + parts[1] + ".",
			"half a signature": good[:len(good)-len(parts[2])/2],
			"a signature of 0": parts[0] + "." + parts[1] + "." + b64(make([]byte, 64)),
		} {
			if _, err := l.verifier.Verify(t.Context(), token); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("%s, %s: %v", s.id, name, err)
			}
		}
	}
}

// TestKeyConfusion: what is public never stands in for a secret, with a secret
// configured or without.
func TestKeyConfusion(t *testing.T) {
	rs := newSigner(t, "rs", jwt.SigningMethodRS256)
	es := newSigner(t, "es", jwt.SigningMethodES256)
	ed := newSigner(t, "ed", jwt.SigningMethodEdDSA)
	secrets := map[string][]byte{"nothing": {}}
	for _, s := range []signer{rs, es, ed} {
		der, err := x509.MarshalPKIXPublicKey(s.key.Public())
		if err != nil {
			t.Fatal(err)
		}
		document, err := json.Marshal(s.public)
		if err != nil {
			t.Fatal(err)
		}
		secrets[s.id+" in DER"] = der
		secrets[s.id+" in PEM"] = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		secrets[s.id+" in PEM, trimmed"] = []byte(strings.TrimSpace(string(secrets[s.id+" in PEM"])))
		secrets[s.id+" as a JWK"] = document
		if key, ok := s.key.Public().(*rsa.PublicKey); ok {
			secrets["modulus"] = key.N.Bytes()
			secrets["PKCS 1"] = pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(key)})
		}
		for _, member := range []string{"n", "x"} {
			if text, ok := s.public[member].(string); ok {
				secrets[s.id+" "+member] = []byte(text)
			}
		}
	}
	oct := jwk{"kty": "oct", "kid": "oct", "alg": "HS256", "k": b64(secret)}
	for name, o := range map[string]Options{"keys alone": keysAlone(), "keys and another secret": options()} {
		if o.Secret != nil {
			o.Secret = []byte(strings.Repeat("another", 5))
		}
		l := newLab(t, o)
		l.fetched(rs.public, es.public, ed.public, oct)
		for what, key := range secrets {
			for _, kid := range []any{nil, "rs", "es", "ed", "oct", ""} {
				token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims(nil))
				if kid != nil {
					token.Header["kid"] = kid
				}
				signed, err := token.SignedString(key)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.verifier.Verify(t.Context(), signed); !errors.Is(err, ErrInvalidToken) {
					t.Errorf("%s: HS256 with %s, kid %v: %v", name, what, kid, err)
				}
			}
		}
		for what, token := range map[string]string{
			"the oct key of a key server": hs256(t, nil),
			"none":                        sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(nil)),
			"its own key in the header":   newSigner(t, "x", jwt.SigningMethodRS256).tokenWith(t, map[string]any{"kid": "rs", "jwk": rs.public}, nil),
			"a key elsewhere":             newSigner(t, "x", jwt.SigningMethodRS256).tokenWith(t, map[string]any{"kid": "rs", "jku": "http://127.0.0.1:1/", "x5u": "http://127.0.0.1:1/"}, nil),
			"RS384":                       signer{"rs", jwt.SigningMethodRS384, rs.key, nil}.token(t, nil),
			"RS512":                       signer{"rs", jwt.SigningMethodRS512, rs.key, nil}.token(t, nil),
			"PS512":                       signer{"rs", jwt.SigningMethodPS512, rs.key, nil}.token(t, nil),
		} {
			if _, err := l.verifier.Verify(t.Context(), token); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
}

// TestSecretAndKeys: each checks its own.
func TestSecretAndKeys(t *testing.T) {
	rs := newSigner(t, "rs", jwt.SigningMethodRS256)
	l := newLab(t, options())
	l.fetched(rs.public)
	for name, token := range map[string]string{"HS256": hs256(t, nil), "RS256": rs.token(t, nil)} {
		if got, err := l.verifier.Verify(t.Context(), token); err != nil || got.UserKey != "kim" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	l.answer(outage)
	l.pass(25 * time.Hour)
	if _, err := l.verifier.Verify(t.Context(), hs256(t, l.fresh(nil))); err != nil {
		t.Errorf("HS256 needs no key server: %v", err)
	}
}

func TestParseKeys(t *testing.T) {
	rs, es := newSigner(t, "rs", jwt.SigningMethodRS256), newSigner(t, "es", jwt.SigningMethodES256)
	es384, ed := newSigner(t, "es384", jwt.SigningMethodES384), newSigner(t, "ed", jwt.SigningMethodEdDSA)
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	offCurve := es.public.with(jwk{"y": es.public["x"]})
	tests := []struct {
		name string
		key  any
		want []string // methods; nil: passed over
	}{
		{"RSA", rs.public, []string{"RS256", "PS256"}},
		{"RSA for RS256", rs.public.with(jwk{"alg": "RS256"}), []string{"RS256"}},
		{"RSA for PS256", rs.public.with(jwk{"alg": "PS256"}), []string{"PS256"}},
		{"P-256", es.public, []string{"ES256"}},
		{"P-384", es384.public, []string{"ES384"}},
		{"Ed25519", ed.public, []string{"EdDSA"}},
		{"no use", rs.public.with(jwk{"use": ""}), []string{"RS256", "PS256"}},
		{"to verify", rs.public.with(jwk{"key_ops": []string{"sign", "verify"}}), []string{"RS256", "PS256"}},
		{"certificates that mean nothing", rs.public.with(jwk{"x5c": []string{"!"}, "x5t": "?", "x5u": "http://127.0.0.1:1/"}), []string{"RS256", "PS256"}},
		{"a private key", rs.public.with(jwk{"d": "AQAB"}), []string{"RS256", "PS256"}},
		{"members of tomorrow", ed.public.with(jwk{"pqc": true, "exp": 1}), []string{"EdDSA"}},

		{"for encryption", rs.public.with(jwk{"use": "enc"}), nil},
		{"for encryption by its alg", rs.public.with(jwk{"alg": "RSA-OAEP"}), nil},
		{"an unknown use", rs.public.with(jwk{"use": "SIG"}), nil},
		{"to sign only", rs.public.with(jwk{"key_ops": []string{"sign"}}), nil},
		{"for HS256", rs.public.with(jwk{"alg": "HS256"}), nil},
		{"for none", rs.public.with(jwk{"alg": "none"}), nil},
		{"for RS512", rs.public.with(jwk{"alg": "RS512"}), nil},
		{"P-384 for ES256", es384.public.with(jwk{"alg": "ES256"}), nil},
		{"P-256 for RS256", es.public.with(jwk{"alg": "RS256"}), nil},
		{"oct", jwk{"kty": "oct", "k": b64(secret)}, nil},
		{"1024 bits", publish(t, "short", &short.PublicKey), nil},
		{"16384 bits", rs.public.with(jwk{"n": b64(append([]byte{1}, make([]byte, 2047)...))}), nil},
		{"exponent 1", rs.public.with(jwk{"e": "AQ"}), nil},
		{"a large exponent", rs.public.with(jwk{"e": b64([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1})}), nil},
		{"off its curve", offCurve, nil},
		{"another curve", es.public.with(jwk{"crv": elliptic.P384().Params().Name}), nil},
		{"secp256k1", es.public.with(jwk{"crv": "secp256k1"}), nil},
		{"Ed25519 of 31 bytes", ed.public.with(jwk{"x": b64(make([]byte, 31))}), nil},
		{"X25519", ed.public.with(jwk{"crv": "X25519"}), nil},
		{"ML-DSA", jwk{"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"}, nil},
		{"no type", jwk{"kid": "x"}, nil},
		{"a long id", rs.public.with(jwk{"kid": strings.Repeat("k", 257)}), nil},
		{"an id that is 7", rs.public.with(jwk{"kid": 7}), nil},
		{"null", nil, nil},
		{"text", "key", nil},
		{"a list", []string{"key"}, nil},
	}
	for _, test := range tests {
		// Beside one that is good: what is passed over does not harm the others.
		document, err := json.Marshal(map[string]any{"keys": []any{test.key, ed.public}})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := parseKeys(document)
		if err != nil || keys[len(keys)-1].id != "ed" {
			t.Errorf("%s: %v, %v", test.name, keys, err)
			continue
		}
		var got []string
		if len(keys) == 2 {
			got = keys[0].methods
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: for %v, want %v", test.name, got, test.want)
		}
	}
}

// TestKeysThatShareAnID are tried in turn, as far as they fit.
func TestKeysThatShareAnID(t *testing.T) {
	a, b, es := newSigner(t, "1", jwt.SigningMethodEdDSA), newSigner(t, "1", jwt.SigningMethodEdDSA), newSigner(t, "1", jwt.SigningMethodES256)
	l := newLab(t, keysAlone())
	l.fetched(a.public, es.public, b.public)
	for _, s := range []signer{a, b, es} {
		if _, err := l.verifier.Verify(t.Context(), s.token(t, nil)); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.verifier.Verify(t.Context(), newSigner(t, "1", jwt.SigningMethodEdDSA).token(t, nil)); !errors.Is(err, ErrInvalidToken) {
		t.Errorf("a third key of that name: %v", err)
	}
}

func FuzzParseKeys(f *testing.F) {
	for _, method := range []jwt.SigningMethod{jwt.SigningMethodRS256, jwt.SigningMethodES256, jwt.SigningMethodEdDSA} {
		document, err := json.Marshal(map[string]any{"keys": []any{newSigner(f, "1", method).public}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(document)
	}
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AA"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		keys, err := parseKeys(document)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxKeys {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			if len(k.methods) == 0 || len(methodsOf(k.key)) == 0 {
				t.Errorf("%T checks nothing", k.key)
			}
		}
	})
}
