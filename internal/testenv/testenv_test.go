package testenv

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openPostgres(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func openRedis(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func timeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func exec1(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestPostgresGivesEachCallAnEmptyDatabase(t *testing.T) {
	a, b := Postgres(t), Postgres(t)
	if a == b {
		t.Fatalf("both calls returned %s", a)
	}
	exec1(t, openPostgres(t, a), "CREATE TABLE seats (n int)")
	exec1(t, openPostgres(t, b), "CREATE TABLE seats (n int)")
	var fsync string
	if err := openPostgres(t, a).QueryRowContext(t.Context(), "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
		t.Errorf("fsync is %q, %v", fsync, err)
	}
}

func TestPostgresUsesTheServerThatTheVariableNames(t *testing.T) {
	s := StartPostgres(t)
	t.Setenv("TEST_DATABASE_URL", s.URL)
	url := Postgres(t)
	if url == s.URL || !strings.Contains(url, s.Addr) {
		t.Errorf("%s is not a database of its own at %s", url, s.Addr)
	}
	exec1(t, openPostgres(t, url), "CREATE TABLE seats (n int)")
}

func TestPostgresDropsTheDatabase(t *testing.T) {
	var url string
	t.Run("user", func(t *testing.T) {
		url = Postgres(t)
		exec1(t, openPostgres(t, url), "CREATE TABLE seats (n int)")
	})
	if err := openPostgres(t, url).PingContext(t.Context()); err == nil {
		t.Error("the database is still there after its test")
	}
}

func TestRedisGivesEachCallAnEmptyDatabase(t *testing.T) {
	if os.Getenv("TEST_REDIS_URL") != "" {
		t.Setenv("TEST_REDIS_URL", "")
	}
	a, b := Redis(t), Redis(t)
	if a == b {
		t.Fatalf("both calls returned %s", a)
	}
	ctx := timeout(t, 10*time.Second)
	if err := openRedis(t, a).Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := openRedis(t, b).DBSize(ctx).Result(); err != nil || n != 0 {
		t.Errorf("the second database has %d keys, %v", n, err)
	}
}

func TestRedisLendsWhatTheVariableNames(t *testing.T) {
	s := StartRedis(t)
	t.Setenv("TMPDIR", t.TempDir()) // for the locks
	one, two := s.URL, strings.TrimSuffix(s.URL, "0")+"1"
	t.Setenv("TEST_REDIS_URL", one+","+two)
	ctx := timeout(t, 10*time.Second)
	if err := openRedis(t, one).Set(ctx, "left over", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	a, b := Redis(t), Redis(t)
	if a != one || b != two {
		t.Fatalf("lent %s and %s", a, b)
	}
	if n, err := openRedis(t, a).DBSize(ctx).Result(); err != nil || n != 0 {
		t.Errorf("the lent database has %d keys, %v", n, err)
	}
}

func TestRedisClusterServesAllSlotsAndIsEmptied(t *testing.T) {
	ctx := timeout(t, 30*time.Second)
	for range 2 {
		urls := strings.Split(RedisCluster(t), ",")
		if len(urls) != 3 {
			t.Fatalf("%d nodes", len(urls))
		}
		var addrs []string
		for _, u := range urls {
			addrs = append(addrs, openRedis(t, u).Options().Addr)
		}
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
		defer c.Close()
		owners := map[string]bool{}
		for _, key := range []string{"{1}", "{2}", "{3}", "{4}", "{5}", "{6}", "{7}", "{8}"} {
			// Set only where it is not there: the first test's must be gone.
			if ok, err := c.SetNX(ctx, key, 1, 0).Result(); err != nil || !ok {
				t.Fatalf("%s: %v %v", key, ok, err)
			}
			node, err := c.MasterForKey(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			owners[node.Options().Addr] = true
		}
		if len(owners) != 3 {
			t.Errorf("the keys lie on %d nodes", len(owners))
		}
	}
}

func TestRedisServerFaults(t *testing.T) {
	s := StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	c := openRedis(t, s.URL)
	if err := c.Set(t.Context(), "place", "7", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := c.Get(timeout(t, 200*time.Millisecond), "place").Err(); err == nil {
		t.Error("a stopped server answered")
	}
	s.Cont()
	if got, err := c.Get(t.Context(), "place").Result(); err != nil || got != "7" {
		t.Errorf("after Cont: %q, %v", got, err)
	}
	before := s.Pid()
	s.Kill()
	if err := c.Get(t.Context(), "place").Err(); err == nil {
		t.Error("a killed server answered")
	}
	s.Restart()
	if s.Pid() == before {
		t.Error("the same process after Restart")
	}
	if got, err := c.Get(t.Context(), "place").Result(); err != nil || got != "7" {
		t.Errorf("after Restart: %q, %v", got, err)
	}
}

func TestPostgresServerFaults(t *testing.T) {
	s := StartPostgres(t, "lock_timeout=1234ms")
	db := openPostgres(t, s.URL)
	exec1(t, db, "CREATE TABLE seats AS SELECT 7 AS n")
	var got string
	if err := db.QueryRowContext(t.Context(), "SHOW lock_timeout").Scan(&got); err != nil || got != "1234ms" {
		t.Errorf("lock_timeout is %q, %v", got, err)
	}
	s.Stop()
	// The session that is open already must be stopped, too.
	if err := db.QueryRowContext(timeout(t, 200*time.Millisecond), "SELECT n FROM seats").Scan(&got); err == nil {
		t.Error("a stopped server answered")
	}
	s.Cont()
	if err := db.QueryRowContext(t.Context(), "SELECT n FROM seats").Scan(&got); err != nil || got != "7" {
		t.Errorf("after Cont: %q, %v", got, err)
	}
	s.Restart()
	if err := db.QueryRowContext(t.Context(), "SELECT n FROM seats").Scan(&got); err != nil || got != "7" {
		t.Errorf("after Restart: %q, %v", got, err)
	}
	s.Kill()
	if err := db.PingContext(timeout(t, 5*time.Second)); err == nil {
		t.Error("a killed server answered")
	}
}

// TestNothingIsLeftBehind runs this test binary again, lets it start servers,
// and kills it: then servers and folder must go.
func TestNothingIsLeftBehind(t *testing.T) {
	if os.Getenv("TESTENV_VICTIM") != "" {
		Postgres(t)
		Redis(t)
		StartRedis(t).Stop()
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	tmp := t.TempDir()
	for dir := tmp; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // for the user postgres
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNothingIsLeftBehind$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), "TESTENV_VICTIM=1", "TMPDIR="+tmp, "TEST_DATABASE_URL=", "TEST_REDIS_URL=")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the victim ended with %v\n%s", err, out)
	}
	var left []string
	if !poll(30*time.Second, func() bool {
		out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,stat=,args=").Output()
		if err != nil {
			t.Fatal(err)
		}
		left = left[:0]
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, tmp) {
				left = append(left, line)
			}
		}
		entries, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
		return len(left) == 0
	}) {
		t.Errorf("left behind: %q", left)
	}
}

func TestProxy(t *testing.T) {
	s := StartRedis(t)
	p := NewProxy(t, s.Addr)
	c := openRedis(t, "redis://"+p.Addr+"/0")
	short := 200 * time.Millisecond
	incr := func(d time.Duration) (int64, error) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return c.Incr(ctx, "n").Result()
	}
	want := func(what string, n int64) {
		t.Helper()
		if got, err := incr(10 * time.Second); err != nil || got != n {
			t.Errorf("%s: %d, %v; want %d", what, got, err, n)
		}
	}
	want("as it is", 1)

	p.SwallowReplies()
	if n, err := incr(short); err == nil {
		t.Errorf("a swallowed reply arrived: %d", n)
	}
	p.Heal()
	want("after a request whose reply was lost", 3)

	p.Cut()
	want("after a cut", 4)

	p.Refuse()
	if n, err := incr(10 * time.Second); err == nil {
		t.Errorf("refused, yet: %d", n)
	}
	p.Heal()
	want("after refusing", 5)

	p.Delay(50 * time.Millisecond)
	start := time.Now()
	want("delayed", 6)
	if took := time.Since(start); took < 100*time.Millisecond {
		t.Errorf("50 ms each way took %v", took)
	}

	p.Stall()
	if n, err := incr(short); err == nil {
		t.Errorf("stalled, yet: %d", n)
	}
	p.Heal()
	Eventually(t, 10*time.Second, func() bool {
		return openRedis(t, s.URL).Get(t.Context(), "n").Val() == "7"
	}, "what was stalled goes on")
	want("after a stall", 8)
}

func TestProxyIntercept(t *testing.T) {
	s := StartRedis(t)
	p := NewProxy(t, s.Addr)
	direct, c := openRedis(t, s.URL), openRedis(t, "redis://"+p.Addr+"/0")
	ctx := timeout(t, 20*time.Second)
	p.Intercept(func(chunk *Chunk) Verdict {
		switch {
		case chunk.ToServer && strings.Contains(string(chunk.Data), "cut"):
			return Cut
		case chunk.ToServer && strings.Contains(string(chunk.Data), "hang up"):
			chunk.HangUp()
		}
		return Pass
	})
	if err := c.Incr(ctx, "fine").Err(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"cut", "hang up"} {
		if err := c.Incr(ctx, key).Err(); err == nil {
			t.Errorf("%s: no error", key)
		}
	}
	Eventually(t, 10*time.Second, func() bool { return direct.Get(ctx, "hang up").Val() == "1" },
		"a request whose client hung up reaches the server")
	if n := direct.Exists(ctx, "cut").Val(); n != 0 {
		t.Error("a request that was cut reached the server")
	}
}

// TestEventuallyFails proves that the helper can fail a test.
func TestEventuallyFails(t *testing.T) {
	var r recorder
	done := make(chan struct{})
	go func() {
		defer close(done)
		Eventually(&r, 30*time.Millisecond, func() bool { return false }, "pigs fly")
	}()
	<-done
	if !strings.Contains(r.msg, "pigs fly") {
		t.Errorf("reported %q", r.msg)
	}
}

// recorder takes a fatal message down.
type recorder struct {
	testing.TB
	msg string
}

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.msg = strings.TrimSpace(format)
	for _, a := range args {
		if s, ok := a.(string); ok {
			r.msg += " " + s
		}
	}
}

func TestMissingBinaryIsFatalAndSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := launchRedis(nil); err == nil || !strings.Contains(err.Error(), "scripts/setup") {
		t.Errorf("got %v", err)
	}
}

func TestFreePortIsFree(t *testing.T) {
	for range 20 {
		port := freePort()
		if port < 1024 || port+10000 >= 32768 {
			t.Fatalf("port %d", port)
		}
		if !free(port) {
			t.Errorf("port %d is taken", port)
		}
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if free(l.Addr().(*net.TCPAddr).Port) {
		t.Error("a port that is listened on is called free")
	}
}
