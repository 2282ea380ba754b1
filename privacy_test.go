package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestWhatIsAnothersStaysTheirs: with a place, a ticket and a receipt of others
// about, and everything known of them that can be known, somebody else reads and
// changes nothing.
func TestWhatIsAnothersStaysTheirs(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		id, empty := s.newLecture(`capacity:2`), s.newLecture(`capacity:2`)
		s.mustEnroll("enrolled", id)
		receipt := s.must("enrolled", `{receipt(lectureId:"`+id+`"){id number} receipts{pageInfo{endCursor}}}`)
		s.must("admitted", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
		s.awaitStatus("admitted", id, "ADMITTED")
		s.must("waiting", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
		own := map[string]string{
			"enrolled": `{receipt(lectureId:"` + id + `"){id number cancelledAt} receipts{totalCount nodes{id}}}`,
			"admitted": `{queuePosition(lectureId:"` + id + `"){status ticketExpiresAt} receipts{totalCount}}`,
			"waiting":  `{queuePosition(lectureId:"` + id + `"){status position total} receipts{totalCount}}`,
		}
		before := map[string]string{}
		for user, query := range own {
			_, before[user] = s.askRaw(user, query)
		}
		placeToken := s.must("waiting", `{queuePosition(lectureId:"`+id+`"){placeToken}}`).at("queuePosition.placeToken").(string)
		receiptID := receipt.at("receipt.id").(string)
		cursor := receipt.at("receipts.pageInfo.endCursor").(string)

		// Everybody who has nothing here reads the same, whatever others have.
		for _, field := range []string{
			`receipt(lectureId:"%s"){id}`, `queuePosition(lectureId:"%s"){status position receipt{id} placeToken ticketExpiresAt}`,
		} {
			_, taken := s.askRaw("eve", `{`+fmt.Sprintf(field, id)+`}`)
			_, untouched := s.askRaw("eve", `{`+fmt.Sprintf(field, empty)+`}`)
			if taken != untouched {
				t.Errorf("%s tells lectures apart: %s and %s", field, taken, untouched)
			}
		}
		for _, ask := range []string{
			`{receipts{totalCount nodes{id}}}`, `{receipts(after:"` + cursor + `"){totalCount nodes{id}}}`,
			`mutation{cancelEnrollment(lectureId:"` + id + `"){id}}`,
			`mutation{leaveQueue(lectureId:"` + id + `"){status receipt{id}}}`,
			`mutation{enroll(lectureId:"` + id + `"){status receipt{id}}}`,
		} {
			a, body := s.askRaw("eve", ask)
			if len(a.Errors) > 0 || strings.Contains(body, receiptID) || a.at("receipts.totalCount") != nil && a.at("receipts.totalCount") != 0.0 || a.at("enroll.status") != nil && a.at("enroll.status") != "NOT_ADMITTED" {
				t.Errorf("%s: %s", ask, body)
			}
		}

		// No way in names a person or a receipt: there is nothing to walk along.
		for _, ask := range []string{
			`{receipt(id:"` + receiptID + `"){id}}`, `{node(id:"` + receiptID + `"){id}}`, `{receipt(lectureId:"` + id + `",userKey:"enrolled"){id}}`,
			`{queuePosition(lectureId:"` + id + `",userKey:"waiting"){status}}`, `{lecture(id:"` + id + `"){enrollments{nodes{id}}}}`, `{receipts(userKey:"enrolled"){totalCount}}`,
			`{viewer(userKey:"enrolled"){userKey}}`,
			`mutation{leaveQueue(lectureId:"` + id + `",userKey:"waiting"){status}}`, `mutation{cancelEnrollment(lectureId:"` + id + `",userKey:"enrolled"){id}}`,
			`mutation{cancelEnrollment(id:"` + receiptID + `"){id}}`, `mutation{joinQueue(lectureId:"` + id + `",userKey:"waiting"){status}}`,
		} {
			if a, body := s.askRaw("eve", ask); a.code() != "GRAPHQL_VALIDATION_FAILED" || strings.Contains(body, `"data"`) {
				t.Errorf("%s: %s", ask, body)
			}
		}
		for _, lectureID := range []string{receiptID, id + " ", "0" + id, "+" + id, id + ".0", `\u0000` + id, "-" + id} {
			if a := s.ask("enrolled", `{receipt(lectureId:"`+lectureID+`"){id}}`); a.code() != "NOT_FOUND" {
				t.Errorf("lecture %q: %+v", lectureID, a)
			}
		}
		// Headers and variables that other servers believe.
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/graphql",
			strings.NewReader(`{"query":"{viewer{userKey operator} receipts{totalCount}}","variables":{"userKey":"enrolled","viewer":{"operator":true}},"extensions":{"userKey":"enrolled"}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", bearer(t, "eve"))
		for _, name := range []string{"X-User", "X-Forwarded-User", "X-Remote-User", "Remote-User", "X-Auth-Request-User", "X-Role"} {
			r.Header.Set(name, "operator")
		}
		if _, body, err := s.do(r); err != nil || !strings.Contains(body, `"userKey":"eve","operator":false`) || !strings.Contains(body, `"totalCount":0`) {
			t.Errorf("headers are believed: %s %v", body, err)
		}

		// A ticket is bound to its holder, a proof of a place to its owner.
		a := s.must("eve", `mutation{joinQueue(lectureId:"`+id+`",placeToken:"`+placeToken+`"){status position}}`)
		if a.at("joinQueue.status") != "WAITING" || a.at("joinQueue.position") != 2.0 {
			t.Errorf("with the proof of another's place: %v", a.Data)
		}
		for _, stolen := range []string{placeToken + "x", placeToken[:len(placeToken)-1], strings.ToUpper(placeToken), ".", "", strings.Repeat("x", 4000)} {
			if a := s.must("eve", `mutation{joinQueue(lectureId:"`+id+`",placeToken:"`+stolen+`"){status position}}`); a.at("joinQueue.position") != 2.0 {
				t.Errorf("a proof of nothing: %v", a.Data)
			}
		}
		s.must("eve", `mutation{leaveQueue(lectureId:"`+id+`"){status}}`)

		for user, query := range own {
			if _, body := s.askRaw(user, query); body != before[user] {
				t.Errorf("%s had %s and has %s", user, before[user], body)
			}
		}
		// Ids say nothing about their neighbours.
		if parsed, err := uuid.Parse(receiptID); err != nil || parsed.Version() != 7 {
			t.Errorf("receipt %s: %v", receiptID, err)
		}
	})
}

// TestOperatorsAlone: what is for operators is refused to others before anything
// is looked up, so that a refusal is the same whether there is something or not.
func TestOperatorsAlone(t *testing.T) {
	s := start(t)
	s.awaitReady()
	id := s.newLecture(`capacity:2`)
	s.mustEnroll("enrolled", id)
	asks := map[string]string{
		"roster":         `{enrollments(lectureId:"%s"){totalCount nodes{userKey}}}`,
		"roster, search": `{enrollments(lectureId:"%s",search:"enrolled",includeCancelled:true){nodes{id}}}`,
		"remove":         `mutation{removeEnrollment(lectureId:"%s",userKey:"enrolled"){id}}`,
		"remove nobody":  `mutation{removeEnrollment(lectureId:"%s",userKey:"nobody"){id}}`,
		"remove, bad":    `mutation{removeEnrollment(lectureId:"%s",userKey:"\u0001"){id}}`,
		"update":         `mutation{updateLecture(id:"%s",input:{capacity:1}){id}}`,
		"update, bad":    `mutation{updateLecture(id:"%s",input:{capacity:-1}){id}}`,
		"create":         `mutation{createLecture(input:{title:"%s",capacity:1}){id}}`,
	}
	for name, ask := range asks {
		for user, want := range map[string]string{"eve": "FORBIDDEN", "enrolled": "FORBIDDEN", "": "UNAUTHENTICATED"} {
			var bodies []string
			for _, lectureID := range []string{id, "999999", "x"} {
				a, body := s.askRaw(user, fmt.Sprintf(ask, lectureID))
				if a.code() != want {
					t.Errorf("%s as %q on %s: %s", name, user, lectureID, body)
				}
				bodies = append(bodies, body)
			}
			if bodies[0] != bodies[1] || bodies[1] != bodies[2] {
				t.Errorf("%s as %q: the refusals differ: %s", name, user, bodies)
			}
		}
	}
	for _, user := range []string{"eve", ""} {
		var bodies []string
		for _, lectureID := range []string{id, "999999", "x"} {
			status, body := s.get("/lectures/"+lectureID+"/enrollments.csv", user)
			bodies = append(bodies, fmt.Sprint(status, body))
		}
		if bodies[0] != bodies[1] || bodies[1] != bodies[2] {
			t.Errorf("the roster as CSV, as %q: %s", user, bodies)
		}
		for name, subscribe := range transports {
			if user == "" && name == "sse" {
				continue // an empty header is refused in its own test
			}
			e := subscribe(s, user, `subscription{lineStats(lectureId:"`+id+`"){waiting}}`).until("a refusal", func(event) bool { return true })
			if code := e.code(); code != "FORBIDDEN" && code != "UNAUTHENTICATED" {
				t.Errorf("%s as %q: %+v", name, user, e)
			}
		}
	}
	if a := s.must("enrolled", `{receipt(lectureId:"`+id+`"){cancelledAt lecture{capacity}}}`); a.at("receipt") == nil || a.at("receipt.cancelledAt") != nil || a.at("receipt.lecture.capacity") != 2.0 {
		t.Errorf("after all this: %v", a.Data)
	}
	var all struct {
		Data struct{ Lectures struct{ TotalCount int } }
	}
	_, body := s.askRaw("", `{lectures{totalCount}}`)
	if err := json.Unmarshal([]byte(body), &all); err != nil || all.Data.Lectures.TotalCount != 4 {
		t.Errorf("lectures nobody may create: %s", body)
	}
}
