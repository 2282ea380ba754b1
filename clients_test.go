package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"seatline/internal/testenv"
)

// npmClients is where stock clients are, one file each.
const npmClients = "testdata/clients"

// stockClients are the clients that people have, and the code by which each of
// them knows that its login was refused.
var stockClients = map[string]string{
	"graphql-ws":                 "4401",
	"subscriptions-transport-ws": "Unauthorized",
	"graphql-sse":                "401",
	"urql":                       "4401",
	"apollo":                     "4401",
}

// onStockClients runs a story with each of them at the same time.
func onStockClients(t *testing.T, story func(t *testing.T, client string)) {
	for client := range stockClients {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			story(t, client)
		})
	}
}

// operation is one of those that a client runs one after the other.
type operation struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables,omitempty"`
	Take      int            `json:"take,omitempty"` // results before it is cancelled; 0 = all
}

// drive has a client run operations against a server under an Authorization.
func drive(t *testing.T, client, url, authorization string, operations ...operation) *testenv.Node {
	t.Helper()
	input, err := json.Marshal(map[string]any{
		"url": url + "/graphql", "login": map[string]string{"Authorization": authorization}, "operations": operations,
	})
	if err != nil {
		t.Fatal(err)
	}
	return testenv.StartNode(t, npmClients, "drive.mjs", client, string(input))
}

// resultOf is the response in a client's event.
func resultOf(t *testing.T, e testenv.Event) (a answer) {
	t.Helper()
	b, err := json.Marshal(e.Value)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	return a
}

// TestGraphQLOverHTTP: the audits that come with graphql-http pass, all of them,
// those of what a server only should or may do as well.
func TestGraphQLOverHTTP(t *testing.T) {
	s := start(t)
	s.awaitReady()
	audits := testenv.StartNode(t, npmClients, "audit.mjs", s.url+"/graphql").Rest()
	if len(audits) < 61 {
		t.Errorf("%d audits were run", len(audits))
	}
	for _, audit := range audits {
		if result := audit.Value.(map[string]any); result["status"] != "ok" {
			t.Errorf("%s: %v: %v: %v", audit.Event, result["status"], result["name"], result["reason"])
		}
	}
}

// TestStockClients: a whole story through each client, over whatever it takes for
// queries, mutations and subscriptions, with the one thing that goes wrong told
// and not in the way of what comes after.
func TestStockClients(t *testing.T) {
	s := start(t)
	s.awaitReady()
	ids := map[string]string{}
	for client := range stockClients {
		ids[client] = s.newLecture(`capacity:1`)
	}
	t.Run("clients", func(t *testing.T) {
		onStockClients(t, func(t *testing.T, client string) {
			lecture, user := map[string]any{"id": ids[client]}, "user of "+client
			var got []string
			for _, e := range drive(
				t, client, s.url, bearer(t, user),
				operation{Query: `{viewer{userKey}}`},
				operation{Query: `subscription($id:ID!){queuePosition(lectureId:$id){status}}`, Variables: lecture, Take: 1},
				operation{Query: `mutation($id:ID!){joinQueue(lectureId:$id){status}}`, Variables: lecture},
				operation{Query: `subscription{nothing}`},
				operation{Query: `mutation($id:ID!){enroll(lectureId:$id){status}}`, Variables: lecture},
				operation{Query: `subscription($id:ID!){queuePosition(lectureId:$id){status}}`, Variables: lecture},
			).Rest() {
				switch e.Event {
				case "next":
					got = append(got, outline(resultOf(t, e)))
				case "error":
					errors := resultOf(t, testenv.Event{Value: map[string]any{"errors": e.Value}})
					got = append(got, outline(errors))
				case "complete", "cancelled":
					got = append(got, e.Event)
				}
			}
			want := []string{
				user, "complete",
				"NOT_QUEUED", "cancelled",
				"ADMITTED", "complete",
				"GRAPHQL_VALIDATION_FAILED",
				"ENROLLED", "complete",
				"ENROLLED", "complete",
			}
			if client == "graphql-sse" { // A stream has no event for a refusal: it is the one result.
				want = slices.Insert(want, 7, "complete")
			}
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	})
	s.checkInvariants()
}

// outline is the one value that a response has, or the code of its error.
func outline(a answer) string {
	if code := a.code(); code != "" {
		return code
	}
	for _, path := range []string{"viewer.userKey", "queuePosition.status", "joinQueue.status", "enroll.status"} {
		if v := a.at(path); v != nil {
			return fmt.Sprint(v)
		}
	}
	return fmt.Sprint(a.Data)
}

// TestStockClientsStayAwayOnceRefused: a login that is refused is final. The
// client comes once, is told, and does not come again.
func TestStockClientsStayAwayOnceRefused(t *testing.T) {
	s := start(t)
	s.awaitReady()
	onward, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("clients", func(t *testing.T) {
		onStockClients(t, func(t *testing.T, client string) {
			var visits atomic.Int64
			proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				visits.Add(1)
				r.SetURL(onward)
			}}
			defer s.client.CloseIdleConnections()
			proxy.Transport = s.client.Transport
			gate := httptest.NewServer(proxy)
			defer gate.Close()
			events := drive(t, client, gate.URL, bearer(t, "ada")+"x", operation{Query: `subscription{queuePosition(lectureId:"1"){status}}`}).Rest()
			last := events[len(events)-1]
			if last.Event != "error" || !strings.Contains(fmt.Sprint(last.Value), stockClients[client]) {
				t.Errorf("ends with %v", events)
			}
			if n := visits.Load(); n != 1 {
				t.Errorf("came %d times: %v", n, events)
			}
		})
	})
}

