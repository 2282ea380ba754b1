package waitroom_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seatline/ent"
	"seatline/ent/enrollment"
	"seatline/internal/embedded"
	"seatline/internal/lecture"
	"seatline/internal/registrar"
	"seatline/internal/testenv"
	"seatline/internal/waitroom"
	"seatline/migrations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stores is one pair of real stores, which any number of instances may share.
type stores struct {
	rdb    redis.UniversalClient
	client *ent.Client
	db     *sql.DB
}

// onEvery runs one body on every pair of stores that Seatline supports.
func onEvery(t *testing.T, body func(t *testing.T, s stores)) {
	t.Helper()
	t.Run("miniredis+sqlite", func(t *testing.T) {
		t.Parallel()
		body(t, embeddedStores(t))
	})
	t.Run("redis+postgres", func(t *testing.T) {
		t.Parallel()
		body(t, stores{rdb: redisAt(t, testenv.Redis(t))}.withPostgres(t))
	})
	t.Run("cluster+postgres", func(t *testing.T) { // one cluster: not in parallel with itself
		body(t, stores{rdb: redisAt(t, testenv.RedisCluster(t))}.withPostgres(t))
	})
}

func embeddedStores(t *testing.T) stores {
	t.Helper()
	e, err := embedded.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return stores{rdb: e.Redis, client: e.Ent, db: e.DB}
}

