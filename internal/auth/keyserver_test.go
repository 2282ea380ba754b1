package auth

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"seatline/internal/testenv"
)

func TestKeysRotate(t *testing.T) {
	first, second := newSigner(t, "1", jwt.SigningMethodES256), newSigner(t, "2", jwt.SigningMethodES256)
	l := newLab(t, keysAlone())
	l.fetched(first.public)
	expect := func(what, token string, want error, questions int) {
		t.Helper()
		before := l.questions()
		if _, err := l.verifier.Verify(t.Context(), token); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if asked := l.questions() - before; asked != questions {
			t.Errorf("%s: %d questions, want %d", what, asked, questions)
		}
	}
	old := first.token(t, nil)
	expect("a known key", old, nil, 0)

	l.pass(time.Hour / 2)
	l.publish(first.public, second.public)
	expect("a new key", second.token(t, l.fresh(nil)), nil, 1)
	expect("it is known now", second.token(t, l.fresh(nil)), nil, 0)
	expect("and the old one still is", old, nil, 0)

	// The old key is taken back: known until the next question, then gone. Its
	// tokens, which are older than the keys, need no question to be refused.
	l.pass(10 * time.Minute)
	l.fetched(second.public)
	expect("a key that was taken back", old, ErrInvalidToken, 0)
	expect("the other one", second.token(t, l.fresh(nil)), nil, 0)
}

// TestUnknownKeysAreAskedForNowAndThen: whoever writes tokens with keys of
// their own invention cannot turn us on the key server, and a verdict of "no such
// key" is one of the server's, on a question that came after the token.
func TestUnknownKeysAreAskedForNowAndThen(t *testing.T) {
	known, stranger := newSigner(t, "known", jwt.SigningMethodES256), newSigner(t, "stranger", jwt.SigningMethodES256)
	l := newLab(t, keysAlone())
	l.fetched(known.public)
	l.pass(time.Minute)
	start := l.questions()
	if _, err := l.verifier.Verify(t.Context(), stranger.token(t, l.fresh(nil))); !errors.Is(err, ErrInvalidToken) {
		t.Errorf("the server says there is no such key: %v", err)
	}
	for i := range 100 {
		token := stranger.tokenWith(t, map[string]any{"kid": fmt.Sprint("guess", i)}, l.fresh(nil))
		want := ErrUnavailable // in doubt
		if 1+i < questions {
			want = ErrInvalidToken
		}
		if _, err := l.verifier.Verify(t.Context(), token); !errors.Is(err, want) {
			t.Fatalf("guess %d: %v, want %v", i, err, want)
		}
		if _, err := l.verifier.Verify(t.Context(), known.token(t, l.fresh(nil))); err != nil {
			t.Fatalf("a known key in between: %v", err)
		}
	}
	if n := l.questions() - start; n != questions {
		t.Errorf("%d questions", n)
	}
	l.pass(cooldown)
	if _, err := l.verifier.Verify(t.Context(), stranger.token(t, l.fresh(nil))); !errors.Is(err, ErrInvalidToken) {
		t.Errorf("after a while: %v", err)
	}
	if n := l.questions() - start; n != questions+1 {
		t.Errorf("%d questions", n)
	}
	// A key that was made within the time to wait is found after it.
	l.publish(known.public, stranger.public)
	token := stranger.token(t, l.fresh(nil))
	if _, err := l.verifier.Verify(t.Context(), token); !errors.Is(err, ErrUnavailable) {
		t.Errorf("too soon: %v", err)
	}
	l.pass(cooldown)
	if _, err := l.verifier.Verify(t.Context(), token); err != nil {
		t.Errorf("asked again: %v", err)
	}
}

