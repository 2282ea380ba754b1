package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seatline/internal/testenv"
)

const watched = `subscription{queuePosition(lectureId:"%s"){status lineState position total message ticketExpiresAt serverTime reason pollAfterMs placeToken receipt{number} lecture{id title seatsLeft lineState waiting}}}`

func TestTheWholeFlow(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		for name, subscribe := range transports {
			t.Run(name, func(t *testing.T) {
				id := s.newLecture(`capacity:2,description:"d"`)
				kim := "김하늘-" + name
				stream := subscribe(s, kim, fmt.Sprintf(watched, id))
				first := stream.untilStatus("NOT_QUEUED")
				if first.at("queuePosition.lineState") != "OPEN" || first.at("queuePosition.lecture.seatsLeft") != 2.0 {
					t.Errorf("the first event: %v", first.Data)
				}
				if a := s.must(kim, `mutation{joinQueue(lectureId:"`+id+`"){status}}`); a.at("joinQueue.status") != "WAITING" && a.at("joinQueue.status") != "ADMITTED" {
					t.Errorf("join: %v", a.Data)
				}
				admitted := stream.untilStatus("ADMITTED")
				expires, now := instantOf(t, admitted.at("queuePosition.ticketExpiresAt")), instantOf(t, admitted.at("queuePosition.serverTime"))
				if left := expires.Sub(now); left < 100*time.Second || left > 121*time.Second || admitted.at("queuePosition.position") != nil {
					t.Errorf("the ticket is good for %v: %v", left, admitted.Data)
				}
				enrolled := s.must(kim, `mutation{enroll(lectureId:"`+id+`"){status receipt{id number userKey enrolledAt lecture{title}} position{status receipt{number}}}}`)
				if enrolled.at("enroll.status") != "ENROLLED" || enrolled.at("enroll.receipt.number") != 1.0 || enrolled.at("enroll.receipt.userKey") != kim || enrolled.at("enroll.position.status") != "ENROLLED" {
					t.Fatalf("enroll: %v", enrolled.Data)
				}
				last := stream.untilStatus("ENROLLED")
				if last.at("queuePosition.receipt.number") != 1.0 || last.at("queuePosition.lecture.seatsLeft") != 1.0 || last.at("queuePosition.ticketExpiresAt") != nil {
					t.Errorf("the last event: %v", last.Data)
				}
				stream.completed()

				again := s.must(kim, `mutation{enroll(lectureId:"`+id+`"){status receipt{id}}}`)
				if again.at("enroll.status") != "ALREADY_ENROLLED" || again.at("enroll.receipt.id") != enrolled.at("enroll.receipt.id") {
					t.Errorf("enroll again: %v", again.Data)
				}
				if a := s.must(kim, `mutation{joinQueue(lectureId:"`+id+`"){status receipt{number}}}`); a.at("joinQueue.status") != "ENROLLED" || a.at("joinQueue.receipt.number") != 1.0 {
					t.Errorf("join again: %v", a.Data)
				}
				if a := s.must(kim, `{receipt(lectureId:"`+id+`"){number cancelledAt} queuePosition(lectureId:"`+id+`"){status}}`); a.at("receipt.number") != 1.0 || a.at("queuePosition.status") != "ENROLLED" {
					t.Errorf("receipt: %v", a.Data)
				}
				if a := s.must("somebody else", `{receipt(lectureId:"`+id+`"){number} receipts{totalCount}}`); a.at("receipt") != nil || a.at("receipts.totalCount") != 0.0 {
					t.Errorf("somebody else's receipt: %v", a.Data)
				}
				if a := s.must(kim, `mutation{cancelEnrollment(lectureId:"`+id+`"){number cancelledAt lecture{seatsLeft}}}`); a.at("cancelEnrollment.cancelledAt") == nil || a.at("cancelEnrollment.lecture.seatsLeft") != 2.0 {
					t.Errorf("cancel: %v", a.Data)
				}
				if a := s.must(kim, `mutation{cancelEnrollment(lectureId:"`+id+`"){number}}`); a.at("cancelEnrollment") != nil {
					t.Errorf("cancel again: %v", a.Data)
				}
				if a := s.must(kim, `{queuePosition(lectureId:"`+id+`"){status reason} receipts{nodes{number cancelledAt lecture{title lineState}} totalCount}}`); a.at("queuePosition.status") != "NOT_QUEUED" || a.at("receipts.totalCount") != 1.0 {
					t.Errorf("afterwards: %v", a.Data)
				}
				s.mustEnroll(kim, id)
				if a := s.must(kim, `{receipt(lectureId:"`+id+`"){number}}`); a.at("receipt.number") != 2.0 {
					t.Errorf("the number of a new enrolment: %v", a.Data)
				}
			})
		}
	})
}

