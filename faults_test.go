package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"seatline/internal/registrar"
	"seatline/internal/testenv"
)

func TestItIsLiveBeforeItsStoresAndReadyWithThem(t *testing.T) {
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	database, redis := testenv.NewProxy(t, addressIn(databaseURL)), testenv.NewProxy(t, addressIn(redisURL))
	database.Refuse()
	redis.Refuse()
	s := start(t, env{"DATABASE_URL": through(t, databaseURL, database), "REDIS_URL": through(t, redisURL, redis)})
	for _, heal := range []*testenv.Proxy{redis, database} {
		if status, _ := s.get("/healthz", ""); status != 200 {
			t.Errorf("not live: %d", status)
		}
		if status, _ := s.get("/readyz", ""); status != 503 {
			t.Errorf("ready without stores: %d", status)
		}
		if status, body, err := s.post("", `{lectures{totalCount}}`); status != 503 || !strings.Contains(body, `"UNAVAILABLE"`) || !strings.Contains(body, "retryAfterMs") {
			t.Errorf("before the stores: %d %s %v", status, body, err)
		}
		_, res, err := websocket.DefaultDialer.DialContext(t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", nil)
		if err == nil || res == nil || res.StatusCode != 503 {
			t.Fatalf("a socket before the stores: %v", err)
		}
		res.Body.Close()
		heal.Heal()
	}
	s.awaitReady()
	s.newLecture(`capacity:1`)
}

func addressIn(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if _, after, found := strings.Cut(rest, "@"); found {
		rest = after
	}
	addr, _, _ := strings.Cut(rest, "/")
	return addr
}

// through is url with the proxy in the place of its server.
func through(t *testing.T, url string, p *testenv.Proxy) string {
	t.Helper()
	out := strings.Replace(url, addressIn(url), p.Addr, 1)
	if out == url {
		t.Fatalf("no address in %s", url)
	}
	return out
}

func TestStoresThatNeverAnswerEndTheProgram(t *testing.T) {
	nobody, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := nobody.Addr().String()
	nobody.Close()
	for name, settings := range map[string]env{
		"redis":    {"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": "redis://user:hunter2hunter2@" + addr + "/0"},
		"database": {"DATABASE_URL": "postgres://user:hunter2hunter2@" + addr + "/x", "REDIS_URL": testenv.Redis(t)},
	} {
		t.Run(name, func(t *testing.T) {
			settings["ADDR"], settings["JWT_SECRET"], settings["START_TIMEOUT"] = "127.0.0.1:0", secret, "1s"
			var log, out logBuffer
			err := run(t.Context(), nil, func(k string) (string, bool) { v, ok := settings[k]; return v, ok }, &out, &log)
			if err == nil {
				t.Fatal("the program ended well")
			}
			if strings.Contains(err.Error()+log.String()+out.String(), "hunter2") {
				t.Errorf("the password is told: %v\n%s", err, log.String())
			}
			if !strings.Contains(err.Error(), "_URL") || !strings.Contains(log.String(), "not ready yet") {
				t.Errorf("error %v, log:\n%s", err, log.String())
			}
		})
	}
}

// everyOperation is one of each, for whom each is allowed.
func everyOperation(id string) map[string]string {
	return map[string]string{
		`{lecture(id:"` + id + `"){title lineState}}`: "", `{lectures{totalCount nodes{waiting}}}`: "",
		`{queuePosition(lectureId:"` + id + `"){status}}`: "kim", `{receipt(lectureId:"` + id + `"){number}}`: "kim", `{receipts{totalCount}}`: "kim",
		`{enrollments(lectureId:"` + id + `"){totalCount}}`:   "operator",
		`mutation{joinQueue(lectureId:"` + id + `"){status}}`: "kim", `mutation{leaveQueue(lectureId:"` + id + `"){status}}`: "leaver",
		`mutation{enroll(lectureId:"` + id + `"){status}}`: "kim", `mutation{cancelEnrollment(lectureId:"` + id + `"){number}}`: "kim",
		`mutation{createLecture(input:{title:"x",capacity:1}){id}}`: "operator", `mutation{updateLecture(id:"` + id + `",input:{capacity:2}){capacity lineState}}`: "operator",
		`mutation{removeEnrollment(lectureId:"` + id + `",userKey:"kim"){number}}`: "operator",
	}
}

func TestAnOutageIsToldAsOneAndInNoOtherWords(t *testing.T) {
	for _, down := range []string{"redis", "database"} {
		t.Run(down, func(t *testing.T) {
			databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
			proxies := map[string]*testenv.Proxy{"database": testenv.NewProxy(t, addressIn(databaseURL)), "redis": testenv.NewProxy(t, addressIn(redisURL))}
			s := start(t, env{"DATABASE_URL": through(t, databaseURL, proxies["database"]), "REDIS_URL": through(t, redisURL, proxies["redis"])})
			s.awaitReady()
			id := s.newLecture(`capacity:3`)
			s.must("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
			s.awaitStatus("kim", id, "ADMITTED")
			proxies[down].Refuse()

			var failed atomic.Int32
			for query, user := range everyOperation(id) {
				a, body := s.askRaw(user, query)
				if len(a.Errors) == 0 {
					continue // it needs the other store only
				}
				failed.Add(1)
				retry, _ := a.Errors[0].Extensions["retryAfterMs"].(float64)
				if a.code() != "UNAVAILABLE" || retry < 100 {
					t.Errorf("%s: %s", query, body)
				}
				checkDiscreet(t, query, body)
			}
			if failed.Load() < 7 {
				t.Errorf("only %d operations noticed", failed.Load())
			}
			for name, subscribe := range transports {
				board := subscribe(s, "operator", `subscription{lineStats(lectureId:"`+id+`"){serverTime lecture{title}}}`)
				if e := board.until("an error, not silence", func(event) bool { return true }); e.code() != "UNAVAILABLE" {
					t.Errorf("%s: the board: %+v", name, e)
				}
				board.close()
				stream := subscribe(s, "somebody", fmt.Sprintf(watched, id))
				e := stream.until("an error", func(e event) bool { return true })
				stream.close()
				if e.code() != "UNAVAILABLE" {
					t.Errorf("%s: %+v", name, e)
				}
				checkDiscreet(t, name, fmt.Sprint(e))
			}
			if status, body := s.get("/lectures/"+id+"/enrollments.csv", "operator"); down == "database" && (status != 503 || !strings.Contains(body, "UNAVAILABLE")) {
				t.Errorf("the roster: %d %s", status, body)
			}
			status, body := s.get("/readyz", "")
			if status != 503 || !strings.Contains(body, down) {
				t.Errorf("/readyz: %d %s", status, body)
			}
			checkDiscreet(t, "/readyz", body)

			proxies[down].Heal()
			s.awaitReady()
			// The ticket is still there: an outage costs nobody theirs.
			testenv.Eventually(t, 20*time.Second, func() bool {
				return s.ask("kim", `mutation{enroll(lectureId:"`+id+`"){status}}`).at("enroll.status") != nil
			}, "an answer to enroll")
			if a := s.must("kim", `{receipt(lectureId:"`+id+`"){number}}`); a.at("receipt.number") != 1.0 {
				t.Errorf("after the outage: %v", a.Data)
			}
			s.checkInvariants()
		})
	}
}

// TestWhatWasDecidedIsAnswered though the line cannot be asked: an error would
// look as if it had not been, and to ask again would answer something else.
func TestWhatWasDecidedIsAnswered(t *testing.T) {
	redisURL := testenv.Redis(t)
	line := testenv.NewProxy(t, addressIn(redisURL))
	s := start(t, env{"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": through(t, redisURL, line)})
	s.awaitReady()
	id := s.newLecture(`capacity:2`)
	s.mustEnroll("kim", id)
	s.mustEnroll("lee", id)
	const all = `{number cancelledAt lecture{seatsLeft lineState waiting}}`
	for state, fail := range map[string]func(){"away": line.Refuse, "silent": line.Stall} {
		t.Run(state, func(t *testing.T) {
			fail()
			if a := s.must("operator", `mutation{createLecture(input:{title:"x",capacity:1}){id lineState waiting}}`); a.at("createLecture.lineState") != "OPEN" {
				t.Errorf("created: %v", a.Data)
			}
			mutation, user := `mutation{cancelEnrollment(lectureId:"`+id+`")`+all+`}`, "kim"
			if state == "silent" {
				mutation, user = `mutation{cancelEnrollment:removeEnrollment(lectureId:"`+id+`",userKey:"lee")`+all+`}`, "operator"
			}
			if a := s.must(user, mutation); a.at("cancelEnrollment.cancelledAt") == nil || a.at("cancelEnrollment.lecture.lineState") != "OPEN" {
				t.Errorf("cancelled: %v", a.Data)
			}
			line.Heal()
			s.awaitReady()
		})
	}
	s.checkInvariants()
}

// checkDiscreet looks for words that must not leave the server.
func checkDiscreet(t *testing.T, where, said string) {
	t.Helper()
	for _, word := range []string{"127.0.0.1", "dial", "tcp", "pgx", "postgres", "SQL", "EOF", "redis:", "connection", "ent:", "goroutine", "context", "seatline/", "driver"} {
		if strings.Contains(said, word) {
			t.Errorf("%s tells %q: %s", where, word, said)
		}
	}
}

func TestABrokenSchemaIsInternal(t *testing.T) {
	databaseURL := testenv.Postgres(t)
	s := start(t, env{"DATABASE_URL": databaseURL, "REDIS_URL": testenv.Redis(t)})
	s.awaitReady()
	id := s.newLecture(`capacity:3`)
	_, db, shut, err := registrar.OpenPostgres(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer shut()
	if _, err := db.ExecContext(t.Context(), `ALTER TABLE enrollments RENAME COLUMN user_key TO somebody`); err != nil {
		t.Fatal(err)
	}
	a, body := s.askRaw("kim", `{receipt(lectureId:"`+id+`"){number}}`)
	requestID, _ := a.Errors[0].Extensions["requestId"].(string)
	if a.code() != "INTERNAL" || requestID == "" {
		t.Errorf("%s", body)
	}
	for _, word := range []string{"user_key", "SQLSTATE", "42703", "enrollments", "ent:"} {
		if strings.Contains(body, word) {
			t.Errorf("%q is told: %s", word, body)
		}
	}
	lines := 0
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, requestID) {
			lines++
			if !strings.Contains(line, "user_key") {
				t.Errorf("the log does not say what it was: %s", line)
			}
		}
	}
	if lines != 1 {
		t.Errorf("logged %d times", lines)
	}
}

func TestAStopUnderLoadLeavesNothingHalfDone(t *testing.T) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			settings := backend(t)
			if name == "embedded" {
				settings["DATA_DIR"] = t.TempDir()
			}
			s := start(t, settings)
			s.awaitReady()
			const students, watchers = 60, 40
			id := s.newLecture(fmt.Sprintf(`capacity:%d,settings:{admitPerSecond:10000,burst:10000}`, students))
			for i := range students {
				s.must(fmt.Sprint("student-", i), `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
			}
			for i := range students {
				s.awaitStatus(fmt.Sprint("student-", i), id, "ADMITTED")
			}
			var open []*stream
			for i := range watchers {
				names := []string{"graphql-transport-ws", "graphql-ws", "sse"}
				open = append(open, transports[names[i%3]](s, fmt.Sprint("watcher-", i), fmt.Sprintf(watched, id)))
			}
			for _, stream := range open {
				stream.untilStatus("NOT_QUEUED")
			}

			var enrolled, refused sync.Map
			var all sync.WaitGroup
			begun := make(chan struct{}, students)
			for i := range students {
				user := fmt.Sprint("student-", i)
				authorization := bearer(t, user)
				all.Go(func() {
					begun <- struct{}{}
					status, body, err := s.post(authorization, `mutation{enroll(lectureId:"`+id+`"){status receipt{number}}}`)
					switch {
					case err != nil || status == 503: // came too late: nothing was done
						refused.Store(user, body)
					case strings.Contains(body, `"ENROLLED"`):
						enrolled.Store(user, true)
					case strings.Contains(body, `"UNAVAILABLE"`):
						refused.Store(user, body)
					default:
						t.Errorf("%s: %d %s", user, status, body)
					}
				})
			}
			for range students / 2 {
				<-begun
			}
			stopped := time.Now()
			if err := s.stop(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if took := time.Since(stopped); took > 10*time.Second {
				t.Errorf("the stop took %v", took)
			}
			all.Wait()
			for i, stream := range open {
				for e := range stream.events {
					if i%3 < 2 && e.end != "" && !strings.Contains(e.end, "1012") {
						t.Errorf("a socket ended with %q", e.end)
					}
				}
			}

			if name == "embedded" {
				settings = env{"DATA_DIR": settings["DATA_DIR"]}
			}
			again := start(t, settings)
			again.awaitReady()
			again.checkInvariants()
			enrolled.Range(func(user, _ any) bool {
				if a := again.must(user.(string), `{receipt(lectureId:"`+id+`"){number}}`); a.at("receipt.number") == nil {
					t.Errorf("%v was told to be enrolled, and is not", user)
				}
				return true
			})
		})
	}
}

func TestASecondStopFindsNothingLeft(t *testing.T) {
	s := start(t)
	s.awaitReady()
	if err := errors.Join(s.stop(), s.stop()); err != nil {
		t.Error(err)
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.do(r); err == nil {
		t.Error("it still answers")
	}
}

func TestAPageOfLecturesCostsTheSameHoweverLongItIs(t *testing.T) {
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	database, redis := testenv.NewProxy(t, addressIn(databaseURL)), testenv.NewProxy(t, addressIn(redisURL))
	s := start(t, env{"DATABASE_URL": through(t, databaseURL, database), "REDIS_URL": through(t, redisURL, redis), "TICK": "1m"})
	s.awaitReady()
	for range 40 {
		s.newLecture(`capacity:1`)
	}
	var sql, commands atomic.Int64
	count := func(n *atomic.Int64) func(*testenv.Chunk) testenv.Verdict {
		return func(c *testenv.Chunk) testenv.Verdict {
			if c.ToServer {
				n.Add(1)
			}
			return testenv.Pass
		}
	}
	database.Intercept(count(&sql))
	redis.Intercept(count(&commands))
	// The background asks now and then, too, so the least of some tries counts.
	least := func(first int) (fewestSQL, fewestCommands int64) {
		fewestSQL, fewestCommands = 1000, 1000
		for range 12 {
			sql.Store(0)
			commands.Store(0)
			a := s.must("", fmt.Sprintf(`{lectures(first:%d){totalCount nodes{id title seatsLeft lineState waiting settings{burst}} edges{node{waiting}}}}`, first))
			if n := len(a.at("lectures.nodes").([]any)); n != first {
				t.Fatalf("%d lectures", n)
			}
			fewestSQL, fewestCommands = min(fewestSQL, sql.Load()), min(fewestCommands, commands.Load())
		}
		return fewestSQL, fewestCommands
	}
	oneSQL, oneCommand := least(1)
	manySQL, manyCommands := least(40)
	if oneSQL < 1 || manySQL > 2 || oneCommand < 1 || manyCommands > 2*oneCommand {
		t.Errorf("one lecture costs %d and %d round trips to the database and to redis, forty cost %d and %d", oneSQL, oneCommand, manySQL, manyCommands)
	}
}

func TestASlowBodyIsNotWaitedFor(t *testing.T) {
	s := start(t, env{"READ_TIMEOUT": "1s"})
	s.awaitReady()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	b, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 408") {
		t.Errorf("%q, %v", b, err)
	}
	_, body, _ := strings.Cut(string(b), "\r\n\r\n")
	var a answer
	if err := json.Unmarshal([]byte(body), &a); err != nil || len(a.Errors) != 1 {
		t.Errorf("%s", body)
	}
}
