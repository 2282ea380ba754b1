package graph_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seatline/graph"
	"seatline/internal/auth"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// newServer serves a handler that has no stores behind it: enough for whatever
// must be decided before they are asked.
func newServer(t *testing.T, change ...func(*graph.Options)) (*httptest.Server, *bytes.Buffer) {
	t.Helper()
	verifier, err := auth.NewVerifier(auth.Options{Secret: secret, OperatorClaim: auth.Claim{Name: "role", Value: "operator"}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := graph.Options{
		Resolver: graph.NewResolver(nil, nil, nil),
		Verifier: verifier,
		Origins:  []string{"https://App.example:443/"},
		Limits: graph.Limits{
			BodyBytes: 64 << 10, ParserTokens: 1000, Depth: 12, Complexity: 5000, MutationFields: 5,
			BodyTime: 10 * time.Second, RequestTime: 10 * time.Second, WriteTime: 10 * time.Second, KeepAlive: 25 * time.Second,
		},
		Introspection: true,
		Log:           slog.New(slog.NewTextHandler(&log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	s := httptest.NewServer(graph.WithRequestIDs(graph.NewHandler(o)))
	t.Cleanup(s.Close)
	return s, &log
}

func token(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	if claims["exp"] == nil {
		claims["exp"] = time.Now().Add(time.Hour).Unix()
	}
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type answer struct {
	status int
	header http.Header
	body   string
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Extensions map[string]any
	}
}

func (a answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	code, _ := a.Errors[0].Extensions["code"].(string)
	return code
}

func do(t *testing.T, r *http.Request) answer {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, body: string(b)}
	if r.Method != http.MethodHead && strings.Contains(res.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(b, &a); err != nil {
			t.Fatalf("not JSON: %s", b)
		}
	}
	return a
}

func request(t *testing.T, method, url, body string, header ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// post sends a query with Content-Type application/json and further headers.
func post(t *testing.T, s *httptest.Server, query string, header ...string) answer {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	return do(t, request(t, "POST", s.URL+"/graphql", string(body), append([]string{"Content-Type", "application/json"}, header...)...))
}

const (
	plain    = "application/json"
	response = "application/graphql-response+json"
)

func TestEventsForWhoLikesThemBest(t *testing.T) {
	s, _ := newServer(t)
	for _, accept := range []string{
		"text/event-stream", "Text/Event-Stream; charset=utf-8", "text/event-stream, multipart/mixed", "text/event-stream, */*",
		"text/event-stream, application/json", "application/json;q=0.5, text/event-stream;q=0.9",
	} {
		r := request(t, "POST", s.URL+"/graphql", `{"query":"{__typename}"}`, "Content-Type", plain, "Accept", accept)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if kind := res.Header.Get("Content-Type"); err != nil || kind != "text/event-stream" || !strings.Contains(string(b), `data: {"data":{"__typename":"Query"}}`) {
			t.Errorf("Accept %q: %s %q, %v", accept, kind, b, err)
		}
	}
}

func TestMediaTypeAndStatusFollowTheAcceptHeader(t *testing.T) {
	s, _ := newServer(t)
	for _, tc := range []struct {
		accept, query string
		status        int
		kind          string
		data          bool
	}{
		{"", `{__typename}`, 200, plain, true},
		{"*/*", `{__typename}`, 200, plain, true},
		{"text/html", `{__typename}`, 200, plain, true},
		{plain, `{__typename}`, 200, plain, true},
		{response, `{__typename}`, 200, response, true},
		{"application/json;q=0.5, application/graphql-response+json;q=0.9", `{__typename}`, 200, response, true},
		{"application/graphql-response+json;q=0.2, application/json", `{__typename}`, 200, plain, true},
		{"application/graphql-response+json, application/json;q=0.9", `{__typename}`, 200, response, true},
		{"*/*, application/graphql-response+json", `{__typename}`, 200, response, true},
		{"application/graphql-response+json;q=0", `{__typename}`, 200, plain, true},
		// What can read a stream of events, and would rather not, gets none.
		{"application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed", `{__typename}`, 200, response, true},
		{"*/*, text/event-stream;q=0.5", `{__typename}`, 200, plain, true},
		{plain, `{`, 200, plain, false},
		{plain, `{nope}`, 200, plain, false},
		{response, `{`, 400, response, false},
		{response, `{nope}`, 400, response, false},
		{response, `query($a: ID!){lecture(id: $a){id}}`, 400, response, false},
		{plain, `query($a: ID!){lecture(id: $a){id}}`, 200, plain, false},
		// A field that fails is not a request that failed.
		{response, `{receipts{totalCount}}`, 200, response, true},
	} {
		a := post(t, s, tc.query, "Accept", tc.accept)
		_, hasData := object(t, a.body)["data"]
		if a.status != tc.status || a.header.Get("Content-Type") != tc.kind+"; charset=utf-8" || hasData != tc.data {
			t.Errorf("Accept %q, %s: %d %s %s", tc.accept, tc.query, a.status, a.header.Get("Content-Type"), a.body)
		}
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("Accept %q, %s: may be cached", tc.accept, tc.query)
		}
	}
}

func object(t *testing.T, body string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatalf("not a JSON object: %s", body)
	}
	return o
}

func TestWhatIsNoGraphQLRequestIsRefused(t *testing.T) {
	s, _ := newServer(t)
	mutation := `{"query":"mutation{startSession(name:\"x\"){token}}"}`
	for name, tc := range map[string]struct {
		method, kind, body string
		status             int
	}{
		"text/plain":        {"POST", "text/plain", mutation, 415},
		"form":              {"POST", "application/x-www-form-urlencoded", mutation, 415},
		"multipart":         {"POST", "multipart/form-data; boundary=x", mutation, 415},
		"no type":           {"POST", "", mutation, 415},
		"xml":               {"POST", "application/xml", mutation, 415},
		"latin-1":           {"POST", "application/json; charset=iso-8859-1", mutation, 415},
		"PUT":               {"PUT", plain, mutation, 405},
		"DELETE":            {"DELETE", plain, mutation, 405},
		"PATCH":             {"PATCH", plain, mutation, 405},
		"HEAD":              {"HEAD", "", "", 405},
		"not JSON":          {"POST", plain, `{"query":`, 400},
		"an array":          {"POST", plain, `[]`, 400},
		"two values":        {"POST", plain, `{"query":"{__typename}"} {}`, 400},
		"no query":          {"POST", plain, `{}`, 400},
		"query a number":    {"POST", plain, `{"query":1}`, 400},
		"name a number":     {"POST", plain, `{"query":"{__typename}","operationName":1}`, 400},
		"variables a text":  {"POST", plain, `{"query":"{__typename}","variables":"{}"}`, 400},
		"variables a list":  {"POST", plain, `{"query":"{__typename}","variables":[]}`, 400},
		"variables 0":       {"POST", plain, `{"query":"{__typename}","variables":0}`, 400},
		"extensions a text": {"POST", plain, `{"query":"{__typename}","extensions":""}`, 400},
		"too large":         {"POST", plain, `{"query":"{__typename}` + strings.Repeat(" ", 70<<10) + `"}`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			a := do(t, request(t, tc.method, s.URL+"/graphql", tc.body, "Content-Type", tc.kind))
			if a.status != tc.status {
				t.Fatalf("status %d, want %d: %s", a.status, tc.status, a.body)
			}
			if tc.method != "HEAD" && (a.Errors == nil || a.Data != nil || a.code() != "BAD_USER_INPUT") {
				t.Errorf("body %s", a.body)
			}
			if tc.status == 405 && a.header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if strings.Contains(a.body, "startSession") {
				t.Errorf("the body is echoed: %s", a.body)
			}
		})
	}
	for _, ok := range []string{
		`{"query":"{__typename}","variables":null,"operationName":null,"extensions":null}`,
		`{"query":"{__typename}","variables":{},"operationName":""}`,
	} {
		if a := do(t, request(t, "POST", s.URL+"/graphql", ok, "Content-Type", "application/json; charset=UTF-8")); a.status != 200 || a.Errors != nil {
			t.Errorf("%s: %d %s", ok, a.status, a.body)
		}
	}
}

func TestGetOnlyReads(t *testing.T) {
	s, _ := newServer(t)
	get := func(method string, values url.Values) answer {
		return do(t, request(t, method, s.URL+"/graphql?"+values.Encode(), ""))
	}
	if a := get("GET", url.Values{"query": {"query($x: Boolean!){__typename @include(if: $x)}"}, "variables": {`{"x":true}`}}); a.status != 200 || string(a.Data) != `{"__typename":"Query"}` {
		t.Errorf("query: %d %s", a.status, a.body)
	}
	two := "query q{__typename} mutation m{startSession(name:\"x\"){token}}"
	for name, tc := range map[string]struct {
		method string
		values url.Values
		status int
	}{
		"mutation":            {"GET", url.Values{"query": {"mutation{startSession(name:\"x\"){token}}"}}, 405},
		"mutation by name":    {"GET", url.Values{"query": {two}, "operationName": {"m"}}, 405},
		"mutation by HEAD":    {"HEAD", url.Values{"query": {two}, "operationName": {"m"}}, 405},
		"subscription":        {"GET", url.Values{"query": {"subscription{queuePosition(lectureId:1){status}}"}}, 400},
		"broken variables":    {"GET", url.Values{"query": {"{__typename}"}, "variables": {"{"}}, 400},
		"list of variables":   {"GET", url.Values{"query": {"{__typename}"}, "variables": {"[]"}}, 400},
		"no query":            {"GET", url.Values{}, 400},
		"subscription by PUT": {"PUT", url.Values{"query": {"{__typename}"}}, 405},
	} {
		if a := get(tc.method, tc.values); a.status != tc.status || string(a.Data) != "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := post(t, s, "subscription{queuePosition(lectureId:1){status}}"); a.status != 400 || a.code() != "BAD_USER_INPUT" || !strings.Contains(a.body, "text/event-stream") {
		t.Errorf("subscription by plain POST: %d %s", a.status, a.body)
	}
}

func TestOperationNames(t *testing.T) {
	s, _ := newServer(t)
	for _, tc := range []struct {
		body string
		ok   bool
		says string
	}{
		{`{"query":"query a{__typename}","operationName":""}`, true, ""},
		{`{"query":"query a{__typename}","operationName":null}`, true, ""},
		{`{"query":"query a{__typename} query b{__typename}","operationName":"b"}`, true, ""},
		{`{"query":"query a{__typename} query b{__typename}"}`, false, "operationName is needed"},
		{`{"query":"query a{__typename}","operationName":"Nope"}`, false, "Nope not found"},
	} {
		a := do(t, request(t, "POST", s.URL+"/graphql", tc.body, "Content-Type", plain, "Accept", response))
		if ok := a.status == 200; ok != tc.ok || !strings.Contains(a.body, tc.says) {
			t.Errorf("%s: %d %s", tc.body, a.status, a.body)
		}
	}
}

func TestATokenThatIsNotAcceptableStopsTheRequest(t *testing.T) {
	s, _ := newServer(t)
	good := token(t, jwt.MapClaims{"sub": "kim", "name": "김하늘", "role": "operator"})
	if a := post(t, s, `{viewer{userKey name operator}}`, "Authorization", "Bearer "+good); string(a.Data) != `{"viewer":{"userKey":"kim","name":"김하늘","operator":true}}` {
		t.Errorf("good: %s", a.body)
	}
	if a := post(t, s, `{viewer{userKey}}`); string(a.Data) != `{"viewer":null}` {
		t.Errorf("none: %s", a.body)
	}
	expired := token(t, jwt.MapClaims{"sub": "kim", "exp": time.Now().Add(-time.Hour).Unix()})
	for name, sent := range map[string]string{
		"forged":  "Bearer " + good[:len(good)-4] + "AAAA",
		"expired": "Bearer " + expired,
		"basic":   "Basic a2ltOmtpbQ==",
		"no sub":  "Bearer " + token(t, jwt.MapClaims{}),
	} {
		a := post(t, s, `{viewer{userKey}}`, "Authorization", sent)
		if a.status != 401 || a.code() != "UNAUTHENTICATED" || a.Data != nil || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if strings.Contains(a.body, sent[7:]) {
			t.Errorf("%s: the token is echoed", name)
		}
	}
}

func TestSignInAndRightsComeBeforeAnythingElse(t *testing.T) {
	s, _ := newServer(t)
	kim := token(t, jwt.MapClaims{"sub": "kim"})
	for _, query := range []string{
		`{queuePosition(lectureId:1){status}}`, `{receipt(lectureId:1){id}}`, `{receipts{totalCount}}`,
		`mutation{joinQueue(lectureId:1){status}}`, `mutation{leaveQueue(lectureId:1){status}}`,
		`mutation{enroll(lectureId:1){status}}`, `mutation{cancelEnrollment(lectureId:1){id}}`,
	} {
		if a := post(t, s, query); a.status != 200 || a.code() != "UNAUTHENTICATED" {
			t.Errorf("signed out, %s: %d %s", query, a.status, a.body)
		}
	}
	for _, query := range []string{
		`{enrollments(lectureId:1){totalCount}}`,
		`mutation{createLecture(input:{title:"x",capacity:1}){id}}`,
		`mutation{updateLecture(id:1,input:{capacity:1}){id}}`,
		`mutation{removeEnrollment(lectureId:1,userKey:"x"){id}}`,
	} {
		if a := post(t, s, query); a.code() != "UNAUTHENTICATED" {
			t.Errorf("signed out, %s: %s", query, a.body)
		}
		if a := post(t, s, query, "Authorization", "Bearer "+kim); a.code() != "FORBIDDEN" {
			t.Errorf("no operator, %s: %s", query, a.body)
		}
	}
	if a := post(t, s, `mutation{startSession(name:"kim"){token}}`); a.code() != "NOT_ENABLED" {
		t.Errorf("guests: %s", a.body)
	}
	for path, want := range map[string]int{"/lectures/1/enrollments.csv": 401, "/lectures/x/enrollments.csv": 401} {
		if a := do(t, request(t, "GET", s.URL+path, "")); a.status != want || a.code() != "UNAUTHENTICATED" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		if a := do(t, request(t, "GET", s.URL+path, "", "Authorization", "Bearer "+kim)); a.status != 403 || a.code() != "FORBIDDEN" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestIDsThatAreNotOursNeverReachAStore(t *testing.T) {
	s, _ := newServer(t) // which would panic in its stores
	operator := "Bearer " + token(t, jwt.MapClaims{"sub": "op", "role": "operator"})
	for _, id := range []string{`""`, `"0"`, `"-1"`, `"01"`, `" 1"`, `"1{x}"`, `"x"`, `"99999999999999999999"`, `0`, `-7`} {
		if a := post(t, s, `{lecture(id:`+id+`){id}}`); string(a.Data) != `{"lecture":null}` || a.Errors != nil {
			t.Errorf("lecture(%s): %s", id, a.body)
		}
		for _, query := range []string{
			`{queuePosition(lectureId:` + id + `){status}}`,
			`{receipt(lectureId:` + id + `){id}}`,
			`{enrollments(lectureId:` + id + `){totalCount}}`,
			`mutation{joinQueue(lectureId:` + id + `){status}}`,
			`mutation{enroll(lectureId:` + id + `){status}}`,
			`mutation{updateLecture(id:` + id + `,input:{}){id}}`,
			`mutation{removeEnrollment(lectureId:` + id + `,userKey:"x"){id}}`,
		} {
			if a := post(t, s, query, "Authorization", operator); a.code() != "NOT_FOUND" {
				t.Errorf("%s: %s", query, a.body)
			}
		}
	}
	if a := do(t, request(t, "GET", s.URL+"/lectures/01/enrollments.csv", "", "Authorization", operator)); a.status != 404 || a.code() != "NOT_FOUND" {
		t.Errorf("roster: %d %s", a.status, a.body)
	}
}

func TestArgumentsThatCannotBeMeantAreBadInput(t *testing.T) {
	s, _ := newServer(t)
	operator := "Bearer " + token(t, jwt.MapClaims{"sub": "op", "role": "operator"})
	for _, query := range []string{
		`{lectures(first:2147483648){totalCount}}`,
		`{lectures(first:4294967297){totalCount}}`,
		`{lectures(first:-2147483649){totalCount}}`,
		`{lectures(search:"a\u0000b"){totalCount}}`,
		`mutation{createLecture(input:{title:"x",capacity:2147483648}){id}}`,
		`mutation{createLecture(input:{title:"x",capacity:1,opensAt:"tomorrow"}){id}}`,
		`mutation{createLecture(input:{title:"x",capacity:1,opensAt:"2026-03-02T01:00:00"}){id}}`,
		`mutation{createLecture(input:{title:"x",capacity:1,opensAt:""}){id}}`,
		`mutation{updateLecture(id:1,input:{settings:null}){id}}`,
		`mutation{removeEnrollment(lectureId:1,userKey:""){id}}`,
		`mutation{removeEnrollment(lectureId:1,userKey:"a\nb"){id}}`,
	} {
		if a := post(t, s, query, "Authorization", operator); a.code() != "BAD_USER_INPUT" {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	withVariable := func(value string) answer {
		body := `{"query":"query($n: Int){lectures(first: $n){totalCount}}","variables":{"n":` + value + `}}`
		return do(t, request(t, "POST", s.URL+"/graphql", body, "Content-Type", plain))
	}
	for value, code := range map[string]string{
		"2147483648": "BAD_USER_INPUT", "4294967297": "BAD_USER_INPUT", `"5"`: "BAD_USER_INPUT",
		"1.5": "GRAPHQL_VALIDATION_FAILED", "true": "GRAPHQL_VALIDATION_FAILED", "99999999999999999999": "GRAPHQL_VALIDATION_FAILED",
	} {
		if a := withVariable(value); a.code() != code {
			t.Errorf("first = %s: %s", value, a.body)
		}
	}
}

func TestPersistedQueries(t *testing.T) {
	s, _ := newServer(t)
	const hash = "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38" // sha256 of {__typename}
	send := func(body string) answer {
		return do(t, request(t, "POST", s.URL+"/graphql", body, "Content-Type", plain))
	}
	asked := `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}}`
	if a := send(asked); a.code() != "PERSISTED_QUERY_NOT_FOUND" {
		t.Fatalf("unknown: %s", a.body)
	}
	if a := send(`{"query":"{__typename }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}}`); a.code() != "BAD_USER_INPUT" {
		t.Errorf("wrong hash: %s", a.body)
	}
	if a := send(`{"query":"{__typename}","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}}`); a.Errors != nil {
		t.Fatalf("registering: %s", a.body)
	}
	if a := send(asked); string(a.Data) != `{"__typename":"Query"}` {
		t.Errorf("known: %s", a.body)
	}
}

func TestOriginsDecideWhoMayCrossSites(t *testing.T) {
	s, _ := newServer(t)
	preflight := func(origin string) http.Header {
		return do(t, request(t, "OPTIONS", s.URL+"/graphql", "", "Origin", origin, "Access-Control-Request-Method", "POST")).header
	}
	for origin, want := range map[string]bool{
		"https://app.example": true, "HTTPS://APP.example": true, s.URL: true,
		"https://evil.example": false, "http://app.example": false, "https://app.example:8443": false, "null": false,
	} {
		if got := preflight(origin).Get("Access-Control-Allow-Origin"); (got == origin) != want || got == "*" {
			t.Errorf("%s: allowed %q", origin, got)
		}
	}
	if h := post(t, s, `{__typename}`, "Origin", "https://app.example").header; h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("headers %v", h)
	}
}

func TestWhatBreaksInsideStaysInside(t *testing.T) {
	s, log := newServer(t) // without stores: asking one is a nil pointer
	kim := "Bearer " + token(t, jwt.MapClaims{"sub": "kim"})
	a := post(t, s, `{receipt(lectureId:1){id}}`, "Authorization", kim, "X-Request-Id", "req-1")
	if a.status != 200 || a.code() != "INTERNAL" || a.Errors[0].Extensions["requestId"] != "req-1" || a.header.Get("X-Request-Id") != "req-1" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, word := range []string{"nil", "pointer", "runtime", "goroutine", ".go"} {
		if strings.Contains(a.body, word) {
			t.Errorf("%q reached the client: %s", word, a.body)
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "stack=") || !strings.Contains(log.String(), "req-1") {
		t.Errorf("the stack is logged %d times: %s", n, log)
	}
	if a := post(t, s, `{__typename}`, "X-Request-Id", "a b\tc"); strings.ContainsAny(a.header.Get("X-Request-Id"), " \t") || a.header.Get("X-Request-Id") == "" {
		t.Errorf("request id %q", a.header.Get("X-Request-Id"))
	}
}