func instantOf(t *testing.T, v any) time.Time {
	t.Helper()
	text, _ := v.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !strings.HasSuffix(text, "Z") {
		t.Fatalf("%v is no instant in UTC", v)
	}
	return at
}

// mustEnroll joins, waits to be admitted, and enrols.
func (s *instance) mustEnroll(user, id string) {
	s.t.Helper()
	s.must(user, `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
	s.awaitStatus(user, id, "ADMITTED")
	if a := s.must(user, `mutation{enroll(lectureId:"`+id+`"){status}}`); a.at("enroll.status") != "ENROLLED" {
		s.t.Fatalf("%s enrols: %v", user, a.Data)
	}
}

// awaitStatus polls as a client without a socket does.
func (s *instance) awaitStatus(user, id, status string) {
	s.t.Helper()
	testenv.Eventually(s.t, 20*time.Second, func() bool {
		return s.must(user, `{queuePosition(lectureId:"`+id+`"){status}}`).at("queuePosition.status") == status
	}, user+" reads "+status)
}

func TestThreeStudentsOneSeat(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		id := s.newLecture(`capacity:1`)
		streams := map[string]*stream{}
		for i, user := range []string{"a", "b", "c"} {
			s.must(user, `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
			if i == 0 {
				s.awaitStatus("a", id, "ADMITTED")
			}
		}
		for user, name := range map[string]string{"a": "sse", "b": "graphql-transport-ws", "c": "graphql-ws"} {
			streams[user] = transports[name](s, user, fmt.Sprintf(watched, id))
		}
		streams["a"].untilStatus("ADMITTED")
		for user, place := range map[string]float64{"b": 1, "c": 2} {
			e := streams[user].untilStatus("WAITING")
			if e.at("queuePosition.position") != place || e.at("queuePosition.total") != 2.0 || e.at("queuePosition.lineState") != "ALL_HELD" || e.at("queuePosition.placeToken") == nil {
				t.Errorf("%s: %v", user, e.Data)
			}
		}
		// Without a ticket nobody gets in, and an id of somebody else's does not help.
		if a := s.must("c", `mutation{enroll(lectureId:"`+id+`"){status receipt{number} position{status position}}}`); a.at("enroll.status") != "NOT_ADMITTED" || a.at("enroll.receipt") != nil || a.at("enroll.position.position") != 2.0 {
			t.Errorf("c without a ticket: %v", a.Data)
		}
		if a := s.must("a", `mutation{enroll(lectureId:"`+id+`"){status}}`); a.at("enroll.status") != "ENROLLED" {
			t.Fatalf("a: %v", a.Data)
		}
		streams["a"].untilStatus("ENROLLED")
		streams["a"].completed()
		soldOut := func(e event) bool { return e.at("queuePosition.lineState") == "SOLD_OUT" }
		streams["b"].until("SOLD_OUT", soldOut)
		streams["c"].until("SOLD_OUT", soldOut)

		// A seat that comes back goes to the head of the line.
		s.must("a", `mutation{cancelEnrollment(lectureId:"`+id+`"){number}}`)
		streams["b"].untilStatus("ADMITTED")
		streams["c"].until("first in line", func(e event) bool { return e.at("queuePosition.position") == 1.0 })
		if a := s.must("a", `mutation{joinQueue(lectureId:"`+id+`"){status position}}`); a.at("joinQueue.status") != "WAITING" || a.at("joinQueue.position") != 2.0 {
			t.Errorf("who cancelled joins again: %v", a.Data)
		}
		// And so does a ticket that is given back.
		if a := s.must("b", `mutation{leaveQueue(lectureId:"`+id+`"){status}}`); a.at("leaveQueue.status") != "NOT_QUEUED" {
			t.Errorf("b leaves: %v", a.Data)
		}
		streams["b"].untilStatus("NOT_QUEUED")
		streams["c"].untilStatus("ADMITTED")
		if a := s.must("c", `mutation{enroll(lectureId:"`+id+`"){status receipt{number}}}`); a.at("enroll.receipt.number") != 2.0 {
			t.Errorf("c: %v", a.Data)
		}
		streams["c"].untilStatus("ENROLLED")
		streams["c"].completed()
	})
}

