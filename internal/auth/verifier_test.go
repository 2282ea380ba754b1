package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var (
	now    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	secret = []byte("a secret of at least thirty-two bytes")
)

func options() Options {
	return Options{
		Secret:        secret,
		Issuer:        "https://id.example",
		Audience:      "seatline",
		OperatorClaim: Claim{"role", "operator"},
		Now:           func() time.Time { return now },
	}
}

func verifier(t *testing.T, o Options) *Verifier {
	t.Helper()
	v, err := NewVerifier(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// claims is a good token's, changed; nil takes a claim away.
func claims(changes jwt.MapClaims) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": "https://id.example", "aud": "seatline", "sub": "kim", "name": "Kim Minji",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for name, value := range changes {
		c[name] = value
		if value == nil {
			delete(c, name)
		}
	}
	return c
}

func sign(t testing.TB, method jwt.SigningMethod, key any, c jwt.MapClaims) string {
	t.Helper()
	token, err := jwt.NewWithClaims(method, c).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func hs256(t *testing.T, changes jwt.MapClaims) string {
	t.Helper()
	return sign(t, jwt.SigningMethodHS256, secret, claims(changes))
}

// raw signs a payload that no encoder would write.
func raw(t *testing.T, payload string) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(payload))
	mac, err := jwt.SigningMethodHS256.Sign(signed, secret)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encode(mac)
}

