package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// sendJSON posts a body as it is.
func (s *instance) sendJSON(user, body string, headers ...string) (status int, reply string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/graphql", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", bearer(s.t, user))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	status, reply, err = s.do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return status, reply
}

// TestNothingRunsBeforeAllIsRead: an argument that its type does not hold refuses
// the whole operation, also where the mutations before it could have run (B06).
func TestNothingRunsBeforeAllIsRead(t *testing.T) {
	s := start(t)
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	join := `joinQueue(lectureId:\"` + id + `\"){status} `
	for name, body := range map[string]string{
		"text for an Int":      `{"query":"mutation($c:Int!){` + join + `createLecture(input:{title:\"x\",capacity:$c}){id}}","variables":{"c":"5"}}`,
		"a large Int":          `{"query":"mutation($c:Int!){` + join + `createLecture(input:{title:\"x\",capacity:$c}){id}}","variables":{"c":2147483648}}`,
		"a large literal":      `{"query":"mutation{` + join + `createLecture(input:{title:\"x\",capacity:4294967297}){id}}"}`,
		"no time":              `{"query":"mutation{` + join + `createLecture(input:{title:\"x\",capacity:1,opensAt:\"zz\"}){id}}"}`,
		"a NUL in an input":    `{"query":"mutation($i:CreateLectureInput!){` + join + `createLecture(input:$i){id}}","variables":{"i":{"title":"a\u0000b","capacity":1}}}`,
		"deep in an input":     `{"query":"mutation($i:CreateLectureInput!){` + join + `createLecture(input:$i){id}}","variables":{"i":{"title":"a","capacity":1,"settings":{"burst":"9"}}}}`,
		"within a fragment":    `{"query":"mutation{` + join + `...f} fragment f on Mutation{createLecture(input:{title:\"x\",capacity:4294967297}){id}}"}`,
		"a Float that is text": `{"query":"mutation($r:Float!){` + join + `createLecture(input:{title:\"x\",capacity:1,settings:{admitPerSecond:$r}}){id}}","variables":{"r":"1"}}`,
	} {
		status, reply := s.sendJSON("operator", body, "Accept", "application/graphql-response+json")
		if status != 400 || strings.Contains(reply, `"data"`) || !strings.Contains(reply, "BAD_USER_INPUT") || !strings.Contains(reply, "createLecture") {
			t.Errorf("%s: %d %s", name, status, reply)
		}
	}
	if a := s.must("operator", `{queuePosition(lectureId:"`+id+`"){status}}`); a.at("queuePosition.status") != "NOT_QUEUED" {
		t.Errorf("one of them joined: %v", a.Data)
	}
	// What is left out is not read.
	if status, reply := s.sendJSON("operator", `{"query":"mutation($no:Boolean!,$c:Int!){`+join+`createLecture(input:{title:\"x\",capacity:$c})@skip(if:$no){id}}","variables":{"no":true,"c":"5"}}`); status != 200 || !strings.Contains(reply, "ADMITTED") {
		t.Errorf("skipped: %d %s", status, reply)
	}
}

// TestVariablesInTheSchemasWords: what is wrong with a variable is said without
// telling how the server is made, and names it.
func TestVariablesInTheSchemasWords(t *testing.T) {
	s := start(t)
	s.awaitReady()
	const list, create = `query($first:Int){lectures(first:$first){totalCount}}`, `mutation($i:CreateLectureInput!){createLecture(input:$i){id}}`
	for variables, c := range map[string]struct{ query, want string }{
		`{"first":[1]}`:            {list, "$first: the value must be of type Int"},
		`{"first":{}}`:             {list, "$first: the value must be of type Int"},
		`{"first":1.5}`:            {list, "$first: the value must be of type Int"},
		`{"first":1e400}`:          {list, "$first: the value must be of type Int"},
		`{"id":true}`:              {`query($id:ID!){lecture(id:$id){id}}`, "$id: the value must be of type ID!"},
		`{}`:                       {create, "$i: the value must be of type CreateLectureInput!"},
		`{"i":{"title":"x"}}`:      {create, "$i.capacity: the value must be of type Int!"},
		`{"i":{"titel":"x"}}`:      {create, "$i.titel: CreateLectureInput has no such field"},
		`{"i":{"settings":[]}}`:    {create, "$i"}, // whichever is missed first
		`{"i":{"title":null}}`:     {create, "$i.title: the value must be of type String!"},
		`{"i":{"title":["x"]}}`:    {create, "$i.title: the value must be of type String!"},
		`{"i":[{"title":"x"},{}]}`: {create, "$i: the value must be of type CreateLectureInput!"},
	} {
		_, reply := s.sendJSON("operator", fmt.Sprintf(`{"query":%q,"variables":%s}`, c.query, variables))
		if !strings.Contains(reply, c.want) || !strings.Contains(reply, "GRAPHQL_VALIDATION_FAILED") {
			t.Errorf("%s: %s", variables, reply)
		}
		for _, word := range []string{"slice", "map", "bool", "float", "json"} {
			if strings.Contains(reply, word) {
				t.Errorf("%s tells %q: %s", variables, word, reply)
			}
		}
	}
}

