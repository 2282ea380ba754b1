package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"

	"seatline/internal/testenv"
)

// keyServer is an identity provider: it signs tokens and publishes its keys.
type keyServer struct {
	t *testing.T
	*httptest.Server

	mu     sync.Mutex
	key    *ecdsa.PrivateKey
	serial int
	away   bool
}

func newKeyServer(t *testing.T) *keyServer {
	p := &keyServer{t: t}
	p.rotate()
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.away {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		point, err := p.key.PublicKey.Bytes()
		if err != nil {
			t.Error(err)
			return
		}
		encode := base64.RawURLEncoding.EncodeToString
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": fmt.Sprint(p.serial), "x": encode(point[1:33]), "y": encode(point[33:]),
		}}})
	}))
	t.Cleanup(p.Close)
	return p
}

// rotate replaces the one key.
func (p *keyServer) rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = key
	p.serial++
}

func (p *keyServer) setAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

func (p *keyServer) settings() env {
	return env{"JWKS_URL": p.URL + "/keys", "JWT_ISSUER": "https://id.example", "JWT_AUDIENCE": "seatline", "JWT_SECRET": "", "OPERATOR_CLAIM": "realm_access.roles=operator"}
}

func idClaims(changes jwt.MapClaims) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": "https://id.example", "aud": []string{"account", "seatline"}, "sub": "kim",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(c, changes)
	return c
}

// bearer is a token of the provider's.
func (p *keyServer) bearer(changes jwt.MapClaims) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := jwt.NewWithClaims(jwt.SigningMethodES256, idClaims(changes))
	t.Header["kid"] = fmt.Sprint(p.serial)
	signed, err := t.SignedString(p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	return "Bearer " + signed
}

// reception is how a token is received over each transport: "welcome", or the
// code and the status or the close code.
func (s *instance) reception(authorization string) map[string]string {
	s.t.Helper()
	got := map[string]string{}
	query := `{viewer{userKey}}`
	status, body, err := s.post(authorization, query)
	got["http"] = received(s.t, status, body, err)
	for _, protocol := range []string{"graphql-transport-ws", "graphql-ws"} {
		got[protocol] = s.greeted(protocol, authorization)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/graphql", strings.NewReader(`{"query":"{viewer{userKey}}"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", authorization)
	status, body, err = s.do(r)
	if _, event, found := strings.Cut(body, "data: "); found {
		body, _, _ = strings.Cut(event, "\n")
	}
	got["sse"] = received(s.t, status, body, err)
	r, err = http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/lectures/1/enrollments.csv", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	status, body, err = s.do(r)
	if status == http.StatusForbidden { // known, and no operator
		status, body = http.StatusOK, `{}`
	}
	got["csv"] = received(s.t, status, body, err)
	return got
}

func received(t testing.TB, status int, body string, err error) string {
	t.Helper()
	var a answer
	if err == nil {
		err = json.NewDecoder(strings.NewReader(body)).Decode(&a)
	}
	if err != nil {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	if status == http.StatusOK && len(a.Errors) == 0 {
		return "welcome"
	}
	return fmt.Sprint(status, " ", a.code())
}

// greeted is how a socket is received: "welcome" or the code it is closed with.
func (s *instance) greeted(protocol, authorization string) string {
	s.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{protocol}, HandshakeTimeout: 10 * time.Second}
	ws, res, err := dialer.DialContext(s.t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", nil)
	if errors.Is(err, websocket.ErrBadHandshake) {
		res.Body.Close()
		return fmt.Sprint(res.StatusCode)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	defer ws.Close()
	if err := ws.WriteJSON(map[string]any{"type": "connection_init", "payload": map[string]string{"Authorization": authorization}}); err != nil {
		s.t.Fatal(err)
	}
	_ = ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		var m struct{ Type string }
		err := ws.ReadJSON(&m)
		if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
			return fmt.Sprint(closed.Code)
		}
		if err != nil {
			s.t.Fatalf("%s: %v", protocol, err)
		}
		if m.Type == "connection_ack" {
			return "welcome"
		}
	}
}

// The three ways to be received, on every transport alike.
var (
	welcome = map[string]string{"http": "welcome", "graphql-transport-ws": "welcome", "graphql-ws": "welcome", "sse": "welcome", "csv": "welcome"}
	refused = map[string]string{"http": "401 UNAUTHENTICATED", "graphql-transport-ws": "4401", "graphql-ws": "4401", "sse": "401 UNAUTHENTICATED", "csv": "401 UNAUTHENTICATED"}
	later   = map[string]string{"http": "503 UNAVAILABLE", "graphql-transport-ws": "1013", "graphql-ws": "1013", "sse": "503 UNAVAILABLE", "csv": "503 UNAVAILABLE"}
)