func TestOperatorsChangeALineWhilePeopleWait(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		id := s.newLecture(`capacity:1`)
		s.mustEnroll("first", id)
		s.must("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
		kim := transports["graphql-transport-ws"](s, "kim", fmt.Sprintf(watched, id))
		kim.untilStatus("WAITING")
		update := func(input string) answer {
			t.Helper()
			return s.must("operator", `mutation{updateLecture(id:"`+id+`",input:{`+input+`}){title description capacity enrolledCount seatsLeft opensAt closesAt lineState waiting settings{paused admitPerSecond burst ticketTtlSeconds overbookPercent message}}}`)
		}
		stats := transports["sse"](s, "operator", `subscription{lineStats(lectureId:"`+id+`"){lecture{title} lineState waiting parked held inFlight seatsLeft enrolledCount capacity admitPerSecond admittedPerMinute claimRate serverTime}}`)
		stats.until("one who waits", func(e event) bool { return e.at("lineStats.waiting") == 1.0 && e.at("lineStats.enrolledCount") == 1.0 })

		update(`settings:{paused:true,message:"잠시만요"}`)
		kim.until("the pause and its reason", func(e event) bool {
			return e.at("queuePosition.lineState") == "PAUSED" && e.at("queuePosition.message") == "잠시만요"
		})
		a := update(`capacity:3,title:"새 제목"`)
		if a.at("updateLecture.seatsLeft") != 2.0 || a.at("updateLecture.settings.paused") != true || a.at("updateLecture.settings.burst") != 10.0 || a.at("updateLecture.lineState") != "PAUSED" || a.at("updateLecture.waiting") != 1.0 {
			t.Errorf("more seats while paused: %v", a.Data)
		}
		kim.until("the new title", func(e event) bool {
			return e.at("queuePosition.lecture.title") == "새 제목" && e.at("queuePosition.lecture.seatsLeft") == 2.0 && e.at("queuePosition.status") == "WAITING"
		})
		if a := update(`settings:{paused:false,message:null}`); a.at("updateLecture.settings.message") != nil {
			t.Errorf("the message is cleared: %v", a.Data)
		}
		kim.untilStatus("ADMITTED")
		stats.until("the ticket", func(e event) bool { return e.at("lineStats.held") == 1.0 && e.at("lineStats.capacity") == 3.0 })

		if a := update(`opensAt:"2026-01-01T09:00:00+09:00",closesAt:"2100-01-01T00:00:00Z",description:"d"`); a.at("updateLecture.opensAt") != "2026-01-01T00:00:00Z" {
			t.Errorf("times are told in UTC: %v", a.Data)
		}
		if a := update(`opensAt:null,closesAt:null,description:null`); a.at("updateLecture.opensAt") != nil || a.at("updateLecture.closesAt") != nil || a.at("updateLecture.description") != "" || a.at("updateLecture.title") != "새 제목" {
			t.Errorf("null clears: %v", a.Data)
		}
		for _, bad := range []string{
			`capacity:0`, `capacity:-1`, `capacity:1000001`, `capacity:null`, `title:null`, `title:""`, `title:"` + strings.Repeat("x", 201) + `"`,
			`settings:null`, `settings:{paused:null}`, `settings:{burst:null}`, `settings:{admitPerSecond:null}`, `settings:{ticketTtlSeconds:null}`, `settings:{overbookPercent:null}`,
			`settings:{burst:0}`, `settings:{burst:10001}`, `settings:{admitPerSecond:0}`, `settings:{admitPerSecond:10001}`,
			`settings:{ticketTtlSeconds:3601}`, `settings:{overbookPercent:99}`, `settings:{overbookPercent:201}`, `settings:{message:"` + strings.Repeat("x", 501) + `"}`,
			`opensAt:"2030-01-02T00:00:00Z",closesAt:"2030-01-01T00:00:00Z"`,
		} {
			a := s.ask("operator", `mutation{updateLecture(id:"`+id+`",input:{`+bad+`}){id}}`)
			if a.code() != "BAD_USER_INPUT" {
				t.Errorf("%.80s: %+v", bad, a)
			}
			named, _, _ := strings.Cut(strings.Replace(bad, "settings:{", "settings.", 1), ":")
			if strings.Contains(bad, "closesAt") {
				named = "closesAt"
			}
			if field := a.Errors[0].Extensions["field"]; field != named {
				t.Errorf("%.80s: the field is %v, not %s", bad, field, named)
			}
		}
		// Closing ends the story of those who wait, with a word and not in silence.
		s.must("late", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
		update(`closesAt:"2026-01-02T00:00:00Z"`)
		kim.until("CLOSED", func(e event) bool { return e.at("queuePosition.lineState") == "CLOSED" })
		kim.completed()
		if a := s.must("kim", `mutation{enroll(lectureId:"`+id+`"){status}}`); a.at("enroll.status") != "CLOSED" && a.at("enroll.status") != "TICKET_EXPIRED" {
			t.Errorf("enrol after the close: %v", a.Data)
		}
	})
}

