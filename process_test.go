package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/registrar"
	"seatline/internal/testenv"
)

// asProgram makes the test binary be the program instead.
const asProgram = "SEATLINE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if os.Getenv(figuresOnStdin) != "" {
			go answerFigures()
		}
		main()
		return
	}
	os.Exit(m.Run())
}

// process is the whole program in a process of its own, which a test may kill.
type process struct {
	*instance
	cmd      *exec.Cmd
	exited   chan error
	asked    io.Writer     // to ask for figures, see figuresOnStdin
	answered *json.Decoder // and what it answers
}

// spawn starts the program as a process and waits until it is ready.
func spawn(t testing.TB, settings env) *process {
	t.Helper()
	p := &process{
		instance: &instance{
			t: t, log: &logBuffer{},
			client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}, Timeout: 30 * time.Second},
		},
		exited: make(chan error, 1),
	}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	p.cmd.Env = append(os.Environ(), asProgram+"=1", "ADDR=127.0.0.1:0", "JWT_SECRET="+secret, "TICK=50ms")
	for k, v := range hurried {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	for k, v := range settings {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Stderr = p.log
	if settings[figuresOnStdin] != "" {
		p.pipe()
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	t.Cleanup(func() {
		p.kill()
		p.client.CloseIdleConnections()
		if t.Failed() {
			t.Logf("log of process %d:\n%s", p.cmd.Process.Pid, p.log)
		}
	})
	testenv.Eventually(t, 30*time.Second, func() bool {
		_, rest, found := strings.Cut(p.log.String(), "msg=listening addr=")
		addr, _, whole := strings.Cut(rest, "\n")
		p.url = "http://" + addr
		return found && whole
	}, "the process listens")
	p.awaitReady()
	return p
}

// pipe lets the test ask the process for its figures.
func (p *process) pipe() {
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		read.Close()
		write.Close()
	})
	p.cmd.ExtraFiles = []*os.File{write}
	p.asked, p.answered = stdin, json.NewDecoder(read)
}

// kill ends the process as a crash would, if it still runs.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // may have ended already
	p.exited <- <-p.exited
}

// terminate asks the process to end and returns how it did.
func (p *process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.exited:
		p.exited <- err
		return err
	case <-time.After(30 * time.Second):
		return fmt.Errorf("still running 30 s after SIGTERM")
	}
}

// eager are settings of a line whose rate is never in the way, and which lets
// in twice as many as there are seats, so that people race for them.
const eager = `settings:{admitPerSecond:10000,burst:10000,ticketTtlSeconds:600,overbookPercent:200}`

// race lets callers, spread over the servers, go for the seats of one new
// lecture after another, and counts what they were told.
func race(t *testing.T, servers []*instance, callers, capacity, rounds int) {
	t.Helper()
	for round := range rounds {
		id := servers[0].newLecture(fmt.Sprintf(`capacity:%d,%s`, capacity, eager))
		var told atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				user := fmt.Sprintf("caller-%d", i)
				for told.Load() < int64(capacity) {
					joining, enrolling := servers[i%len(servers)], servers[(i+round)%len(servers)]
					switch goFor(joining, enrolling, user, id) {
					case "ENROLLED":
						told.Add(1)
						return
					case "SOLD_OUT":
						return
					}
				}
			})
		}
		wg.Wait()
		roster := servers[0].must("operator", `{enrollments(lectureId:"`+id+`",first:100){totalCount} lecture(id:"`+id+`"){enrolledCount}}`)
		rows, count := roster.at("enrollments.totalCount").(float64), roster.at("lecture.enrolledCount").(float64)
		if int(rows) != capacity || int(count) != capacity || int(told.Load()) != capacity {
			t.Fatalf("round %d: %d callers for %d seats: %v rows, %v counted, %d told so", round, callers, capacity, rows, count, told.Load())
		}
	}
}

// goFor joins and enrols, and returns the status of that. A server that is too
// busy to answer says so, and is asked again.
func goFor(joining, enrolling *instance, user, id string) (status string) {
	for _, call := range []struct {
		on    *instance
		field string
	}{{joining, "joinQueue"}, {enrolling, "enroll"}} {
		query := `mutation{` + call.field + `(lectureId:"` + id + `"){status}}`
		_, body, err := call.on.post(bearer(call.on.t, user), query)
		var a answer
		if err == nil {
			err = json.Unmarshal([]byte(body), &a)
		}
		if err != nil || len(a.Errors) > 0 {
			if a.code() != "UNAVAILABLE" {
				call.on.t.Errorf("%s as %s: %s, %v", query, user, body, err)
			}
			return ""
		}
		status, _ = a.at(call.field + ".status").(string)
	}
	return status
}