// TestWhatIsRefusedAnywayCostsNoQuestion: and is called what it is.
func TestWhatIsRefusedAnywayCostsNoQuestion(t *testing.T) {
	known, stranger := newSigner(t, "known", jwt.SigningMethodES256), newSigner(t, "stranger", jwt.SigningMethodES256)
	l := newLab(t, keysAlone())
	l.fetched(known.public)
	l.pass(time.Minute)
	start := l.questions()
	for name, test := range map[string]struct {
		header map[string]any
		claims jwt.MapClaims
		want   error
	}{
		"expired":            {nil, jwt.MapClaims{"exp": l.now().Unix()}, ErrExpiredToken},
		"of another issuer":  {nil, jwt.MapClaims{"iss": "https://other.example"}, ErrInvalidToken},
		"for others":         {nil, jwt.MapClaims{"aud": "account"}, ErrInvalidToken},
		"not yet":            {nil, jwt.MapClaims{"nbf": l.now().Add(time.Minute).Unix()}, ErrInvalidToken},
		"issued long before": {nil, jwt.MapClaims{"iat": now.Add(-2 * time.Minute).Unix()}, ErrInvalidToken},
		"a key that is 7":    {map[string]any{"kid": 7}, nil, ErrInvalidToken},
		"a key that is null": {map[string]any{"kid": []string{"known"}}, nil, ErrInvalidToken},
		"a long key":         {map[string]any{"kid": strings.Repeat("k", 257)}, nil, ErrInvalidToken},
		"critical":           {map[string]any{"crit": []string{"exp"}}, nil, ErrInvalidToken},
		"a known key's name": {map[string]any{"kid": "known"}, nil, ErrInvalidToken},
	} {
		header := map[string]any{"kid": stranger.id}
		maps.Copy(header, test.header)
		if _, err := l.verifier.Verify(t.Context(), stranger.tokenWith(t, header, l.fresh(test.claims))); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := l.questions() - start; n != 0 {
		t.Errorf("%d questions", n)
	}
}

func TestKeyServerAway(t *testing.T) {
	known, made := newSigner(t, "known", jwt.SigningMethodES256), newSigner(t, "new", jwt.SigningMethodES256)
	l := newLab(t, keysAlone())
	l.answer(outage)
	if err := l.keys.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("away from the start: %v", err)
	}
	if _, err := l.verifier.Verify(t.Context(), known.token(t, nil)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without any keys: %v", err)
	}
	l.fetched(known.public)

	l.answer(outage)
	l.pass(10 * time.Hour)
	if _, err := l.verifier.Verify(t.Context(), known.token(t, l.fresh(nil))); err != nil {
		t.Errorf("a known key, hours into an outage: %v", err)
	}
	token := made.token(t, l.fresh(jwt.MapClaims{"exp": now.Add(50 * time.Hour).Unix()}))
	if _, err := l.verifier.Verify(t.Context(), token); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrInvalidToken) {
		t.Errorf("a key that may be new: %v", err)
	}
	l.pass(14*time.Hour + time.Second)
	if _, err := l.verifier.Verify(t.Context(), known.token(t, l.fresh(nil))); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after a day the key may have been taken back: %v", err)
	}

	// The same tokens are good once the server is back.
	l.publish(known.public, made.public)
	l.pass(cooldown)
	for _, token := range []string{token, known.token(t, l.fresh(nil))} {
		if _, err := l.verifier.Verify(t.Context(), token); err != nil {
			t.Errorf("back again: %v", err)
		}
	}
}

func TestBadAnswersLeaveTheKeys(t *testing.T) {
	known, other := newSigner(t, "known", jwt.SigningMethodES256), newSigner(t, "other", jwt.SigningMethodES256)
	l := newLab(t, keysAlone())
	patience := l.keys.client.Timeout
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":"%d","x":"%s"}`, i, b64(make([]byte, 32)))
	}
	for name, reply := range map[string]http.HandlerFunc{
		"500":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"204":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) },
		"a page":     text("<!doctype html><title>Sign in</title>"),
		"nothing":    text(""),
		"null":       text("null"),
		"an object":  text("{}"),
		"no keys":    text(`{"keys":[]}`),
		"a string":   text(`{"keys":"known"}`),
		"only others": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[{"kty":"oct","kid":"known","k":"c2VjcmV0"}]}`))
		},
		"101 keys": text(`{"keys":[` + strings.Join(many, ",") + `]}`),
		"large":    text(`{"keys":[],"more":"` + strings.Repeat("x", maxKeyFile) + `"}`),
		"large when unpacked": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			_, _ = z.Write([]byte(strings.Repeat(" ", 64<<20)))
		},
		"large headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 128<<10))
			w.WriteHeader(200)
		},
		"silence": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half of it": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[`))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"a connection cut": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			l.keys.client.Timeout = patience
			l.fetched(known.public)
			l.answer(reply)
			if name == "silence" || name == "half of it" {
				l.keys.client.Timeout = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := l.keys.Fetch(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("fetched: %v", err)
			}
			if _, err := l.verifier.Verify(t.Context(), known.token(t, nil)); err != nil {
				t.Errorf("a known key: %v", err)
			}
			l.pass(cooldown)
			if _, err := l.verifier.Verify(t.Context(), other.token(t, l.fresh(nil))); !errors.Is(err, ErrUnavailable) {
				t.Errorf("another: %v", err)
			}
		})
	}
}