func TestVerify(t *testing.T) {
	hour := now.Add(time.Hour)
	tests := []struct {
		name    string
		changes jwt.MapClaims
		want    Viewer
	}{
		{"as it is", nil, Viewer{"kim", "Kim Minji", false, hour}},
		{"no name", jwt.MapClaims{"name": nil}, Viewer{"kim", "kim", false, hour}},
		{"a name that is a number", jwt.MapClaims{"name": 7}, Viewer{"kim", "kim", false, hour}},
		{"a name with an escape", jwt.MapClaims{"name": "\x1b[31mKim"}, Viewer{"kim", "kim", false, hour}},
		{"a long name", jwt.MapClaims{"name": strings.Repeat("K", 101)}, Viewer{"kim", "kim", false, hour}},
		{"operator", jwt.MapClaims{"role": "operator"}, Viewer{"kim", "Kim Minji", true, hour}},
		{"operator among others", jwt.MapClaims{"role": []string{"student", "operator"}}, Viewer{"kim", "Kim Minji", true, hour}},
		{"another role", jwt.MapClaims{"role": "student"}, Viewer{"kim", "Kim Minji", false, hour}},
		{"a role that contains it", jwt.MapClaims{"role": "cooperator"}, Viewer{"kim", "Kim Minji", false, hour}},
		{"another case", jwt.MapClaims{"role": "Operator"}, Viewer{"kim", "Kim Minji", false, hour}},
		{"another claim", jwt.MapClaims{"Role": "operator"}, Viewer{"kim", "Kim Minji", false, hour}},
		{"a role that is true", jwt.MapClaims{"role": true}, Viewer{"kim", "Kim Minji", false, hour}},
		{"a role that is an object", jwt.MapClaims{"role": map[string]any{"operator": true}}, Viewer{"kim", "Kim Minji", false, hour}},
		{"several audiences", jwt.MapClaims{"aud": []string{"other", "seatline"}}, Viewer{"kim", "Kim Minji", false, hour}},
		{"clocks 30 s apart", jwt.MapClaims{"nbf": now.Add(30 * time.Second).Unix(), "iat": now.Add(30 * time.Second).Unix()}, Viewer{"kim", "Kim Minji", false, hour}},
		{"no nbf, no iat", jwt.MapClaims{"nbf": nil, "iat": nil}, Viewer{"kim", "Kim Minji", false, hour}},
		{"its last second", jwt.MapClaims{"exp": now.Add(time.Second).Unix()}, Viewer{"kim", "Kim Minji", false, now.Add(time.Second)}},
		{"spelling is kept", jwt.MapClaims{"sub": "Cafe\u0301 "}, Viewer{"Cafe\u0301 ", "Kim Minji", false, hour}},
	}
	v := verifier(t, options())
	for _, test := range tests {
		got, err := v.Verify(t.Context(), hs256(t, test.changes))
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := hs256(t, nil)
	parts := strings.Split(good, ".")
	none := sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(nil))
	critical := jwt.NewWithClaims(jwt.SigningMethodHS256, claims(nil))
	critical.Header["crit"] = []string{"exp"}
	withCritical, err := critical.SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"empty":                    "",
		"not a token":              "kim",
		"two parts":                parts[0] + "." + parts[1],
		"four parts":               good + ".x",
		"no signature":             parts[0] + "." + parts[1] + ".",
		"cut":                      good[:len(good)-2],
		"another's payload":        parts[0] + "." + strings.Split(hs256(t, jwt.MapClaims{"sub": "eve"}), ".")[1] + "." + parts[2],
		"padded":                   good + "=",
		"alg none":                 none,
		"alg None":                 base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"None"}`)) + "." + parts[1] + ".",
		"alg none, signed":         base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "." + parts[2],
		"no alg":                   base64.RawURLEncoding.EncodeToString([]byte(`{}`)) + "." + parts[1] + "." + parts[2],
		"HS384":                    sign(t, jwt.SigningMethodHS384, secret, claims(nil)),
		"HS512":                    sign(t, jwt.SigningMethodHS512, secret, claims(nil)),
		"RS256":                    sign(t, jwt.SigningMethodRS256, rsaKey, claims(nil)),
		"ES256":                    sign(t, jwt.SigningMethodES256, ecKey, claims(nil)),
		"EdDSA":                    sign(t, jwt.SigningMethodEdDSA, private, claims(nil)),
		"another secret":           sign(t, jwt.SigningMethodHS256, []byte(strings.Repeat("x", 32)), claims(nil)),
		"no secret":                sign(t, jwt.SigningMethodHS256, []byte{}, claims(nil)),
		"a public key as secret":   sign(t, jwt.SigningMethodHS256, publicPEM, claims(nil)),
		"critical extension":       withCritical,
		"no exp":                   hs256(t, jwt.MapClaims{"exp": nil}),
		"exp is text":              hs256(t, jwt.MapClaims{"exp": "tomorrow"}),
		"exp is digits as text":    hs256(t, jwt.MapClaims{"exp": "9999999999"}),
		"exp is null":              raw(t, `{"sub":"kim","iss":"https://id.example","aud":"seatline","exp":null}`),
		"exp is zero":              hs256(t, jwt.MapClaims{"exp": 0}),
		"exp is negative":          hs256(t, jwt.MapClaims{"exp": -1}),
		"exp is beyond all time":   hs256(t, jwt.MapClaims{"exp": 1e300}),
		"exp in milliseconds":      hs256(t, jwt.MapClaims{"exp": now.Add(time.Hour).UnixMilli()}),
		"nbf in 31 s":              hs256(t, jwt.MapClaims{"nbf": now.Add(31 * time.Second).Unix()}),
		"iat in 31 s":              hs256(t, jwt.MapClaims{"iat": now.Add(31 * time.Second).Unix()}),
		"nbf is text":              hs256(t, jwt.MapClaims{"nbf": "now"}),
		"nbf overflows":            hs256(t, jwt.MapClaims{"nbf": 1e20}),
		"iat overflows":            hs256(t, jwt.MapClaims{"iat": 1e20}),
		"exp overflows":            hs256(t, jwt.MapClaims{"exp": int64(math.MaxInt64)}),
		"no issuer":                hs256(t, jwt.MapClaims{"iss": nil}),
		"another issuer":           hs256(t, jwt.MapClaims{"iss": "https://id.example/"}),
		"no audience":              hs256(t, jwt.MapClaims{"aud": nil}),
		"another audience":         hs256(t, jwt.MapClaims{"aud": []string{"seatlines"}}),
		"no subject":               hs256(t, jwt.MapClaims{"sub": nil}),
		"a subject that is 7":      hs256(t, jwt.MapClaims{"sub": 7}),
		"a list of subjects":       hs256(t, jwt.MapClaims{"sub": []string{"kim"}}),
		"an empty subject":         hs256(t, jwt.MapClaims{"sub": ""}),
		"a subject of 129 bytes":   hs256(t, jwt.MapClaims{"sub": strings.Repeat("k", 129)}),
		"a subject with NUL":       hs256(t, jwt.MapClaims{"sub": "kim\x00"}),
		"a subject with DEL":       hs256(t, jwt.MapClaims{"sub": "kim\x7f"}),
		"a subject with C1":        hs256(t, jwt.MapClaims{"sub": "kim\u0085"}),
		"a lone surrogate":         raw(t, `{"sub":"kim\ud800","iss":"https://id.example","aud":"seatline","exp":9999999999}`),
		"a subject not UTF-8":      raw(t, "{\"sub\":\"kim\xff\",\"iss\":\"https://id.example\",\"aud\":\"seatline\",\"exp\":9999999999}"),
		"SUB instead of sub":       raw(t, `{"SUB":"kim","iss":"https://id.example","aud":"seatline","exp":9999999999}`),
		"claims that are an array": raw(t, `["kim"]`),
		"claims that are null":     raw(t, `null`),
		"9 KiB":                    hs256(t, jwt.MapClaims{"more": strings.Repeat("x", 9<<10)}),
		"64 MiB of dots":           strings.Repeat(".", 64<<20),
	}
	v := verifier(t, options())
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	for name, token := range tests {
		got, err := v.Verify(t.Context(), token)
		if !errors.Is(err, ErrInvalidToken) || got != (Viewer{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "kim") {
			t.Errorf("%s: the error repeats the token: %v", name, err)
		}
	}
}

// TestVerifyExpiry: no leeway at the end, because a socket is closed at it.
func TestVerifyExpiry(t *testing.T) {
	o := options()
	clock := now
	o.Now = func() time.Time { return clock }
	v := verifier(t, o)
	token := hs256(t, jwt.MapClaims{"exp": now.Add(10 * time.Second).Unix()})
	for _, test := range []struct {
		after time.Duration
		want  error
	}{
		{0, nil}, {9999 * time.Millisecond, nil}, {10 * time.Second, ErrExpiredToken}, {29 * time.Second, ErrExpiredToken}, {time.Hour, ErrExpiredToken},
	} {
		clock = now.Add(test.after)
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, test.want) {
			t.Errorf("after %v: %v", test.after, err)
		}
	}
}

func TestIssuerAndAudienceAreOptional(t *testing.T) {
	v := verifier(t, Options{Secret: secret, Now: options().Now})
	got, err := v.Verify(t.Context(), hs256(t, jwt.MapClaims{"iss": nil, "aud": nil, "role": "operator"}))
	if err != nil || got.UserKey != "kim" {
		t.Errorf("%+v, %v", got, err)
	}
	if got.Operator {
		t.Error("an operator without an operator claim")
	}
}

func TestWithoutASecret(t *testing.T) {
	if _, err := NewVerifier(Options{}); err == nil {
		t.Error("a verifier that nothing can satisfy")
	}
	if _, err := NewGuests(Options{}); err == nil {
		t.Error("an issuer without a secret")
	}
}

func TestFromPayload(t *testing.T) {
	good, eve := hs256(t, nil), hs256(t, jwt.MapClaims{"sub": "eve"})
	tests := []struct {
		name    string
		payload map[string]any
		want    error
	}{
		{"nil", nil, ErrNoToken},
		{"nothing", map[string]any{}, ErrNoToken},
		{"something else", map[string]any{"token": good, "authToken": good}, ErrNoToken},
		{"null", map[string]any{"Authorization": nil}, ErrNoToken},
		{"signed out", map[string]any{"Authorization": ""}, ErrNoToken},
		{"bearer", map[string]any{"Authorization": "Bearer " + good}, nil},
		{"lower case", map[string]any{"authorization": "bearer " + good}, nil},
		{"bare", map[string]any{"Authorization": good}, nil},
		{"the same twice", map[string]any{"Authorization": good, "authorization": good}, nil},
		{"null and one", map[string]any{"Authorization": nil, "authorization": good}, nil},
		{"two", map[string]any{"Authorization": good, "authorization": eve}, ErrInvalidToken},
		{"a number", map[string]any{"Authorization": 7.0}, ErrInvalidToken},
		{"a list", map[string]any{"Authorization": []any{good}}, ErrInvalidToken},
		{"two lists", map[string]any{"Authorization": []any{good}, "authorization": []any{good}}, ErrInvalidToken},
		{"true", map[string]any{"authorization": true}, ErrInvalidToken},
		{"basic", map[string]any{"Authorization": "Basic a2ltOnh4"}, ErrInvalidToken},
		{"bearer of nothing", map[string]any{"Authorization": "Bearer "}, ErrInvalidToken},
		{"bearer alone", map[string]any{"Authorization": "Bearer"}, ErrInvalidToken},
		{"undefined", map[string]any{"Authorization": "Bearer undefined"}, ErrInvalidToken},
		{"expired", map[string]any{"Authorization": hs256(t, jwt.MapClaims{"exp": now.Unix()})}, ErrExpiredToken},
	}
	v := verifier(t, options())
	for _, test := range tests {
		got, err := v.FromPayload(t.Context(), test.payload)
		if !errors.Is(err, test.want) || (err == nil) != (got.UserKey == "kim") {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
}

func TestMiddleware(t *testing.T) {
	good := hs256(t, nil)
	tests := []struct {
		name    string
		headers []string
		user    string
		refused error
	}{
		{"anonymous", nil, "", nil},
		{"signed out", []string{""}, "", nil},
		{"bearer", []string{"Bearer " + good}, "kim", nil},
		{"any case", []string{"BEARER  " + good}, "kim", nil},
		{"bare", []string{good}, "", ErrInvalidToken},
		{"basic", []string{"Basic a2ltOnh4"}, "", ErrInvalidToken},
		{"forged", []string{"Bearer " + good + "x"}, "", ErrInvalidToken},
		{"two", []string{"Bearer " + good, "Bearer " + good}, "", ErrInvalidToken},
		{"expired", []string{"Bearer " + hs256(t, jwt.MapClaims{"exp": now.Add(-time.Second).Unix()})}, "", ErrExpiredToken},
	}
	v := verifier(t, options())
	for _, test := range tests {
		var user string
		var refused error
		reached := false
		handler := v.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			reached = true
			if viewer, ok := FromContext(r.Context()); ok {
				user = viewer.UserKey
			}
		}), func(_ http.ResponseWriter, _ *http.Request, err error) { refused = err })
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", nil)
		for _, h := range test.headers {
			r.Header.Add("Authorization", h)
		}
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if !errors.Is(refused, test.refused) || user != test.user || reached != (test.refused == nil) {
			t.Errorf("%s: user %q, refused %v, reached %v", test.name, user, refused, reached)
		}
	}
}

func TestTypes(t *testing.T) {
	v := verifier(t, options())
	for kind, good := range map[any]bool{
		nil: true, "JWT": true, "jwt": true, "at+jwt": true, "application/at+jwt": true, "application/JWT": true,
		"logout+jwt": false, "secevent+jwt": false, "dpop+jwt": false, "JOSE": false, "": false, 7: false,
	} {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims(nil))
		if token.Header["typ"] = kind; kind == nil {
			delete(token.Header, "typ")
		}
		signed, err := token.SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Verify(t.Context(), signed); (err == nil) != good || err != nil && !errors.Is(err, ErrInvalidToken) {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	v, err := NewVerifier(options())
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a.b.c")
	f.Add(`eyJhbGciOiJub25lIn0.eyJzdWIiOiJraW0ifQ.`)
	f.Fuzz(func(t *testing.T, token string) {
		if got, err := v.Verify(t.Context(), token); !errors.Is(err, ErrInvalidToken) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func FuzzFromPayload(f *testing.F) {
	o := options()
	v, err := NewVerifier(o)
	if err != nil {
		f.Fatal(err)
	}
	good := sign(f, jwt.SigningMethodHS256, secret, claims(nil))
	for _, payload := range []string{
		`null`, `{}`, `{"Authorization":null}`, `{"Authorization":""}`, `{"Authorization":"Bearer ` + good + `"}`, `{"authorization":"` + good + `"}`,
		`{"Authorization":"` + good + `","authorization":"` + good + `"}`, `{"Authorization":["` + good + `"]}`, `{"Authorization":{"authorization":true}}`,
		`{"AUTHORIZATION":"` + good + `"}`, `{"Authorization":"Bearer"}`, `{"Authorization":"\ud800"}`, `{"Authorization":"Bearer \u0000"}`,
	} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var decoded map[string]any
		if json.Unmarshal(payload, &decoded) != nil {
			return
		}
		got, err := v.FromPayload(t.Context(), decoded)
		switch {
		case errors.Is(err, ErrNoToken), errors.Is(err, ErrInvalidToken):
			if got != (Viewer{}) {
				t.Errorf("%q: refused, and yet %+v", payload, got)
			}
		case err != nil:
			t.Errorf("%q: %v", payload, err)
		case got.UserKey != "kim" || !strings.Contains(string(payload), good[:20]) && !strings.Contains(string(payload), "\\u"):
			t.Errorf("%q: %+v out of nothing", payload, got)
		}
	})
}