// TestStockClientsSurviveARestart: whoever waits is sent away, comes back by
// itself after a pause, finds the old place, and is told when admitted.
func TestStockClientsSurviveARestart(t *testing.T) {
	settings := env{"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": testenv.Redis(t), "ADDR": testenv.FreeAddr()}
	before := start(t, settings)
	before.awaitReady()
	id := before.newLecture(`capacity:1`)
	join := `mutation{joinQueue(lectureId:"` + id + `"){status position}}`
	if a := before.must("first", join); a.at("joinQueue.status") != "ADMITTED" {
		t.Fatalf("the first is %v", a.Data)
	}
	clients, places := map[string]*testenv.Node{}, map[string]any{}
	for client := range stockClients {
		places[client] = before.must(client, join).at("joinQueue.position")
		clients[client] = drive(t, client, before.url, bearer(t, client),
			operation{Query: `subscription{queuePosition(lectureId:"` + id + `"){status position}}`})
	}
	waits := func(client string) (attempts int) {
		t.Helper()
		e, events := clients[client].Until("next")
		if a := resultOf(t, e); a.at("queuePosition.status") != "WAITING" || a.at("queuePosition.position") != places[client] {
			t.Errorf("%s joined as number %v and reads %v", client, places[client], a.Data)
		}
		return events["connecting"]
	}
	for client := range clients {
		waits(client)
	}

	if err := before.stop(); err != nil {
		t.Fatal(err)
	}
	for client, node := range clients {
		if e, _ := node.Until("closed"); e.Value != nil && e.Value != 1012.0 {
			t.Errorf("%s is sent away with %v", client, e.Value)
		}
	}
	after := start(t, settings)
	after.awaitReady()
	for client := range clients {
		// Without a pause between them there would be hundreds.
		if n := waits(client); n < 1 || n > 25 {
			t.Errorf("%s is back after %d attempts", client, n)
		}
	}

	after.must("operator", fmt.Sprintf(`mutation{updateLecture(id:%q,input:{capacity:%d}){capacity}}`, id, 1+len(clients)))
	for client, node := range clients {
		for status := any("WAITING"); status != "ADMITTED"; {
			e, _ := node.Until("next")
			if status = resultOf(t, e).at("queuePosition.status"); status != "WAITING" && status != "ADMITTED" {
				t.Fatalf("%s is %v", client, status)
			}
		}
	}
	after.checkInvariants()
}
