package main

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/registrar"
	"seatline/internal/testenv"
)

// openDatabase is a connection past the program, as an operator with psql has.
func openDatabase(t *testing.T, url string) *sql.DB {
	t.Helper()
	_, db, shut, err := registrar.OpenPostgres(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shut)
	return db
}

func execute(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func openRedis(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// TestADatabaseThatLostACommit: whoever was enrolled by it is free to join again,
// though the line has a mark of a version that the database does not know.
func TestADatabaseThatLostACommit(t *testing.T) {
	databaseURL := testenv.Postgres(t)
	s := start(t, env{"DATABASE_URL": databaseURL, "REDIS_URL": testenv.Redis(t)})
	s.awaitReady()
	db := openDatabase(t, databaseURL)
	id := s.newLecture(`capacity:1`)
	s.mustEnroll("kim", id)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`DELETE FROM enrollments WHERE lecture_id::text = $1`,
		`UPDATE lectures SET enrolled_count = 0, last_number = 0, seat_version = seat_version - 1 WHERE id::text = $1`,
	} {
		if _, err := tx.ExecContext(t.Context(), statement, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 20*time.Second, func() bool {
		return s.ask("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`).at("joinQueue.status") == "ADMITTED"
	}, "a place in line again")
	s.mustEnroll("kim", id)
	s.checkInvariants()
}

func TestTheDatabaseDecidesWhoIsEnrolled(t *testing.T) {
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	s := start(t, env{"DATABASE_URL": databaseURL, "REDIS_URL": redisURL})
	s.awaitReady()
	db, rdb := openDatabase(t, databaseURL), openRedis(t, redisURL)
	id := s.newLecture(`capacity:5`)
	takeAway := func(user string) {
		t.Helper()
		execute(t, db, `UPDATE enrollments SET cancelled_at = now() WHERE user_key = $1`, user)
		execute(t, db, `UPDATE lectures SET enrolled_count = enrolled_count - 1, seat_version = seat_version + 1 WHERE id::text = $1`, id)
	}

	// A marker whose enrolment was taken away in SQL is not believed: not by a
	// query, not by a subscription, not by join.
	for _, way := range []string{"query", "subscription", "join"} {
		s.mustEnroll(way, id)
		takeAway(way)
		if n := rdb.ZScore(t.Context(), "enrolled:lecture:{"+id+"}", way).Val(); n == 0 {
			t.Fatal("there is no marker to mistrust")
		}
		switch way {
		case "query":
			if a := s.must(way, `{queuePosition(lectureId:"`+id+`"){status receipt{number}}}`); a.at("queuePosition.status") != "NOT_QUEUED" || a.at("queuePosition.receipt") != nil {
				t.Errorf("query: %v", a.Data)
			}
		case "subscription":
			stream := transports["graphql-transport-ws"](s, way, fmt.Sprintf(watched, id))
			stream.until("the first event", func(e event) bool {
				if e.at("queuePosition.status") != "NOT_QUEUED" {
					t.Errorf("subscription: %+v", e)
				}
				return true
			})
			// The stream goes on: the story is not over.
			s.must(way, `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
			stream.untilStatus("ADMITTED")
			s.must(way, `mutation{leaveQueue(lectureId:"`+id+`"){status}}`)
			stream.untilStatus("NOT_QUEUED")
			stream.close()
		case "join":
			if a := s.must(way, `mutation{joinQueue(lectureId:"`+id+`"){status}}`); a.at("joinQueue.status") != "WAITING" && a.at("joinQueue.status") != "ADMITTED" {
				t.Errorf("join: %v", a.Data)
			}
		}
	}

	// And a row counts without its marker.
	s.mustEnroll("kim", id)
	if err := rdb.ZRem(t.Context(), "enrolled:lecture:{"+id+"}", "kim").Err(); err != nil {
		t.Fatal(err)
	}
	for query, at := range map[string]string{
		`{queuePosition(lectureId:"` + id + `"){status}}`:      "queuePosition.status",
		`mutation{joinQueue(lectureId:"` + id + `"){status}}`:  "joinQueue.status",
		`mutation{leaveQueue(lectureId:"` + id + `"){status}}`: "leaveQueue.status",
	} {
		if a := s.must("kim", query); a.at(at) != "ENROLLED" {
			t.Errorf("%s: %v", query, a.Data)
		}
	}
	stream := transports["sse"](s, "kim", fmt.Sprintf(watched, id))
	stream.untilStatus("ENROLLED")
	stream.completed()
	s.checkInvariants()
}

func TestAWatcherLearnsOfTheirSeatAfterAnOutage(t *testing.T) {
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	proxy := testenv.NewProxy(t, addressIn(databaseURL))
	cut := start(t, env{"DATABASE_URL": through(t, databaseURL, proxy), "REDIS_URL": redisURL})
	whole := spawn(t, env{"DATABASE_URL": databaseURL, "REDIS_URL": redisURL})
	cut.awaitReady()
	id := whole.newLecture(`capacity:1`)
	stream := transports["graphql-transport-ws"](cut, "kim", fmt.Sprintf(watched, id))
	stream.untilStatus("NOT_QUEUED")
	whole.must("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
	stream.untilStatus("ADMITTED")

	proxy.Refuse()
	whole.must("kim", `mutation{enroll(lectureId:"`+id+`"){status}}`)
	select {
	case e := <-stream.events:
		// What the line alone says is no seat: only a row is.
		if e.at("queuePosition.status") == "ENROLLED" || e.end != "" {
			t.Fatalf("without the database: %+v", e)
		}
	case <-time.After(1500 * time.Millisecond):
	}
	proxy.Heal()
	if e := stream.untilStatus("ENROLLED"); e.at("queuePosition.receipt.number") != 1.0 {
		t.Errorf("after the outage: %v", e.Data)
	}
	stream.completed()
}

func TestALectureThatIsDeletedEndsItsStreams(t *testing.T) {
	databaseURL := testenv.Postgres(t)
	s := start(t, env{"DATABASE_URL": databaseURL, "REDIS_URL": testenv.Redis(t)})
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	var open []*stream
	for _, subscribe := range transports {
		open = append(open, subscribe(s, "kim", fmt.Sprintf(watched, id)))
	}
	for _, stream := range open {
		stream.untilStatus("NOT_QUEUED")
	}
	execute(t, openDatabase(t, databaseURL), `DELETE FROM lectures WHERE id::text = $1`, id)
	for _, stream := range open {
		e := stream.until("the end", func(e event) bool { return e.end != "" || len(e.Errors) > 0 })
		if e.code() != "NOT_FOUND" {
			t.Errorf("%+v", e)
		}
	}
	if a := s.ask("kim", `mutation{joinQueue(lectureId:"`+id+`"){status}}`); a.code() != "NOT_FOUND" {
		t.Errorf("%+v", a)
	}
}

func TestManyWatchersCostOneReadingOfTheRow(t *testing.T) {
	databaseURL := testenv.Postgres(t)
	proxy := testenv.NewProxy(t, addressIn(databaseURL))
	s := start(t, env{"DATABASE_URL": through(t, databaseURL, proxy), "REDIS_URL": testenv.Redis(t), "TICK": "200ms", "MAX_SUBSCRIPTIONS": "200"})
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	const watchers = 150
	var open []*stream
	for i := range watchers {
		open = append(open, transports["graphql-transport-ws"](s, fmt.Sprint("watcher-", i), fmt.Sprintf(watched, id)))
	}
	for _, stream := range open {
		stream.untilStatus("NOT_QUEUED")
	}
	statements := make(chan struct{}, 10_000)
	proxy.Intercept(func(c *testenv.Chunk) testenv.Verdict {
		if c.ToServer {
			statements <- struct{}{}
		}
		return testenv.Pass
	})
	s.must("operator", `mutation{updateLecture(id:"`+id+`",input:{title:"changed",settings:{message:"m"}}){id}}`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, stream := range open {
		stream.until("the change", func(e event) bool { return e.at("queuePosition.lecture.title") == "changed" || ctx.Err() != nil })
	}
	if n := len(statements); n > watchers/3 {
		t.Errorf("%d round trips to the database for %d watchers", n, watchers)
	}
}
