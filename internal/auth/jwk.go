package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const (
	maxKeys = 100

	// Of RSA keys: RFC 7518 asks for no less, and more only costs time.
	minModulus, maxModulus = 2048, 8192 // bits
)

// publicMethods are the signatures that keys of a key server are good for. None
// of them is made with a secret.
var publicMethods = []string{
	jwt.SigningMethodRS256.Alg(), jwt.SigningMethodPS256.Alg(),
	jwt.SigningMethodES256.Alg(), jwt.SigningMethodES384.Alg(), jwt.SigningMethodES512.Alg(),
	jwt.SigningMethodEdDSA.Alg(),
}

// methodsOf are the signatures that a key can check, by its own nature. A curve
// belongs to one of them; the library that checks would take any.
func methodsOf(key any) []string {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); minModulus <= bits && bits <= maxModulus {
			return []string{jwt.SigningMethodRS256.Alg(), jwt.SigningMethodPS256.Alg()}
		}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return []string{jwt.SigningMethodES256.Alg()}
		case elliptic.P384():
			return []string{jwt.SigningMethodES384.Alg()}
		case elliptic.P521():
			return []string{jwt.SigningMethodES512.Alg()}
		}
	case ed25519.PublicKey:
		return []string{jwt.SigningMethodEdDSA.Alg()}
	}
	return nil
}

// publicKey is a key that checks signatures.
type publicKey struct {
	id      string // "" where it has none
	key     any
	methods []string
}

// keySet is what a key server publishes, as far as it is of use here.
type keySet []publicKey

// parseKeys reads a JWK set. As RFC 7517 asks, keys that mean nothing here are
// passed over: of an unknown type, malformed, for encryption, or secret. A set
// without a single key of use is an error, since an error is what it would be on
// the server's side.
func parseKeys(document []byte) (keySet, error) {
	var set struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("it is not a JWK set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	var keys keySet
	for _, raw := range set.Keys {
		if key, ok := parseKey(raw); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("it has no key that could check a token")
	}
	return keys, nil
}

func parseKey(raw json.RawMessage) (publicKey, bool) {
	var m jwkset.JWKMarshal
	if json.Unmarshal(raw, &m) != nil || len(m.KID) > maxKeyID {
		return publicKey{}, false
	}
	if m.USE != "" && m.USE != jwkset.UseSig || len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify) {
		return publicKey{}, false
	}
	// The key is trusted for where it comes from. A certificate would add
	// nothing to that, and the URL of one must not be followed.
	m.X5C, m.X5T, m.X5TS256, m.X5U = nil, "", "", ""
	parsed, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return publicKey{}, false
	}
	key := publicKey{id: m.KID, key: parsed.Key(), methods: methodsOf(parsed.Key())}
	if m.ALG != "" {
		if !slices.Contains(key.methods, m.ALG.String()) {
			return publicKey{}, false
		}
		key.methods = []string{m.ALG.String()}
	}
	return key, len(key.methods) > 0
}

// fitting are the keys for a token: those with its key's id, or all where the
// token names none, that check its kind of signature. known is false where there
// is no such id at all, whatever it would be good for.
func (s keySet) fitting(id *string, method string) (fit jwt.VerificationKeySet, known bool) {
	for _, k := range s {
		if id != nil && *id != k.id {
			continue
		}
		if slices.Contains(k.methods, method) {
			fit.Keys = append(fit.Keys, k.key)
			known = true
		}
		known = known || id != nil
	}
	return fit, known
}

// sameIDs reports whether two sets name the same keys in the same order.
func (s keySet) sameIDs(other keySet) bool {
	return slices.EqualFunc(s, other, func(a, b publicKey) bool { return a.id == b.id })
}
