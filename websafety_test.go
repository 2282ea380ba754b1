package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// TestOneListOfOrigins: the same pages may open sockets and read replies (A18).
func TestOneListOfOrigins(t *testing.T) {
	s := start(t, env{"ALLOWED_ORIGINS": "https://app.example, http://localhost:3000"})
	s.awaitReady()
	for origin, allowed := range map[string]bool{
		"https://app.example": true, "https://APP.Example": true, "HTTPS://app.example": true, "https://app.example:443": true, "https://app.example/": true,
		"http://localhost:3000": true, s.url: true, strings.ToUpper(s.url): true, "": true,
		"http://evil.example": false, "https://evil.example": false, "null": false, "https://app.example.evil.example": false, "https://evil.example/https://app.example": false,
		"http://app.example": false, "https://app.example:8443": false, "https://app.example@evil.example": false, "https://evil.example#https://app.example": false,
		"https://sub.app.example": false, "http://localhost": false, "http://localhost:3001": false, "https://app.example?": false, "https://app.example?x": false,
		"file://": false, "*": false, "https://": false, "app.example": false, "https://app.example, https://evil.example": false,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		ws, res, err := (&websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}).DialContext(t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", header)
		if res == nil {
			t.Fatalf("%s: %v", origin, err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		switch {
		case allowed && err != nil, !allowed && (err == nil || res.StatusCode != http.StatusForbidden || !strings.Contains(string(body), `"FORBIDDEN"`)):
			t.Errorf("a socket from %q: %v %s", origin, err, body)
		case err == nil:
			ws.Close()
		}
		for _, method := range []string{http.MethodOptions, http.MethodPost} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/graphql", strings.NewReader(`{"query":"{__typename}"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = header.Clone()
			r.Header.Set("Content-Type", "application/json")
			_, h, _ := s.exchange(r)
			got, want := h.Get("Access-Control-Allow-Origin"), ""
			if allowed {
				want = origin
			}
			if got != want || h.Get("Access-Control-Allow-Credentials") != "" || !strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
				t.Errorf("%s from %q: %v", method, origin, h)
			}
		}
	}
}

// TestNothingIsDoneForWhoeverMerelyLinksHere: what a page elsewhere can send
// without asking first, changes nothing (B02, B03).
func TestNothingIsDoneForWhoeverMerelyLinksHere(t *testing.T) {
	s := start(t)
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	join := `mutation{joinQueue(lectureId:"` + id + `"){status}}`
	two := `query q{__typename} mutation m{joinQueue(lectureId:"` + id + `"){status}}`
	asJSON := fmt.Sprintf(`{"query":%q}`, join)
	form := url.Values{"query": {join}}.Encode()
	multipart := "--x\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n" + asJSON + "\r\n--x\r\nContent-Disposition: form-data; name=\"map\"\r\n\r\n{}\r\n--x--\r\n"
	sent := 0
	for _, one := range []struct {
		method, query, kind, body string
		status                    int
	}{
		{"GET", url.Values{"query": {join}}.Encode(), "", "", 405},
		{"GET", url.Values{"query": {join}}.Encode(), "application/json", asJSON, 405},
		{"GET", url.Values{"query": {two}, "operationName": {"m"}}.Encode(), "", "", 405},
		{"HEAD", url.Values{"query": {join}}.Encode(), "", "", 405},
		{"GET", url.Values{"query": {`subscription{queuePosition(lectureId:"` + id + `"){status}}`}}.Encode(), "", "", 400},
		{"POST", url.Values{"query": {join}}.Encode(), "", "", 415},
		{"POST", url.Values{"query": {join}}.Encode(), "text/plain", "", 415},
		{"POST", "", "text/plain", asJSON, 415},
		{"POST", "", "text/plain;charset=utf-8", asJSON, 415},
		{"POST", "", "text/plain; application/json", asJSON, 415},
		{"POST", "", "text/plain, application/json", asJSON, 415},
		{"POST", "", "application/json, text/plain", asJSON, 415},
		{"POST", "", "application/json; charset=utf-16", asJSON, 415},
		{"POST", "", "", asJSON, 415},
		{"POST", "", "application/x-www-form-urlencoded", form, 415},
		{"POST", "", "application/x-www-form-urlencoded", asJSON, 415},
		{"POST", "", "multipart/form-data; boundary=x", multipart, 415},
		{"POST", "", "application/graphql", join, 415},
		{"PUT", "", "application/json", asJSON, 405},
		{"DELETE", "", "application/json", asJSON, 405},
		{"PATCH", "", "application/json", asJSON, 405},
		{"OPTIONS", url.Values{"query": {join}}.Encode(), "application/json", asJSON, 204},
	} {
		for _, accept := range []string{"*/*", "text/event-stream"} {
			r, err := http.NewRequestWithContext(t.Context(), one.method, s.url+"/graphql?"+one.query, strings.NewReader(one.body))
			if err != nil {
				t.Fatal(err)
			}
			// As if a browser did add something that says who it is.
			r.Header.Set("Authorization", bearer(t, "kim"))
			r.Header.Set("Accept", accept)
			if one.kind != "" {
				r.Header.Set("Content-Type", one.kind)
			}
			status, h, body := s.exchange(r)
			sent++
			if status != one.status || strings.Contains(body, `"data"`) || one.status == 405 && h.Get("Allow") == "" {
				t.Errorf("%s %q %q, Accept %s: %d %s", one.method, one.kind, one.query, accept, status, body)
			}
		}
	}
	if a := s.must("kim", `{queuePosition(lectureId:"`+id+`"){status total} lecture(id:"`+id+`"){waiting}}`); a.at("queuePosition.status") != "NOT_QUEUED" || a.at("lecture.waiting") != 0.0 {
		t.Errorf("after %d requests: %v", sent, a.Data)
	}
}