func (s *instance) expectReception(what, authorization string, want map[string]string) {
	s.t.Helper()
	if got := s.reception(authorization); !maps.Equal(got, want) {
		s.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestOneVerifierForAllTransports(t *testing.T) {
	s := start(t, env{"JWT_ISSUER": "https://id.example", "JWT_AUDIENCE": "seatline"})
	s.awaitReady()
	hs256 := func(key []byte, changes jwt.MapClaims) string {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, idClaims(changes)).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + token
	}
	ours := []byte(secret)
	s.expectReception("a good token", hs256(ours, nil), welcome)
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, idClaims(nil)).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	es256, err := jwt.NewWithClaims(jwt.SigningMethodES256, idClaims(nil)).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	for what, authorization := range map[string]string{
		"alg none":          "Bearer " + unsigned,
		"another secret":    hs256([]byte(strings.Repeat("x", 40)), nil),
		"ES256":             "Bearer " + es256,
		"another issuer":    hs256(ours, jwt.MapClaims{"iss": "https://id.example.org"}),
		"another audience":  hs256(ours, jwt.MapClaims{"aud": "account"}),
		"expired":           hs256(ours, jwt.MapClaims{"exp": time.Now().Add(-time.Second).Unix()}),
		"no expiry":         hs256(ours, jwt.MapClaims{"exp": nil}),
		"not yet":           hs256(ours, jwt.MapClaims{"nbf": time.Now().Add(time.Minute).Unix()}),
		"no subject":        hs256(ours, jwt.MapClaims{"sub": ""}),
		"NUL in the key":    hs256(ours, jwt.MapClaims{"sub": "kim\x00"}),
		"a key of 129":      hs256(ours, jwt.MapClaims{"sub": strings.Repeat("k", 129)}),
		"another scheme":    "Basic a2ltOmtpbQ==",
		"no token at all":   "Bearer undefined",
		"a token and a bit": hs256(ours, nil) + "x",
	} {
		s.expectReception(what, authorization, refused)
	}
	// Clocks may differ by half a minute, where a token begins.
	s.expectReception("clocks apart", hs256(ours, jwt.MapClaims{"nbf": time.Now().Add(20 * time.Second).Unix(), "iat": time.Now().Add(20 * time.Second).Unix()}), welcome)
}

func TestAKeyServerSigns(t *testing.T) {
	p := newKeyServer(t)
	s := start(t, p.settings())
	s.awaitReady()
	token := p.bearer(nil)
	s.expectReception("its token", token, welcome)
	if _, body, err := s.post(p.bearer(jwt.MapClaims{"realm_access": map[string]any{"roles": []string{"operator"}}}), `{viewer{operator}}`); err != nil || !strings.Contains(body, `"operator":true`) {
		t.Errorf("an operator: %s %v", body, err)
	}

	// HS256 has no key here: neither an old secret, nor what everybody can read.
	der, err := x509.MarshalPKIXPublicKey(p.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for what, key := range map[string][]byte{
		"a secret of before": []byte(secret), "an empty secret": {}, "the public key": der,
		"the public key in PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
	} {
		forged := jwt.NewWithClaims(jwt.SigningMethodHS256, idClaims(jwt.MapClaims{"sub": "eve"}))
		forged.Header["kid"] = "1"
		signed, err := forged.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		s.expectReception(what, "Bearer "+signed, refused)
	}
	s.expectReception("for others", p.bearer(jwt.MapClaims{"aud": "account"}), refused)

	// Rotated: who has a token by the new key comes in within moments, and until
	// then is asked to wait, not to sign in again.
	p.rotate()
	rotated := p.bearer(nil)
	testenv.Eventually(t, 20*time.Second, func() bool {
		status, body, err := s.post(rotated, `{viewer{userKey}}`)
		if err != nil || status != http.StatusOK && (status != http.StatusServiceUnavailable || !strings.Contains(body, "retryAfterMs")) {
			t.Fatalf("a new key: %d %s %v", status, body, err)
		}
		return status == http.StatusOK
	}, "the new key")
	s.expectReception("the new key", rotated, welcome)

	// Away: who is known stays so, who is not is asked to wait.
	p.setAway(true)
	p.rotate()
	s.expectReception("a known key in an outage", rotated, welcome)
	s.expectReception("a new key in an outage", p.bearer(nil), later)
	s.expectReception("an expired token in an outage", p.bearer(jwt.MapClaims{"exp": time.Now().Unix() - 1}), refused)
	testenv.Eventually(t, 20*time.Second, func() bool {
		if status, body, err := s.post(p.bearer(nil), `{viewer{userKey}}`); err != nil || status != http.StatusServiceUnavailable {
			t.Fatalf("a new key in an outage: %d %s %v", status, body, err)
		}
		return strings.Contains(s.log.String(), "the key server gives no keys")
	}, "a word of the outage in the log")
	s.expectReception("a known key still", rotated, welcome)
	p.setAway(false)
	testenv.Eventually(t, 20*time.Second, func() bool {
		status, _, err := s.post(p.bearer(nil), `{viewer{userKey}}`)
		return err == nil && status == http.StatusOK
	}, "the key server is back")

	if log := s.log.String(); strings.Contains(log, strings.Split(token, ".")[1]) {
		t.Errorf("its log holds a token:\n%s", log)
	}
}

func TestASecretAndAKeyServerBothSign(t *testing.T) {
	p := newKeyServer(t)
	s := start(t, p.settings(), env{"JWT_SECRET": secret, "GUEST_SESSIONS": "on"})
	s.awaitReady()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, idClaims(nil)).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	s.expectReception("by secret", "Bearer "+signed, welcome)
	s.expectReception("by key server", p.bearer(nil), welcome)
	guest := s.must("", `mutation{startSession(name:"x"){token}}`).at("startSession.token").(string)
	s.expectReception("a guest", "Bearer "+guest, welcome)
}