func redisAt(t testing.TB, urls string) redis.UniversalClient {
	t.Helper()
	var o redis.UniversalOptions
	for url := range strings.SplitSeq(urls, ",") {
		one, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		o.Addrs, o.DB = append(o.Addrs, one.Addr), one.DB
	}
	o.ContextTimeoutEnabled = true
	rdb := redis.NewUniversalClient(&o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (s stores) withPostgres(t testing.TB) stores {
	t.Helper()
	return s.withPostgresAt(t, testenv.Postgres(t))
}

func (s stores) withPostgresAt(t testing.TB, url string) stores {
	t.Helper()
	client, db, shut, err := registrar.OpenPostgres(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shut)
	if err := migrations.Apply(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	s.client, s.db = client, db
	return s
}

// instance is one process of Seatline, without its edge.
type instance struct {
	*registrar.Registrar
	room *waitroom.Room
	stop func() // ends it and waits
}

const tick = 50 * time.Millisecond

// start runs an instance on the stores until the test ends or it is stopped.
func (s stores) start(t testing.TB, o waitroom.Options) *instance {
	t.Helper()
	seats := registrar.Open(s.client, registrar.Options{})
	return s.startWith(t, o, seats, seats)
}

// startWith lets a fault stand between the line and the seats.
func (s stores) startWith(t testing.TB, o waitroom.Options, seats *registrar.Seats, asked waitroom.Seats) *instance {
	t.Helper()
	if o.Tick == 0 {
		o.Tick = tick
	}
	o.PlaceKey = []byte("place key")
	room := waitroom.New(s.rdb, asked, o)
	in := &instance{Registrar: registrar.New(seats, room), room: room}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{room.Run, in.Run} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	in.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	t.Cleanup(in.stop)
	return in
}

// newLecture has seats and, unless change says otherwise, a rate that is never
// in the way.
func (in *instance) newLecture(t testing.TB, capacity int, change func(*registrar.NewLecture)) int {
	t.Helper()
	n := registrar.NewLecture{Title: "A lecture", Capacity: capacity, Settings: registrar.SettingsChange{
		AdmitPerSecond: registrar.Some(10000.0), Burst: registrar.Some(10000), TicketTTLSeconds: registrar.Some(60),
	}}
	if change != nil {
		change(&n)
	}
	l, err := in.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return l.ID
}

func (in *instance) join(t testing.TB, id int, users ...string) {
	t.Helper()
	for _, u := range users {
		if _, err := in.room.Join(t.Context(), id, u, ""); err != nil {
			t.Fatalf("%s joins: %v", u, err)
		}
	}
}

func (in *instance) place(t testing.TB, id int, user string) waitroom.Place {
	t.Helper()
	p, err := in.room.Place(t.Context(), id, user)
	if err != nil {
		t.Fatalf("place of %s: %v", user, err)
	}
	return p
}

func (in *instance) awaitStatus(t testing.TB, id int, user string, want waitroom.Status, within time.Duration) waitroom.Place {
	t.Helper()
	var p waitroom.Place
	testenv.Eventually(t, within, func() bool {
		p = in.place(t, id, user)
		return p.Status == want
	}, fmt.Sprintf("%s never reads %s", user, want))
	return p
}

func (in *instance) enroll(t testing.TB, id int, user string, want registrar.EnrollStatus) {
	t.Helper()
	got, err := in.Enroll(t.Context(), id, user)
	if err != nil || got.Status != want {
		t.Fatalf("%s enrols: %s, %v; want %s", user, got.Status, err, want)
	}
}

func people(n int) []string {
	users := make([]string, n)
	for i := range users {
		users[i] = "student-" + strconv.Itoa(i+1)
	}
	return users
}

// line is the raw state of a lecture's line.
type line struct {
	queue, tickets, claims, parked []string
	hash                           map[string]string
}

// line reads all of it at one instant: people move while the test looks.
func (s stores) line(t testing.TB, id int) line {
	t.Helper()
	tag := fmt.Sprintf("lecture:{%d}", id)
	var members [4]*redis.StringSliceCmd
	var hash *redis.MapStringStringCmd
	_, err := s.rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		for i, key := range []string{"queue:", "tickets:", "claims:", "parked:"} {
			members[i] = p.ZRange(t.Context(), key+tag, 0, -1)
		}
		hash = p.HGetAll(t.Context(), tag)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return line{members[0].Val(), members[1].Val(), members[2].Val(), members[3].Val(), hash.Val()}
}

// invariants are what holds at every instant, whatever happened.
func (s stores) invariants(t testing.TB, id int) {
	t.Helper()
	l, err := s.client.Lecture.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.client.Enrollment.Query().Where(enrollment.LectureID(id), enrollment.CancelledAtIsNil()).All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) > l.Capacity || l.EnrolledCount != len(rows) {
		t.Errorf("%d rows, enrolled_count %d, capacity %d", len(rows), l.EnrolledCount, l.Capacity)
	}
	have := map[string]int{}
	for _, row := range rows {
		have[row.UserKey]++
	}
	for user, n := range have {
		if n > 1 {
			t.Errorf("%s has %d active rows", user, n)
		}
	}
	state := s.line(t, id)
	where := map[string][]string{}
	for name, users := range map[string][]string{"queue": state.queue, "tickets": state.tickets, "claims": state.claims, "parked": state.parked} {
		for _, user := range users {
			where[user] = append(where[user], name)
		}
	}
	for user, in := range where {
		if len(in) > 1 {
			t.Errorf("%s is in %v at once", user, in)
		}
		if have[user] > 0 && !slices.Contains(in, "claims") {
			t.Errorf("%s is enrolled and in %v", user, in)
		}
	}
}

// heldWithin asserts that no more is held than the free seats allow, at rest.
func (s stores) heldWithin(t testing.TB, id, free int) {
	t.Helper()
	l := s.line(t, id)
	if held := len(l.tickets) + len(l.claims); held > free {
		t.Errorf("%d seats held of %d free", held, free)
	}
}

// delayedSeats lets a test stand between two readings of the reconciler.
type delayedSeats struct {
	*registrar.Seats
	afterFacts func(ids []int)
}

func (d *delayedSeats) Facts(ctx context.Context, ids []int) ([]lecture.Facts, error) {
	facts, err := d.Seats.Facts(ctx, ids)
	if d.afterFacts != nil {
		d.afterFacts(ids)
	}
	return facts, err
}