// TestEveryReplySaysWhatBrowsersMayDoWithIt, whatever and wherever it is.
func TestEveryReplySaysWhatBrowsersMayDoWithIt(t *testing.T) {
	s := start(t, env{"READ_TIMEOUT": "1s"})
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	for _, one := range []struct {
		method, path, user, body string
		personal                 bool
	}{
		{"GET", "/", "", "", false},
		{"GET", "/playground", "", "", false},
		{"GET", "/sdk.js", "", "", false},
		{"GET", "/nothing", "", "", false},
		{"POST", "/", "", "x", false},
		{"GET", "/healthz", "", "", true},
		{"GET", "/readyz", "", "", true},
		{"POST", "/readyz", "", "", false},
		{"POST", "/graphql", "kim", `{"query":"{viewer{userKey}}"}`, true},
		{"POST", "/graphql", "kim", `{"query":"{"}`, true},
		{"POST", "/graphql", "kim", `{`, true},
		{"GET", "/graphql?query={viewer{userKey}}", "kim", "", true},
		{"GET", "/graphql", "", "", true},
		{"PUT", "/graphql", "", "", true},
		{"OPTIONS", "/graphql", "", "", false},
		{"GET", "/lectures/" + id + "/enrollments.csv", "operator", "", true},
		{"GET", "/lectures/" + id + "/enrollments.csv", "kim", "", true},
		{"GET", "/lectures/x/enrollments.csv", "operator", "", true},
		{"GET", "/lectures/1", "", "", false},
		{"POST", "/lectures/1/enrollments.csv", "operator", "", false},
		{"GET", "//graphql", "", "", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), one.method, s.url+one.path, strings.NewReader(one.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if one.user != "" {
			r.Header.Set("Authorization", bearer(t, one.user))
		}
		status, h, _ := s.exchange(r)
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
			!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("X-Request-Id") == "" || h.Get("Server") != "" || h.Get("Set-Cookie") != "" {
			t.Errorf("%s %s: %d %v", one.method, one.path, status, h)
		}
		if one.personal && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s may be kept: %d %v", one.method, one.path, status, h)
		}
	}
	e := once["sse"](s, bearer(t, "kim"), `{viewer{userKey}}`)
	if e.at("viewer.userKey") != "kim" {
		t.Errorf("events: %+v", e)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/graphql?query={__typename}", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer x.y.z")
	if status, h, body := s.exchange(r); status != 401 || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || strings.Contains(body, "x.y.z") {
		t.Errorf("a bad token: %d %v %s", status, h, body)
	}
}

// raw sends bytes and gives all that comes back until the connection is closed.
func (s *instance) raw(sent string) string {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, sent); err != nil {
		s.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := io.ReadAll(conn)
	if err != nil {
		s.t.Fatalf("after %.200q: %v, having read %.200q", sent, err, b)
	}
	return string(b)
}

// TestHeadersStayHeaders: nothing that is sent here becomes a header or a line of
// the log that we did not write.
func TestHeadersStayHeaders(t *testing.T) {
	s := start(t)
	s.awaitReady()
	for _, id := range []string{
		"a\rSet-Cookie: x=1", "a\nSet-Cookie: x=1", "a\r\n Set-Cookie: x=1", "a%0d%0aSet-Cookie: x=1", "a\x00b", "a\u2028Set-Cookie: x=1", "ä", "a b", strings.Repeat("x", 65),
		"a\" level=ERROR msg=\"forged", "\x1b[31mred", "<script>",
	} {
		got := s.raw("GET /graphql?query={__typename} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: " + id + "\r\nX-Forwarded-For: " + id + "\r\nOrigin: " + id + "\r\n\r\n")
		head, _, _ := strings.Cut(got, "\r\n\r\n")
		for line := range strings.SplitSeq(head, "\r\n") {
			name, value, _ := strings.Cut(line, ": ")
			if name == "Set-Cookie" || name == "X-Request-Id" && (value == id || strings.ContainsAny(value, "\r\n\x00\x1b \"<")) {
				t.Errorf("%q comes back: %q", id, got)
			}
		}
		if strings.Contains(got, "forged") || strings.Contains(got, "script") {
			t.Errorf("%q comes back: %q", id, got)
		}
	}
	if log := s.log.String(); strings.Contains(log, "Set-Cookie") || strings.Contains(log, "\x1b") || strings.Contains(log, "msg=\"forged") {
		t.Errorf("the log: %s", log)
	}
	if got := s.raw("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: trace-1/2+3=\r\n\r\n"); !strings.Contains(got, "X-Request-Id: trace-1/2+3=\r\n") {
		t.Errorf("a sane id is not kept: %q", got)
	}
}