// TestAKeyServerThatIsLate is waited for as a store is: live, not ready, and no
// longer than START_TIMEOUT.
func TestAKeyServerThatIsLate(t *testing.T) {
	p := newKeyServer(t)
	p.setAway(true)
	s := start(t, p.settings())
	testenv.Eventually(t, 20*time.Second, func() bool { return strings.Contains(s.log.String(), "the key server is not ready yet") }, "a word of it")
	if status, _ := s.get("/healthz", ""); status != http.StatusOK {
		t.Errorf("live: %d", status)
	}
	if status, _ := s.get("/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("ready: %d", status)
	}
	s.expectReception("meanwhile", p.bearer(nil), map[string]string{
		"http": "503 UNAVAILABLE", "sse": "503 UNAVAILABLE", "csv": "503 UNAVAILABLE", "graphql-transport-ws": "503", "graphql-ws": "503",
	})
	p.setAway(false)
	s.awaitReady()
	s.expectReception("now", p.bearer(nil), welcome)
}

func TestAKeyServerThatNeverComes(t *testing.T) {
	p := newKeyServer(t)
	p.setAway(true)
	all := p.settings()
	all["ADDR"], all["START_TIMEOUT"] = "127.0.0.1:0", "1s"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := run(ctx, nil, func(k string) (string, bool) { v, ok := all[k]; return v, ok }, io.Discard, io.Discard)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "JWKS_URL: the key server did not become ready in time") || !strings.Contains(err.Error(), "502") {
		t.Errorf("ended with %v", err)
	}
	// And a signal is not made to wait for it.
	all["START_TIMEOUT"] = "10m"
	ctx, cancel = context.WithCancel(t.Context())
	log := &logBuffer{}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, nil, func(k string) (string, bool) { v, ok := all[k]; return v, ok }, io.Discard, log)
	}()
	testenv.Eventually(t, 20*time.Second, func() bool { return bytes.Contains([]byte(log.String()), []byte("not ready yet")) }, "waiting for it")
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("stopped with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not stop")
	}
}

// TestATokenThatRunsOutEndsTheStreamAndNotThePlace over every transport.
func TestATokenThatRunsOutEndsTheStreamAndNotThePlace(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		short := func(user string) string {
			token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": user, "exp": time.Now().Add(3 * time.Second).Unix()}).SignedString([]byte(secret))
			if err != nil {
				t.Fatal(err)
			}
			return "Bearer " + token
		}
		id := s.newLecture(`capacity:1`)
		s.mustEnroll("first", id)
		place := map[string]float64{}
		for i, name := range []string{"graphql-transport-ws", "graphql-ws", "sse"} {
			s.must(name, `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
			place[name] = float64(i + 1)
		}
		query := fmt.Sprintf(watched, id)
		streams := map[string]*stream{
			"graphql-transport-ws": s.socketAs(short("graphql-transport-ws"), "graphql-transport-ws", "subscribe", query),
			"graphql-ws":           s.socketAs(short("graphql-ws"), "graphql-ws", "start", query),
			"sse":                  s.eventStreamAs(short("sse"), query),
		}
		for name, stream := range streams {
			if e := stream.untilStatus("WAITING"); e.at("queuePosition.position") != place[name] {
				t.Errorf("%s: %v", name, e.Data)
			}
		}
		for name, stream := range streams {
			e := stream.until("its end", func(e event) bool { return e.end != "" })
			want := "close 4401"
			if name == "sse" {
				want = "the connection ended"
			}
			if !strings.Contains(e.end, want) {
				t.Errorf("%s ended with %+v", name, e)
			}
		}
		s.must("late", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
		for name, subscribe := range transports {
			stream := subscribe(s, name, query)
			if e := stream.untilStatus("WAITING"); e.at("queuePosition.position") != place[name] || e.at("queuePosition.total") != 4.0 {
				t.Errorf("%s, back with a new token: %v", name, e.Data)
			}
			stream.close()
		}
	})
}
