package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

const (
	maxKeyID   = 256       // bytes
	maxKeyFile = 512 << 10 // bytes; real ones have a hundredth of it

	// cooldown is the time that passes, on average, between two questions to a
	// key server that tokens give rise to, and always after one that failed:
	// anybody can write a token that names a new key. A few may follow each other,
	// so that one such token does not put the next in doubt.
	cooldown  = 5 * time.Second
	questions = 5

	// clockSkew is how far the clock of whoever signs may be from ours before a
	// token can be mistaken for one that is older than the keys known here.
	clockSkew = time.Minute

	maxBackOff = 30 * time.Second
)

// errNoSuchKey is returned by find: the key server has spoken, and does not know
// the key.
var errNoSuchKey = errors.New("its key is not the key server's")

// KeyServerOptions is where keys come from. A zero duration is its default.
type KeyServerOptions struct {
	URL       string        // of a JWK set
	AllowHTTP bool          // from other machines, too; whoever is on the way can put in keys
	Refresh   time.Duration // how often keys are asked for; 5 minutes
	MaxStale  time.Duration // how long keys are good for when the server does not answer; 24 hours
	Timeout   time.Duration // for an answer; 5 seconds
	Now       func() time.Time
	Log       *slog.Logger
}

// KeyServer knows the public keys that an identity provider publishes as a JWK
// set. They are kept in memory and asked for again every Refresh, and when a
// token names one that is not known. Safe for concurrent use.
//
// The server may be away. Tokens whose key is known go on being judged, for
// MaxStale. One whose key is not known is in doubt: it may be forged, or signed
// with a key made a second ago. Its bearer is told ErrUnavailable, to come back,
// and not that the token is bad, after which clients throw it away and sockets
// stay closed. Only an answer of the server that was asked for after the token
// was there, or that is clearly younger than the token says it is, makes a key
// unknown for good.
type KeyServer struct {
	options KeyServerOptions
	client  *http.Client

	mu      sync.Mutex
	keys    keySet
	fetched time.Time // when the question was sent that keys answer
	failed  time.Time // when the last question ended, if it did without an answer
	flight  *flight   // the question that is being asked

	allowance *rate.Limiter // of questions that tokens give rise to
}

// flight is a question to the key server that several may wait for.
type flight struct {
	done chan struct{}
	err  error // once done is closed
}