// TestRaceOnThreeProcesses: never oversold, whoever asks wherever.
func TestRaceOnThreeProcesses(t *testing.T) {
	stores := backends["postgres and redis"](t)
	var servers []*instance
	for range 3 {
		servers = append(servers, spawn(t, stores).instance)
	}
	for _, capacity := range []int{1, 50} {
		t.Run(fmt.Sprint(capacity, " seats"), func(t *testing.T) { race(t, servers, 100, capacity, 20) })
	}
}

// TestRaceEmbedded is the same on the embedded default, which is one process.
func TestRaceEmbedded(t *testing.T) {
	s := start(t)
	s.awaitReady()
	for _, capacity := range []int{1, 50} {
		t.Run(fmt.Sprint(capacity, " seats"), func(t *testing.T) { race(t, []*instance{s}, 100, capacity, 20) })
	}
}

// lockRow holds a lecture's row until the function it returns is called.
func lockRow(t *testing.T, stores env, id string) (unlock func()) {
	t.Helper()
	_, db, shut, err := registrar.OpenPostgres(t.Context(), stores["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() {
		_ = tx.Rollback()
		shut()
	})
	t.Cleanup(unlock)
	if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM lectures WHERE id = $1 FOR UPDATE", id); err != nil {
		t.Fatal(err)
	}
	return unlock
}

// awaitMembers waits until a sorted set of Redis has so many members.
func awaitMembers(t *testing.T, stores env, key string, n int64) {
	t.Helper()
	options, err := redis.ParseURL(stores["REDIS_URL"])
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	testenv.Eventually(t, 40*time.Second, func() bool { return rdb.ZCard(t.Context(), key).Val() == n }, key+" never has the members awaited")
}

// TestKilledBetweenClaimAndCommit: a process dies with an enrolment in flight.
// Neither the ticket nor the seat is lost.
func TestKilledBetweenClaimAndCommit(t *testing.T) {
	stores := backends["postgres and redis"](t)
	doomed, other := spawn(t, stores), spawn(t, stores)
	id := other.newLecture(`capacity:1,settings:{ticketTtlSeconds:600}`)
	before := other.must("ann", `mutation{joinQueue(lectureId:"`+id+`"){status ticketExpiresAt}}`)
	if before.at("joinQueue.status") != "ADMITTED" {
		t.Fatalf("joins: %+v", before)
	}

	unlock := lockRow(t, stores, id)
	var enrolling sync.WaitGroup
	enrolling.Go(func() {
		if status, body, err := doomed.post(bearer(t, "ann"), `mutation{enroll(lectureId:"`+id+`"){status}}`); err == nil {
			t.Errorf("the killed process answered: %d %s", status, body)
		}
	})
	awaitMembers(t, stores, "claims:lecture:{"+id+"}", 1)
	doomed.kill()
	enrolling.Wait()
	unlock()

	if got := other.must("ann", `{queuePosition(lectureId:"`+id+`"){status}}`).at("queuePosition.status"); got != "ADMITTED" {
		t.Errorf("while nobody knows yet: %v", got)
	}
	awaitMembers(t, stores, "tickets:lecture:{"+id+"}", 1)
	after := other.must("ann", `{queuePosition(lectureId:"`+id+`"){status ticketExpiresAt}}`)
	if after.at("queuePosition.ticketExpiresAt") != before.at("joinQueue.ticketExpiresAt") {
		t.Errorf("the ticket came back as %v, was %v", after.Data, before.Data)
	}
	other.mustEnroll("ann", id)
	other.checkInvariants()
}