func TestGuestsAreForTheEmbeddedDefault(t *testing.T) {
	s := start(t)
	s.awaitReady()
	a := s.must("", `mutation{startSession(name:" 지민 "){token expiresAt viewer{userKey name operator}}}`)
	if a.at("startSession.viewer.name") != "지민" || a.at("startSession.viewer.operator") != false {
		t.Errorf("%v", a.Data)
	}
	_, body, err := s.post("Bearer "+a.at("startSession.token").(string), `mutation{joinQueue(lectureId:"1"){status}}`)
	if err != nil || !strings.Contains(body, "ADMITTED") {
		t.Errorf("a guest joins: %s %v", body, err)
	}
	for _, name := range []string{"", "   ", strings.Repeat("x", 65), `a\u0007b`} {
		if a := s.ask("", `mutation{startSession(name:"`+name+`"){token}}`); a.code() != "BAD_USER_INPUT" {
			t.Errorf("%q: %+v", name, a)
		}
	}
	if demo := s.must("", `{lectures{totalCount}}`).at("lectures.totalCount"); demo != 3.0 {
		t.Errorf("%v demo lectures", demo)
	}

	if err := s.stop(); err != nil {
		t.Error(err)
	}

	real := start(t, env{"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": testenv.Redis(t)})
	real.awaitReady()
	if a := real.ask("", `mutation{startSession(name:"x"){token}}`); a.code() != "NOT_ENABLED" {
		t.Errorf("on real stores: %+v", a)
	}
	if n := real.must("", `{lectures{totalCount}}`).at("lectures.totalCount"); n != 0.0 {
		t.Errorf("%v lectures nobody created", n)
	}
}

func TestWhatTheProgramSays(t *testing.T) {
	var out bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	if err := run(t.Context(), []string{"-h"}, none, &out, io.Discard); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "DATABASE_URL") {
		t.Errorf("-h: %v, %s", err, out.String())
	}
	if err := run(t.Context(), []string{"-tick", "soon"}, none, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "TICK") {
		t.Errorf("a bad setting: %v", err)
	}

	out.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	greeting := &logBuffer{}
	go func() {
		ended <- run(ctx, []string{"-addr", "127.0.0.1:0", "-guest-sessions=off"}, none, greeting, io.Discard)
	}()
	testenv.Eventually(t, 20*time.Second, func() bool { return strings.Contains(greeting.String(), "Seats") }, "a greeting")
	_, rest, _ := strings.Cut(greeting.String(), "Operator")
	link, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	home, token, found := strings.Cut(link, "/#token=")
	if !found {
		t.Fatalf("no operator's link: %s", greeting)
	}
	s := &instance{t: t, url: home, client: http.DefaultClient}
	if _, body, err := s.post("Bearer "+token, `{viewer{operator}}`); err != nil || !strings.Contains(body, "true") {
		t.Errorf("the operator's token: %s %v", body, err)
	}
	for path, want := range map[string]string{"/": "Seatline", "/playground": "Seatline", "/healthz": "live", "/readyz": "ready"} {
		if status, body := s.get(path, ""); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	if err := run(t.Context(), []string{"-healthcheck", "-addr", strings.TrimPrefix(home, "http://")}, none, io.Discard, io.Discard); err != nil {
		t.Errorf("-healthcheck: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if err := run(t.Context(), []string{"-healthcheck", "-addr", strings.TrimPrefix(home, "http://")}, none, io.Discard, io.Discard); err == nil {
		t.Error("-healthcheck of nothing is fine")
	}
	http.DefaultClient.CloseIdleConnections()
}
