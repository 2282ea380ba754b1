package testenv

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// Postgres returns the URL of a fresh, empty database of the test's own, on the
// PostgreSQL of this test process or at TEST_DATABASE_URL. It is dropped when
// the test ends, whoever is still connected to it.
func Postgres(tb testing.TB) string {
	tb.Helper()
	server := os.Getenv("TEST_DATABASE_URL")
	if server == "" {
		server = env.postgres.get(tb, func() (*Server, error) { return launchPostgres(nil) }).URL
	}
	u, err := url.Parse(server)
	if err != nil {
		// The parse error would repeat the URL with its password.
		tb.Fatal("testenv: TEST_DATABASE_URL is not a postgres:// URL")
	}
	name := randomName("seatline_test_")
	administer(tb, server, "CREATE DATABASE "+name+" TEMPLATE template0")
	tb.Cleanup(func() { administer(tb, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// StartPostgres starts a PostgreSQL of the test's own with an empty database.
// Settings are like "lock_timeout=2s".
func StartPostgres(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	s, err := launchPostgres(settings)
	if err != nil {
		tb.Fatal(err)
	}
	return s.own(tb)
}

// administer runs one statement on a connection of its own.
func administer(tb testing.TB, server, statement string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		tb.Fatalf("testenv: PostgreSQL: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		tb.Fatalf("testenv: PostgreSQL: %s: %v", statement, err)
	}
}

// postgres is the kind of a PostgreSQL server.
type postgres struct {
	bin      string // folder of initdb and postgres
	owner    *syscall.Credential
	settings []string
}

func launchPostgres(settings []string) (*Server, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	owner, err := postgresOwner()
	if err != nil {
		return nil, err
	}
	p := postgres{bin: bin, owner: owner, settings: settings}
	return launch("postgres", p, p.initdb)
}

// postgresBin finds the newest PostgreSQL: Debian keeps its programs out of
// PATH, one folder a version.
func postgresBin() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	version := func(initdb string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
		return n
	}
	if len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
		return filepath.Dir(newest), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("testenv: PostgreSQL's initdb is neither in /usr/lib/postgresql nor in PATH: %s; or set TEST_DATABASE_URL", setupHint)
	}
	return filepath.Dir(initdb), nil
}

// postgresOwner is who must run PostgreSQL, which refuses to run as root: nil
// for the user of the tests.
func postgresOwner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("testenv: PostgreSQL does not run as root, and there is no user postgres (%w): %s", err, setupHint)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// run is a program of PostgreSQL's, as its owner.
func (p postgres) run(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), filepath.Join(p.bin, program), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner}
	// Only what it needs: PG* variables of whoever runs the tests are not for it.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TZ=UTC"}
	return cmd
}

func (p postgres) initdb(dir string) error {
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if p.owner != nil {
		if err := os.Chown(data, int(p.owner.Uid), int(p.owner.Gid)); err != nil {
			return err
		}
	}
	cmd := p.run("initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("testenv: initdb: %w\n%s", err, out)
	}
	return nil
}

// command starts a small server that keeps its promises: fsync stays on, because
// what a commit costs and guarantees is part of what is tested.
func (p postgres) command(dir string, port int) *exec.Cmd {
	args := []string{"-D", filepath.Join(dir, "data")}
	settings := append([]string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=",
		// Dynamic shared memory in the data folder goes with it, whatever
		// way the server ends.
		"dynamic_shared_memory_type=mmap",
		"shared_buffers=32MB",
		"max_wal_size=256MB",
		"max_connections=300",
	}, p.settings...)
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return p.run("postgres", args...)
}

// ready asks the file in which the server keeps its state, as pg_ctl does.
func (p postgres) ready(dir string, _, pid int) bool {
	state := p.state(dir)
	return len(state) > 7 && state[0] == strconv.Itoa(pid) && strings.TrimSpace(state[7]) == "ready"
}

// state is the lines of postmaster.pid: pid, data folder, start time, port,
// socket folder, address, shared memory key and id, status.
func (p postgres) state(dir string) []string {
	file, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(file), "\n")
}

func (p postgres) url(port int) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
}

// quit is PostgreSQL's immediate shutdown, which waits for no session.
func (p postgres) quit() syscall.Signal { return syscall.SIGQUIT }

// crashed removes the System V segment that marks the data folder as in use,
// which outlives a killed server.
func (p postgres) crashed(dir string) {
	state := p.state(dir)
	if len(state) < 7 {
		return
	}
	var key, id int
	if _, err := fmt.Sscan(state[6], &key, &id); err == nil {
		// It may be gone: removing it again is all that could fail.
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}
