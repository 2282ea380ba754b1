package main

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"seatline/internal/testenv"
)

// once sends one operation over a transport and gives what came first.
var once = map[string]func(s *instance, authorization, query string) event{
	"http": func(s *instance, authorization, query string) event {
		return event{answer: s.askAs(authorization, query)}
	},
	"graphql-transport-ws": func(s *instance, authorization, query string) event {
		return s.socketAs(authorization, "graphql-transport-ws", "subscribe", query).first()
	},
	"graphql-ws": func(s *instance, authorization, query string) event {
		return s.socketAs(authorization, "graphql-ws", "start", query).first()
	},
	"sse": func(s *instance, authorization, query string) event {
		return s.eventStreamAs(authorization, query).first()
	},
}

func (out *stream) first() event {
	out.t.Helper()
	defer out.close()
	return out.until("an answer", func(event) bool { return true })
}

func (s *instance) askAs(authorization, query string) (a answer) {
	s.t.Helper()
	_, body, err := s.post(authorization, query)
	if err != nil {
		s.t.Fatal(err)
	}
	s.decode(body, &a)
	return a
}

// fields is an operation with so many root fields.
func fields(n int, field string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d:%s ", i, field)
	}
	return b.String()
}

// sparse lets a person ask for 60 fields at once, and for one a second then.
var sparse = env{"RATE_PER_PERSON": "1", "BURST_PER_PERSON": "60", "RATE_PER_ADDRESS": "1", "BURST_PER_ADDRESS": "60"}

// exhausted is the answer to an operation of somebody who has nothing left. The
// machine may be slow, and give them time to earn it: then it is tried again.
func (s *instance) exhausted(authorization string, ask func() event) event {
	s.t.Helper()
	for range 20 {
		// What is left, whatever that is.
		for _, n := range []int{60, 30, 15, 8, 4, 2, 1, 1} {
			s.askAs(authorization, `{`+fields(n, "viewer{userKey}")+`}`)
		}
		begun := time.Now()
		if e := ask(); e.code() == "RATE_LIMITED" || time.Since(begun) < 500*time.Millisecond {
			return e
		}
	}
	s.t.Fatal("this machine is too slow to be limited")
	return event{}
}

func checkLimited(t *testing.T, where string, e event) {
	t.Helper()
	if e.code() != "RATE_LIMITED" || len(e.Data) > 0 {
		t.Errorf("%s: %+v", where, e)
		return
	}
	if ms, _ := e.Errors[0].Extensions["retryAfterMs"].(float64); ms < 1 || ms > 60_000 {
		t.Errorf("%s: retryAfterMs %v", where, e.Errors[0].Extensions["retryAfterMs"])
	}
	if !strings.Contains(e.Errors[0].Message, "too many fields") {
		t.Errorf("%s does not say which limit: %s", where, e.Errors[0].Message)
	}
}

// TestAPersonMayAskSoOften: fields are counted, not requests (A21), on every
// transport and instance together, and before anything runs.
func TestAPersonMayAskSoOften(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			stores := backend(t)
			generous := start(t, stores)
			generous.awaitReady()
			id := generous.newLecture(`capacity:5`)
			s, instances := generous, []*instance{}
			if name == "embedded" {
				s = start(t, sparse)
				s.awaitReady()
				instances = append(instances, s)
				id = s.newLecture(`capacity:5`)
			} else {
				for range 2 {
					s = start(t, stores, sparse)
					s.awaitReady()
					instances = append(instances, s)
				}
			}
			operations := map[string]string{
				"query":        `{viewer{userKey}}`,
				"mutation":     `mutation{joinQueue(lectureId:"` + id + `"){status}}`,
				"subscription": `subscription{queuePosition(lectureId:"` + id + `"){status}}`,
			}
			for transport, send := range once {
				for kind, query := range operations {
					if transport == "http" && kind == "subscription" {
						continue
					}
					kim := bearer(t, "kim-"+transport+kind)
					if e := send(s, kim, `{`+fields(60, "viewer{userKey}")+`}`); len(e.Errors) > 0 {
						t.Errorf("%s: the burst: %+v", transport, e)
					}
					for _, s := range instances {
						checkLimited(t, transport+", "+kind, s.exhausted(kim, func() event { return send(s, kim, query) }))
					}
					// Nobody else is to blame for it.
					if e := send(s, bearer(t, "lee-"+transport+kind), query); len(e.Errors) > 0 || e.Data == nil {
						t.Errorf("%s, %s: somebody else: %+v", transport, kind, e)
					}
				}
				if e := send(s, bearer(t, "big-"+transport), `{`+fields(61, "viewer{userKey}")+`}`); e.code() != "COMPLEXITY_LIMIT_EXCEEDED" || !strings.Contains(e.Errors[0].Message, "61 root fields; at most 60") {
					t.Errorf("%s: more than can ever be had: %+v", transport, e)
				}
			}
			// Of those who were refused, nobody is in line.
			for transport := range once {
				for kind := range operations {
					user := "kim-" + transport + kind
					ask := s
					if name != "embedded" {
						ask = generous
					}
					testenv.Eventually(t, 20*time.Second, func() bool {
						a := ask.ask(user, `{queuePosition(lectureId:"`+id+`"){status}}`)
						if status := a.at("queuePosition.status"); a.code() == "" && status != "NOT_QUEUED" {
							t.Errorf("%s was refused and is %v", user, status)
						}
						return a.code() == ""
					}, "an answer, in time")
				}
			}
		})
	}
}