// TestSubscriptionsToSeveralThings are the client's mistake, on every transport.
func TestSubscriptionsToSeveralThings(t *testing.T) {
	s := start(t)
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	for _, query := range []string{
		`subscription{a:queuePosition(lectureId:"` + id + `"){status} b:queuePosition(lectureId:"` + id + `"){status}}`,
		`subscription{queuePosition(lectureId:"` + id + `")@skip(if:true){status}}`,
	} {
		for name, ask := range once {
			if e := ask(s, bearer(t, "kim"), query); e.code() != "GRAPHQL_VALIDATION_FAILED" {
				t.Errorf("%s: %s: %+v", name, query, e)
			}
		}
	}
	if strings.Contains(s.log.String(), "internal error") {
		t.Errorf("logged as ours:\n%s", s.log)
	}
}

// TestBodiesThatAreNotRead, or not as JSON.
func TestBodiesThatAreNotRead(t *testing.T) {
	s := start(t)
	s.awaitReady()
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		want    string
	}{
		"no UTF-8":   {"{\"query\":\"{lectures(search:\\\"a\xff\\\"){totalCount}}\"}", nil, 400, "UTF-8"},
		"compressed": {"{}", []string{"Content-Encoding", "gzip"}, 415, "Content-Encoding"},
		"as it is":   {`{"query":"{__typename}"}`, []string{"Content-Encoding", "identity"}, 200, "Query"},
	} {
		if status, reply := s.sendJSON("kim", c.body, c.headers...); status != c.status || !strings.Contains(reply, c.want) {
			t.Errorf("%s: %d %s", name, status, reply)
		}
	}
	// What says that it is too long is refused at once, though nothing of it comes.
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(8 * time.Second)) // the body would have ten
	fmt.Fprint(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n")
	if reply, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 413 ") {
		t.Errorf("a long body announced: %s, %v", reply, err)
	}
}

// TestASubscriptionAmongOtherThings: a client that takes JSON and events gets
// events for what only they can carry.
func TestASubscriptionAmongOtherThings(t *testing.T) {
	s := start(t)
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	s.mustEnroll("kim", id) // whose story is over: the stream ends
	body := `{"query":"subscription{queuePosition(lectureId:\"` + id + `\"){status}}"}`
	for accept, want := range map[string]string{
		"application/json, text/event-stream":        "event: next",
		"text/event-stream;q=0.1, application/json":  "event: next",
		"application/json":                           "BAD_USER_INPUT",
		"*/*":                                        "BAD_USER_INPUT",
		"application/json, text/event-stream;q=0":    "BAD_USER_INPUT",
		"application/graphql-response+json, text/*;": "BAD_USER_INPUT",
	} {
		if _, reply := s.sendJSON("kim", body, "Accept", accept); !strings.Contains(reply, want) {
			t.Errorf("%s: %s", accept, reply)
		}
	}
	if _, reply := s.sendJSON("kim", `{"query":"{viewer{userKey}}"}`, "Accept", "application/json, text/event-stream"); !strings.HasPrefix(reply, `{"data"`) {
		t.Errorf("a query: %s", reply)
	}
}