// NewKeyServer returns a KeyServer that knows no keys yet, or an error when the
// URL is not one to trust.
func NewKeyServer(o KeyServerOptions) (*KeyServer, error) {
	if err := CheckKeyServerURL(o.URL, o.AllowHTTP); err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	o.Refresh = cmp.Or(o.Refresh, 5*time.Minute)
	o.MaxStale = cmp.Or(o.MaxStale, 24*time.Hour)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // one question in minutes
	transport.MaxResponseHeaderBytes = 64 << 10
	return &KeyServer{options: o, allowance: rate.NewLimiter(rate.Every(cooldown), questions), client: &http.Client{
		Transport: transport,
		Timeout:   o.Timeout,
		// Where keys come from is decided by whoever sets the URL.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// CheckKeyServerURL returns an error unless keys from the URL are those that its
// owner sent: by https, or by http from this machine, or by http where that is
// allowed.
func CheckKeyServerURL(text string, allowHTTP bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("it is not a URL of the form https://host/path, without a user")
	}
	if u.Scheme == "https" || allowHTTP || u.Hostname() == "localhost" {
		return nil
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("keys that arrive by plain http may be anybody's: use https")
}

// Fetch asks for the keys now, or waits for the answer to who is asking already.
func (k *KeyServer) Fetch(ctx context.Context) error {
	_, err := k.ask(ctx, ctx, func(time.Time) bool { return true })
	return err
}

// Run asks for the keys every Refresh, and sooner after a failure, until ctx
// ends.
func (k *KeyServer) Run(ctx context.Context) error {
	pause := k.options.Refresh
	for {
		// Instances that were started together need not ask together.
		timer := time.NewTimer(pause - time.Duration(rand.Int64N(int64(pause)/10+1)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		switch err := k.Fetch(ctx); {
		case err == nil:
			pause = k.options.Refresh
		case ctx.Err() != nil:
		case pause == k.options.Refresh:
			k.complain(err)
			pause = min(time.Second, k.options.Refresh)
		default:
			k.complain(err)
			pause = min(2*pause, maxBackOff, k.options.Refresh)
		}
	}
}

// find returns the keys that may have signed a token, which names its key by id
// or, when that is nil, does not, and was issued then. It is errNoSuchKey when
// there are none, and ErrUnavailable when that cannot be told now.
func (k *KeyServer) find(ctx context.Context, id *string, method string, issued time.Time) (jwt.VerificationKeySet, error) {
	if fit, err := k.known(id, method, issued); !errors.Is(err, ErrUnavailable) {
		return fit, err
	}
	// Whoever sent the token may hang up, which must not stop a question whose
	// answer others wait for.
	own, err := k.ask(ctx, context.WithoutCancel(ctx), k.mayAsk)
	if err != nil {
		if own {
			k.complain(err)
		}
		return jwt.VerificationKeySet{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	fit, err := k.known(id, method, issued)
	if own && errors.Is(err, ErrUnavailable) {
		return fit, errNoSuchKey
	}
	return fit, err
}

// known is find from what is known already.
func (k *KeyServer) known(id *string, method string, issued time.Time) (jwt.VerificationKeySet, error) {
	k.mu.Lock()
	keys, fetched := k.keys, k.fetched
	k.mu.Unlock()
	if keys == nil || k.options.Now().Sub(fetched) > k.options.MaxStale {
		return jwt.VerificationKeySet{}, fmt.Errorf("%w: the keys are too old", ErrUnavailable)
	}
	fit, known := keys.fitting(id, method)
	switch {
	case len(fit.Keys) > 0:
		return fit, nil
	case known || !issued.IsZero() && fetched.Sub(issued) > clockSkew:
		return fit, errNoSuchKey
	}
	return fit, fmt.Errorf("%w: the key is not known here", ErrUnavailable)
}

// mayAsk tells whether a token may give rise to a question now.
func (k *KeyServer) mayAsk(now time.Time) bool {
	return now.Sub(k.failed) >= cooldown && k.allowance.AllowN(now, 1)
}

// errAskedLately is returned by ask where it may not.
var errAskedLately = errors.New("the key server has been asked a moment ago")

// ask sends a question that lasts as long as asking does, if it may now. Where one
// is on its way already, its answer is waited for, as long as ctx allows. own tells
// that the question was sent after the call.
func (k *KeyServer) ask(ctx, asking context.Context, may func(now time.Time) bool) (own bool, err error) {
	k.mu.Lock()
	if f := k.flight; f != nil {
		k.mu.Unlock()
		select {
		case <-f.done:
			return false, f.err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	sent := k.options.Now()
	if !may(sent) {
		k.mu.Unlock()
		return false, errAskedLately
	}
	f := &flight{done: make(chan struct{}), err: errors.New("the question was given up")}
	k.flight = f
	k.mu.Unlock()

	var keys keySet
	defer func() {
		k.mu.Lock()
		k.flight = nil
		if keys != nil {
			k.keys, k.fetched, k.failed = keys, sent, time.Time{}
		} else {
			k.failed = k.options.Now()
		}
		k.mu.Unlock()
		close(f.done)
	}()
	keys, f.err = k.fetch(asking)
	return true, f.err
}

func (k *KeyServer) complain(err error) {
	k.mu.Lock()
	fetched := k.fetched
	k.mu.Unlock()
	k.options.Log.Warn("the key server gives no keys; those that are known stay good for a while", "error", err, "since", fetched, "for", k.options.MaxStale)
}

// fetch asks the key server once.
func (k *KeyServer) fetch(ctx context.Context) (keySet, error) {
	document, err := k.download(ctx)
	if err != nil {
		return nil, fmt.Errorf("the key server: %w", err)
	}
	keys, err := parseKeys(document)
	if err != nil {
		return nil, fmt.Errorf("the key server's answer: %w", err)
	}
	k.mu.Lock()
	before := k.keys
	k.mu.Unlock()
	if !keys.sameIDs(before) {
		k.options.Log.Info("the key server's keys", "count", len(keys))
	}
	return keys, nil
}

func (k *KeyServer) download(ctx context.Context) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.options.URL, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	reply, err := k.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %d", reply.StatusCode)
	}
	document, err := io.ReadAll(io.LimitReader(reply.Body, maxKeyFile+1))
	if err != nil {
		return nil, err
	}
	if len(document) > maxKeyFile {
		return nil, fmt.Errorf("its answer has more than %d bytes", maxKeyFile)
	}
	return document, nil
}
