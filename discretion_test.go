package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatline/internal/registrar"
	"seatline/internal/testenv"
)

// everything is one of each operation, subscriptions included.
func everything(id string) map[string]string {
	all := everyOperation(id)
	all[`subscription{queuePosition(lectureId:"`+id+`"){status lecture{title} receipt{number}}}`] = "kim"
	all[`subscription{lineStats(lectureId:"`+id+`"){waiting enrolledCount lecture{title}}}`] = "operator"
	return all
}

// overEvery sends an operation over every transport that carries it, and gives
// what came first to see.
func (s *instance) overEvery(user, query string, see func(transport string, e event)) {
	s.t.Helper()
	for transport, send := range once {
		if transport == "http" && strings.HasPrefix(query, "subscription") {
			continue
		}
		see(transport, send(s, bearer(s.t, user), query))
	}
}

// TestBothStoresAway: every operation on every transport says that it is for now,
// and nothing of where the stores are (A11).
func TestBothStoresAway(t *testing.T) {
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	database, line := testenv.NewProxy(t, addressIn(databaseURL)), testenv.NewProxy(t, addressIn(redisURL))
	s := start(t, env{"DATABASE_URL": through(t, databaseURL, database), "REDIS_URL": through(t, redisURL, line)})
	s.awaitReady()
	id := s.newLecture(`capacity:3`)
	s.must("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
	database.Refuse()
	line.Refuse()
	asked := 0
	for query, user := range everything(id) {
		s.overEvery(user, query, func(transport string, e event) {
			asked++
			if len(e.Errors) == 0 || e.code() != "UNAVAILABLE" || e.Errors[0].Extensions["retryAfterMs"] == nil {
				t.Errorf("%s, %s: %+v", transport, query, e)
			}
			said, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			checkDiscreet(t, transport+", "+query, string(said)+e.end)
		})
	}
	if asked < 50 {
		t.Errorf("only %d were asked", asked)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	status, h, body := s.exchange(r)
	if status != 503 || !strings.Contains(body, "redis") || !strings.Contains(body, "database") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	checkDiscreet(t, "/readyz", body+fmt.Sprint(h))
	if status, _ := s.get("/healthz", ""); status != 200 {
		t.Errorf("/healthz: %d", status)
	}
	database.Heal()
	line.Heal()
	s.awaitReady()
	s.awaitStatus("kim", id, "ADMITTED")
}

// TestABrokenSchemaIsTold in the log, and nowhere else: a table is gone (A11).
func TestABrokenSchemaIsTold(t *testing.T) {
	databaseURL := testenv.Postgres(t)
	s := start(t, env{"DATABASE_URL": databaseURL, "REDIS_URL": testenv.Redis(t)})
	s.awaitReady()
	id := s.newLecture(`capacity:3`)
	s.must("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
	s.awaitStatus("kim", id, "ADMITTED")
	_, db, shut, err := registrar.OpenPostgres(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer shut()
	if _, err := db.ExecContext(t.Context(), `DROP TABLE enrollments`); err != nil {
		t.Fatal(err)
	}
	ids := 0
	for query, user := range everything(id) {
		s.overEvery(user, query, func(transport string, e event) {
			said, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			requestID := "none"
			if len(e.Errors) > 0 && e.code() == "INTERNAL" {
				requestID, _ = e.Errors[0].Extensions["requestId"].(string)
			}
			said = bytes.ReplaceAll(said, []byte(requestID), nil) // random letters may be a word, too
			checkDiscreet(t, transport+", "+query, string(said)+e.end)
			for _, word := range []string{"SQLSTATE", "42P01", "relation", "does not exist", "enrollments\\\"", "pq:", "syntax", "SELECT", "INSERT"} {
				if strings.Contains(string(said), word) {
					t.Errorf("%s, %s tells %q: %s", transport, query, word, said)
				}
			}
			if len(e.Errors) == 0 {
				return // it needs other tables only
			}
			switch e.code() {
			case "INTERNAL":
				ids++
				if requestID == "" || !strings.Contains(s.log.String(), requestID) {
					t.Errorf("%s, %s: the log has no %q", transport, query, requestID)
				}
			case "UNAVAILABLE":
			default:
				t.Errorf("%s, %s: %s", transport, query, said)
			}
		})
	}
	if ids < 15 {
		t.Errorf("only %d operations noticed", ids)
	}
	status, body := s.get("/lectures/"+id+"/enrollments.csv", "operator")
	if status != 500 || !strings.Contains(body, `"INTERNAL"`) || !strings.Contains(body, "requestId") {
		t.Errorf("the roster: %d %s", status, body)
	}
	said, _, _ := strings.Cut(body, "requestId")
	checkDiscreet(t, "the roster", said)
}

// TestEveryWatcherIsTold something at once, whatever there is to watch, and the
// end where it is the end (A10).
func TestEveryWatcherIsTold(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		soldOut, closed, untouched := s.newLecture(`capacity:1`), s.newLecture(`capacity:1,closesAt:"2026-01-01T00:00:00Z"`), s.newLecture(`capacity:1,opensAt:"2100-01-01T00:00:00Z"`)
		s.mustEnroll("enrolled", soldOut)
		for _, tc := range []struct {
			what, user, id string
			status, line   any
			code           string
			over           bool
		}{
			{"unknown", "kim", "999999", nil, nil, "NOT_FOUND", true},
			{"no id of ours", "kim", "x", nil, nil, "NOT_FOUND", true},
			{"not in line", "kim", untouched, "NOT_QUEUED", "UPCOMING", "", false},
			{"sold out", "kim", soldOut, "NOT_QUEUED", "SOLD_OUT", "", false},
			{"closed", "kim", closed, "NOT_QUEUED", "CLOSED", "", true},
			{"enrolled", "enrolled", soldOut, "ENROLLED", "SOLD_OUT", "", true},
		} {
			for name, subscribe := range transports {
				begun := time.Now()
				stream := subscribe(s, tc.user, fmt.Sprintf(watched, tc.id))
				e := stream.until("a word", func(event) bool { return true })
				if e.code() != tc.code || e.at("queuePosition.status") != tc.status || e.at("queuePosition.lineState") != tc.line {
					t.Errorf("%s, %s: %+v", tc.what, name, e)
				}
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("%s, %s: told after %v", tc.what, name, took)
				}
				if tc.over && (tc.code == "" || name == "sse") {
					stream.completed()
				}
				stream.close()
			}
		}
		// What has not happened has no time, and hides nothing beside it (A25).
		a := s.must("enrolled", `{receipt(lectureId:"`+soldOut+`"){number enrolledAt cancelledAt lecture{title opensAt closesAt}} queuePosition(lectureId:"`+soldOut+`"){status ticketExpiresAt position serverTime}}`)
		if a.at("receipt.number") != 1.0 || a.at("receipt.cancelledAt") != nil || a.at("receipt.lecture.opensAt") != nil || a.at("receipt.lecture.title") == nil || a.at("queuePosition.ticketExpiresAt") != nil {
			t.Errorf("%v", a.Data)
		}
		// Numbers that are too large are refused, and none becomes a small one (A24).
		for _, capacity := range []string{"2147483648", "4294967297", "-1", "1.5", `"5"`, "1e3"} {
			if a := s.ask("operator", `mutation{createLecture(input:{title:"x",capacity:`+capacity+`}){id}}`); a.code() != "BAD_USER_INPUT" && a.code() != "GRAPHQL_VALIDATION_FAILED" {
				t.Errorf("capacity %s: %+v", capacity, a)
			}
		}
	})
}