// TestKilledAgainAndAgain: students keep asking, processes keep dying. In the
// end every seat is taken once, and everybody else still has a place.
func TestKilledAgainAndAgain(t *testing.T) {
	stores := backends["postgres and redis"](t)
	steady := spawn(t, stores)
	const students, seats, kills = 40, 30, 4
	id := steady.newLecture(fmt.Sprintf(`capacity:%d,settings:{admitPerSecond:20,burst:1,ticketTtlSeconds:600}`, seats))

	var mu sync.Mutex
	mortal := spawn(t, stores)
	server := func() *process {
		mu.Lock()
		defer mu.Unlock()
		if rand.IntN(2) == 0 {
			return steady
		}
		return mortal
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	var seated atomic.Int64
	var wg sync.WaitGroup
	for i := range students {
		wg.Go(func() {
			user := fmt.Sprintf("student-%d", i)
			for ctx.Err() == nil && seated.Load() < seats {
				// Errors are what a dying process gives; asking again is safe.
				_, body, err := server().post(bearer(t, user), `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
				if err == nil && strings.Contains(body, `"ADMITTED"`) {
					_, body, err = server().post(bearer(t, user), `mutation{enroll(lectureId:"`+id+`"){status}}`)
				}
				if err == nil && (strings.Contains(body, `"ENROLLED"`) || strings.Contains(body, `"ALREADY_ENROLLED"`)) {
					seated.Add(1)
					return
				}
				<-time.After(time.Duration(20+rand.IntN(60)) * time.Millisecond)
			}
		})
	}
	for range kills {
		<-time.After(time.Duration(100+rand.IntN(500)) * time.Millisecond)
		mortal.kill()
		reborn := spawn(t, stores)
		mu.Lock()
		mortal = reborn
		mu.Unlock()
	}
	wg.Wait()
	if n := seated.Load(); n != seats {
		t.Errorf("%d of %d seats taken", n, seats)
	}
	for i := range students {
		user := fmt.Sprintf("student-%d", i)
		switch status := steady.must(user, `{queuePosition(lectureId:"`+id+`"){status}}`).at("queuePosition.status"); status {
		case "ENROLLED", "WAITING":
		default:
			t.Errorf("%s reads %v", user, status)
		}
	}
	steady.checkInvariants()
}

// TestTerminatedUnderLoad: on SIGTERM what was begun is finished, sockets are
// told to come back later, newcomers are refused, and the process ends well, soon.
func TestTerminatedUnderLoad(t *testing.T) {
	stores := backends["postgres and redis"](t)
	s, other := spawn(t, stores), spawn(t, stores)
	const enrolling, watching = 20, 40
	id := s.newLecture(fmt.Sprintf(`capacity:%d,settings:{admitPerSecond:10000,burst:10000,ticketTtlSeconds:600}`, enrolling))
	for i := range enrolling {
		s.must(fmt.Sprintf("student-%d", i), `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
	}
	var streams []*stream
	for i := range watching {
		w := s.socket("graphql-transport-ws", "subscribe", fmt.Sprintf("watcher-%d", i), `subscription{queuePosition(lectureId:"`+id+`"){status}}`)
		w.until("the first event", func(event) bool { return true })
		streams = append(streams, w)
	}
	unlock := lockRow(t, stores, id)
	var wg sync.WaitGroup
	for i := range enrolling {
		wg.Go(func() {
			_, body, err := s.post(bearer(t, fmt.Sprintf("student-%d", i)), `mutation{enroll(lectureId:"`+id+`"){status}}`)
			if err != nil || !strings.Contains(body, `"ENROLLED"`) {
				t.Errorf("an enrolment in flight ended with %s, %v", body, err)
			}
		})
	}
	awaitMembers(t, stores, "claims:lecture:{"+id+"}", enrolling)
	begun := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.terminate() }()
	for i, w := range streams {
		if e := w.until("the end", func(e event) bool { return e.end != "" }); !strings.Contains(e.end, "1012") {
			t.Errorf("a socket ended with %q, want 1012", e.end)
		}
		if i > 0 {
			continue
		}
		if _, status, _ := s.dial("graphql-transport-ws", nil); status != http.StatusServiceUnavailable {
			t.Errorf("a newcomer's socket gets %d while enrolments are in flight", status)
		}
		if status, _, err := s.post(bearer(t, "newcomer"), `{viewer{userKey}}`); err != nil || status != http.StatusServiceUnavailable {
			t.Errorf("a newcomer's request gets %d, %v", status, err)
		}
	}
	unlock() // what was in flight can go on only now
	wg.Wait()
	if err := <-ended; err != nil {
		t.Errorf("the process ended with %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("ending took %v", took)
	}
	if rows := other.must("operator", `{enrollments(lectureId:"`+id+`",first:100){totalCount}}`).at("enrollments.totalCount"); rows != float64(enrolling) {
		t.Errorf("%v rows of %d", rows, enrolling)
	}
	other.checkInvariants()
}
