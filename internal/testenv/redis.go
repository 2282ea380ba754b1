package testenv

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// databases is how many logical databases the shared Redis has. Each call of
// Redis takes one and none is used twice, so that what a test leaves running
// cannot write into the next one's.
const databases = 4096

// Redis returns the URL of an empty logical database of the test's own, on the
// Redis of this test process. Scripts and channels are the server's, not the
// database's: a test that flushes scripts needs StartRedis.
//
// With TEST_REDIS_URL set (one or several URLs with database numbers, separated
// by commas), one of those databases is flushed and lent to the test. Test
// processes take turns: each of them is used by one test at a time.
func Redis(tb testing.TB) string {
	tb.Helper()
	if list := os.Getenv("TEST_REDIS_URL"); list != "" {
		return borrowRedis(tb, strings.Split(list, ","))
	}
	r := env.redis.get(tb, func() (*redisDatabases, error) {
		s, err := launchRedis([]string{"--databases", strconv.Itoa(databases)})
		return &redisDatabases{server: s}, err
	})
	n := r.next.Add(1)
	if n >= databases {
		tb.Fatalf("testenv: this test process has used all %d Redis databases", databases)
	}
	return fmt.Sprintf("%s/%d", strings.TrimSuffix(r.server.URL, "/0"), n)
}

type redisDatabases struct {
	server *Server
	next   atomic.Int64
}

// StartRedis starts a Redis of the test's own; args are added to its command
// line, such as "--appendonly", "yes".
func StartRedis(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s, err := launchRedis(args)
	if err != nil {
		tb.Fatal(err)
	}
	return s.own(tb)
}

// borrowRedis takes whichever database no other test uses. The claim is a lock
// on a file, which the system lets go of when the process ends.
func borrowRedis(tb testing.TB, urls []string) string {
	tb.Helper()
	const within = 2 * time.Minute
	var got string
	if !poll(within, func() bool {
		for _, u := range urls {
			name := "seatline-" + url.QueryEscape(addressOf(tb, u)) + ".lock"
			lock, err := os.OpenFile(filepath.Join(os.TempDir(), name), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				tb.Fatal(err)
			}
			if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				tb.Cleanup(func() { lock.Close() })
				got = u
				return true
			}
			lock.Close()
		}
		return false
	}) {
		tb.Fatalf("testenv: no database of TEST_REDIS_URL was free within %v: list more of them, separated by commas", within)
	}
	withRedis(tb, got, func(ctx context.Context, c *redis.Client) error { return c.FlushDB(ctx).Err() })
	return got
}

// addressOf tells databases apart without their passwords.
func addressOf(tb testing.TB, redisURL string) string {
	tb.Helper()
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		tb.Fatal("testenv: TEST_REDIS_URL is not a list of redis:// URLs")
	}
	return o.Addr + "-" + strconv.Itoa(o.DB)
}

// withRedis runs one errand on a connection of its own.
func withRedis(tb testing.TB, redisURL string, do func(context.Context, *redis.Client) error) {
	tb.Helper()
	if err := onRedis(redisURL, do); err != nil {
		tb.Fatal(err)
	}
}

func onRedis(redisURL string, do func(context.Context, *redis.Client) error) error {
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		return fmt.Errorf("testenv: %w", err)
	}
	o.ContextTimeoutEnabled = true
	c := redis.NewClient(o)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := do(ctx, c); err != nil {
		return fmt.Errorf("testenv: Redis: %w", err)
	}
	return nil
}

// redisServer is the kind of a Redis server.
type redisServer struct {
	path string
	args []string
}

func launchRedis(args []string) (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("testenv: redis-server is not in PATH: %s; or set TEST_REDIS_URL", setupHint)
	}
	return launch("redis", redisServer{path, args}, func(string) error { return nil })
}

func (r redisServer) command(dir string, port int) *exec.Cmd {
	args := append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, r.args...)
	return exec.CommandContext(context.Background(), r.path, args...)
}

// ready asks the server for its process id: another one may answer at the port.
func (r redisServer) ready(_ string, port, pid int) bool {
	err := onRedis(r.url(port), func(ctx context.Context, c *redis.Client) error {
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
			return fmt.Errorf("another process answers")
		}
		return c.Ping(ctx).Err() // refused while an append-only file is being read
	})
	return err == nil
}

func (r redisServer) url(port int) string { return fmt.Sprintf("redis://127.0.0.1:%d/0", port) }

func (r redisServer) quit() syscall.Signal { return syscall.SIGTERM }

func (r redisServer) crashed(string) {}