// TestOneQuestionForAll: those who come while a question is on its way wait for
// its answer, as long as they like to, and whoever asked may leave.
func TestOneQuestionForAll(t *testing.T) {
	known, made := newSigner(t, "known", jwt.SigningMethodES256), newSigner(t, "new", jwt.SigningMethodES256)
	l := newLab(t, keysAlone())
	l.fetched(known.public)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	start := l.questions()
	l.pass(time.Minute)
	l.publish(known.public, made.public)
	l.mu.Lock()
	publish := l.reply
	l.mu.Unlock()
	asked, answer := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	l.answer(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		publish(w, r)
	})
	token := made.token(t, l.fresh(nil))
	var wg sync.WaitGroup
	first, hangUp := context.WithCancel(t.Context())
	wg.Go(func() {
		if _, err := l.verifier.Verify(first, token); err != nil {
			t.Errorf("who asked: %v", err)
		}
	})
	await(t, asked)
	hangUp()
	stranger := newSigner(t, "stranger", jwt.SigningMethodES256).token(t, l.fresh(nil))
	wg.Go(func() {
		if _, err := l.verifier.Verify(t.Context(), stranger); !errors.Is(err, ErrUnavailable) {
			t.Errorf("whose key the answer lacks, which was asked for before they came: %v", err)
		}
	})
	for range 20 {
		wg.Go(func() {
			if _, err := l.verifier.Verify(t.Context(), token); err != nil {
				t.Errorf("who waited: %v", err)
			}
		})
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.verifier.Verify(impatient, token); !errors.Is(err, ErrUnavailable) {
		t.Errorf("who does not wait: %v", err)
	}
	if _, err := l.verifier.Verify(t.Context(), known.token(t, l.fresh(nil))); err != nil {
		t.Errorf("who need not wait: %v", err)
	}
	release()
	wg.Wait()
	if n := l.questions() - start; n != 1 {
		t.Errorf("%d questions", n)
	}
}

// await waits for a signal, and not for ever.
func await(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not come")
	}
}

// TestRunKeepsKeysFresh with real time, since the server is real.
func TestRunKeepsKeysFresh(t *testing.T) {
	first, second := newSigner(t, "1", jwt.SigningMethodES256), newSigner(t, "2", jwt.SigningMethodES256)
	l := newLab(t, keysAlone())
	l.keys.options.Refresh = 20 * time.Millisecond
	l.fetched(first.public)
	goroutines := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.keys.Run(ctx) }()

	holds := func(what string, s signer, want error) {
		t.Helper()
		testenv.Eventually(t, 10*time.Second, func() bool {
			fit, _ := l.keys.known(&s.id, s.method.Alg(), time.Time{})
			return (len(fit.Keys) == 1) == (want == nil)
		}, what)
	}
	l.publish(second.public)
	holds("the new key", second, nil)
	holds("no old key", first, errNoSuchKey)
	l.answer(outage)
	before := l.questions()
	testenv.Eventually(t, 10*time.Second, func() bool { return l.questions() >= before+3 }, "more questions")
	holds("the key, in an outage", second, nil)
	l.publish(first.public)
	holds("the key of a server that is back", first, nil)

	// A question on its way ends with the run.
	asked := make(chan struct{}, 100)
	l.answer(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	await(t, asked)
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Second):
		t.Error("Run does not end")
	}
	goleak.VerifyNone(t, goroutines, goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}

func TestKeyServerOptions(t *testing.T) {
	for _, url := range []string{"", "x", "https://", "ftp://id.example/k", "http://id.example/k", "http://10.0.0.1/k", "http://127.0.0.1.id.example/k", "https://u:p@id.example/k", "https://id.example/k#1", "http://[::]/k"} {
		if _, err := NewKeyServer(KeyServerOptions{URL: url}); err == nil {
			t.Errorf("%q is fine", url)
		}
	}
	for _, url := range []string{"https://id.example/k?a=b", "http://127.0.0.1:1/k", "http://127.8.0.1/k", "http://[::1]/k", "http://localhost:8080/k"} {
		if _, err := NewKeyServer(KeyServerOptions{URL: url, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := NewKeyServer(KeyServerOptions{URL: "http://keycloak:8080/k", AllowHTTP: true}); err != nil {
		t.Error(err)
	}
	if _, err := NewVerifier(Options{}); err == nil {
		t.Error("a verifier with nothing to verify by")
	}
	k, err := NewKeyServer(KeyServerOptions{URL: "https://id.example/k"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewGuests(Options{Keys: k}); err == nil {
		t.Error("guests without a secret")
	}
}
