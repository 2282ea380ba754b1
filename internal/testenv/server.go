package testenv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startWithin bounds the start of a server, crash recovery included.
const startWithin = 60 * time.Second

var (
	// errEnded: the server ended instead of coming up. Its port may have been
	// taken between the choice and the start, so another one is worth a try.
	errEnded = errors.New("ended while starting")
	errSlow  = fmt.Errorf("not ready within %v", startWithin)
)

// kind is what differs between the programs that a Server can be.
type kind interface {
	// command is how the server is started in dir on port.
	command(dir string, port int) *exec.Cmd
	// ready reports whether the process answers; it must not be satisfied by
	// another process that has taken the port.
	ready(dir string, port, pid int) bool
	// url is what clients are given.
	url(port int) string
	// quit is the signal at which the server ends at once but in good order.
	quit() syscall.Signal
	// crashed removes what a killed server leaves outside of its folder.
	crashed(dir string)
}

// Server is a server process of a test's own. Its methods fail the test when
// they cannot do what they say. They are not for concurrent use.
type Server struct {
	URL  string // stays the same over restarts
	Addr string // host:port of the URL

	tb      testing.TB // nil for a server that the tests of a process share
	kind    kind
	dir     string
	pidFile string
	port    int
	cmd     *exec.Cmd // nil while killed
}

// launch starts a server on a free port.
func launch(name string, k kind, prepare func(dir string) error) (*Server, error) {
	f := &env.folder
	f.Do(func() { f.value, f.err = newFolder() })
	if f.err != nil {
		return nil, f.err
	}
	name = randomName(name + "-")
	dir, err := f.value.sub(name)
	if err != nil {
		return nil, err
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	s := &Server{kind: k, dir: dir, pidFile: filepath.Join(f.value.path, name+".pid")}
	for range 10 {
		s.port = freePort()
		s.URL, s.Addr = k.url(s.port), net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		if err = s.start(); !errors.Is(err, errEnded) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("testenv: %s: %w\n%s", name, err, lastLines(s.log()))
	}
	return s, nil
}

// own makes a server the test's: it ends with the test.
func (s *Server) own(tb testing.TB) *Server {
	s.tb = tb
	tb.Cleanup(func() {
		s.quit()
		if err := os.RemoveAll(s.dir); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

func (s *Server) start() error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.kind.command(s.dir, s.port)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A terminal's Ctrl-C is for the test process alone; the watchdog then
	// ends the servers in good order.
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	line := fmt.Sprintf("%d %d\n", pid, s.kind.quit())
	if err := os.WriteFile(s.pidFile, []byte(line), 0o644); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	ended := false
	up := poll(startWithin, func() bool {
		// Nobody waits for the process while it runs, which would take a
		// goroutine for its whole life: it is asked here whether it ended.
		if got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err != nil || got == pid {
			ended = true
			return true
		}
		return s.kind.ready(s.dir, s.port, pid)
	})
	switch {
	case ended:
		_ = cmd.Process.Release()
		return errors.Join(errEnded, os.Remove(s.pidFile))
	case !up:
		return errors.Join(errSlow, cmd.Process.Kill(), ignoreExit(cmd.Wait()), os.Remove(s.pidFile))
	}
	s.cmd = cmd
	return nil
}

// Pid is the process id. The server must be running.
func (s *Server) Pid() int {
	s.tb.Helper()
	if s.cmd == nil {
		s.tb.Fatal("testenv: the server is not running")
	}
	return s.cmd.Process.Pid
}

// Stop freezes the server (SIGSTOP), the processes of PostgreSQL's sessions
// included: its port accepts connections and answers nothing.
func (s *Server) Stop() {
	s.tb.Helper()
	s.signalAll(syscall.SIGSTOP)
}

// Cont wakes a stopped server (SIGCONT).
func (s *Server) Cont() {
	s.tb.Helper()
	s.signalAll(syscall.SIGCONT)
}

// Kill ends the server as a crash would (SIGKILL) and waits until it is gone.
func (s *Server) Kill() {
	s.tb.Helper()
	// A parent that is stopped makes no new children while they are killed.
	s.signalAll(syscall.SIGSTOP)
	s.signalAll(syscall.SIGKILL)
	s.reap()
	s.kind.crashed(s.dir)
}

// Restart starts the server again on the same port and in the same folder,
// killing it first if it runs, and returns when it answers.
func (s *Server) Restart() {
	s.tb.Helper()
	if s.cmd != nil {
		s.Kill()
	}
	if err := s.start(); err != nil {
		s.tb.Fatalf("testenv: restart: %v\n%s", err, lastLines(s.log()))
	}
}

// quit ends the server in good order, or by force where that takes too long.
func (s *Server) quit() {
	s.tb.Helper()
	if s.cmd == nil {
		return
	}
	s.signalAll(syscall.SIGCONT)
	pid := s.Pid()
	if err := syscall.Kill(pid, s.kind.quit()); err != nil {
		s.tb.Error(err)
	}
	gone := func() bool {
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		return err != nil || got == pid
	}
	if !poll(10*time.Second, gone) {
		s.tb.Errorf("testenv: the server did not quit\n%s", lastLines(s.log()))
		s.Kill()
		return
	}
	s.reap()
}

// reap waits for the ended process and its children.
func (s *Server) reap() {
	s.tb.Helper()
	err := s.cmd.Wait()
	if err := ignoreExit(err); err != nil {
		s.tb.Error(err)
	}
	if err := os.Remove(s.pidFile); err != nil {
		s.tb.Error(err)
	}
	s.cmd = nil
}

// signalAll signals the server and its children.
func (s *Server) signalAll(sig syscall.Signal) {
	s.tb.Helper()
	pid := s.Pid()
	children, err := childrenOf(pid)
	if err != nil {
		s.tb.Fatal(err)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		s.tb.Fatalf("testenv: signalling process %d: %v", pid, err)
	}
	if sig == syscall.SIGSTOP {
		// It may have made another one before it stopped.
		if children, err = childrenOf(pid); err != nil {
			s.tb.Fatal(err)
		}
	}
	for _, child := range children {
		if err := syscall.Kill(child, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			s.tb.Fatalf("testenv: signalling process %d: %v", child, err)
		}
	}
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) ([]int, error) {
	out, err := exec.CommandContext(context.Background(), "ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("testenv: ps: %w; %s", err, setupHint)
	}
	var children []int
	for line := range strings.Lines(string(out)) {
		var child, parent int
		if _, err := fmt.Sscan(line, &child, &parent); err == nil && parent == pid {
			children = append(children, child)
		}
	}
	return children, nil
}

// ignoreExit is nil for the ways in which a process ends that was told to, and
// for one that was waited for already.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, syscall.ECHILD) {
		return nil
	}
	return err
}

// FreeAddr is a host:port of 127.0.0.1 that nobody listens on, for a server that
// is to be started there again: see freePort.
func FreeAddr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort())) }

// freePort finds a port that nobody listens on, and whose number plus 10000 is
// free for the bus of a cluster node. It lies below the range from which
// systems take ports for outgoing connections, so that it is still free when a
// killed server is restarted.
func freePort() int {
	for {
		port := 10000 + rand.IntN(12000)
		if free(port) && free(port+10000) {
			return port
		}
	}
}

func free(port int) bool {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