// TestARefusalForHowOftenIsOneOfHTTP has a status and a header that proxies and
// clients know.
func TestARefusalForHowOftenIsOneOfHTTP(t *testing.T) {
	s := start(t, sparse)
	s.awaitReady()
	for _, accept := range []string{"application/json", "application/graphql-response+json", ""} {
		kim := bearer(t, "kim "+accept)
		var status int
		var header http.Header
		var a answer
		s.exhausted(kim, func() event {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/graphql?query={viewer{userKey}}", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", kim)
			r.Header.Set("Accept", accept)
			var body string
			status, header, body = s.exchange(r)
			a = answer{}
			s.decode(body, &a)
			return event{answer: a}
		})
		seconds, err := strconv.Atoi(header.Get("Retry-After"))
		if status != http.StatusTooManyRequests || err != nil || seconds < 1 || a.code() != "RATE_LIMITED" || a.Data != nil {
			t.Errorf("Accept %q: %d, Retry-After %q, %+v", accept, status, header.Get("Retry-After"), a)
		}
	}
}

// TestAddressesAreThoseOfTrustedHops: who is not signed in is counted by address,
// and only our own proxies say what that is.
func TestAddressesAreThoseOfTrustedHops(t *testing.T) {
	untrusting := start(t, sparse)
	untrusting.awaitReady()
	trusting := start(t, sparse, env{"TRUSTED_PROXIES": "127.0.0.0/8, 10.0.0.0/8"})
	trusting.awaitReady()
	ask := func(s *instance, forwarded ...string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/graphql", strings.NewReader(`{"query":"{`+fields(60, "viewer{userKey}")+`}"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header["X-Forwarded-For"] = forwarded
		_, body, err := s.do(r)
		if err != nil {
			t.Fatal(err)
		}
		var a answer
		s.decode(body, &a)
		return a
	}
	spent := func(s *instance, forwarded ...string) {
		t.Helper()
		if a := ask(s, forwarded...); a.code() != "RATE_LIMITED" || !strings.Contains(a.Errors[0].Message, "address") {
			t.Errorf("%q: %+v", forwarded, a)
		}
	}
	fresh := func(s *instance, forwarded ...string) {
		t.Helper()
		if a := ask(s, forwarded...); a.code() != "" {
			t.Errorf("%q: %+v", forwarded, a)
		}
	}
	fresh(untrusting)
	spent(untrusting, "203.0.113.1")
	spent(untrusting, "203.0.113.2")
	if n := strings.Count(untrusting.log.String(), "TRUSTED_PROXIES"); n != 1 {
		t.Errorf("the log names the setting %d times:\n%s", n, untrusting.log)
	}

	fresh(trusting, "203.0.113.1")
	spent(trusting, "203.0.113.1")
	spent(trusting, "198.51.100.9, 203.0.113.1")           // made up by the client before it came to us
	spent(trusting, "198.51.100.9", "203.0.113.1")         // the same in two headers
	spent(trusting, "198.51.100.9, 203.0.113.1, 10.1.2.3") // by way of two of our proxies
	spent(trusting, "203.0.113.1:4711")
	spent(trusting, "::ffff:203.0.113.1")
	fresh(trusting, "203.0.113.2")
	fresh(trusting, "2001:db8:1:2::1")
	spent(trusting, "2001:db8:1:2:ffff::9") // the same customer
	spent(trusting, "[2001:db8:1:2::5]:443")
	fresh(trusting, "2001:db8:1:3::1")
	fresh(trusting, "10.1.2.3")                        // the proxy itself, having nobody behind it
	spent(trusting, "198.51.100.9, unknown, 10.1.2.3") // what cannot be read ends the way
	fresh(trusting)
	spent(trusting, "")
	spent(trusting, strings.Repeat(",", 1000))

	// Sockets know their address, too.
	e := once["graphql-transport-ws"](trusting, "", `{`+fields(60, "viewer{userKey}")+`}`)
	checkLimited(t, "a socket", e)
	// Whoever is signed in is not held to what others at the address did.
	if a := trusting.ask("kim", `{viewer{userKey}}`); a.code() != "" {
		t.Errorf("signed in: %+v", a)
	}
}

// TestWithoutRedisNobodyIsRefusedForHowOften, and nobody waits for it: what needs
// only the database goes on.
func TestWithoutRedisNobodyIsRefusedForHowOften(t *testing.T) {
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	line := testenv.NewProxy(t, addressIn(redisURL))
	settings := env{"DATABASE_URL": databaseURL, "REDIS_URL": through(t, redisURL, line)}
	maps.Copy(settings, sparse)
	s := start(t, settings)
	s.awaitReady()
	s.ask("kim", `{`+fields(60, "viewer{userKey}")+`}`)
	for name, spoil := range map[string]func(){"refused": line.Refuse, "stalled": line.Stall} {
		spoil()
		begun := time.Now()
		for range 30 {
			if a := s.ask("kim", `{receipts{totalCount}}`); a.code() != "" {
				t.Fatalf("%s: %+v", name, a)
			}
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("%s: thirty readings of the database take %v", name, took)
		}
		line.Heal()
	}
	testenv.Eventually(t, 20*time.Second, func() bool {
		return s.ask("kim", `{`+fields(60, "viewer{userKey}")+`}`).code() == "RATE_LIMITED"
	}, "the limit holds again")
}
