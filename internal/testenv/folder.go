package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// watchdog ends the servers of a test process that has ended. Its standard
// input is a pipe that nobody writes to: reading ends when the last holder of
// the other end, the test process, is gone. It runs in a session of its own, so
// Ctrl-C at a terminal does not end it first.
//
// A pid file holds a process and the signal at which it ends at once but in good
// order. A server is continued before it is signalled, because a stopped one
// hears nothing but KILL.
const watchdog = `
runs() { case $(ps -o stat= -p "$1") in ""|Z*) return 1 ;; esac; }
cat >/dev/null
cd "$1" || exit
for f in *.pid; do
	[ -e "$f" ] && read -r pid signal <"$f" || continue
	kill -CONT "$pid"; kill -"$signal" "$pid"
done
for f in *.pid; do
	[ -e "$f" ] && read -r pid signal <"$f" || continue
	i=0
	while runs "$pid" && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done
	kill -KILL "$pid"
done
cd / && rm -rf "$1"
`

// folder is the temporary folder of the test process and the watchdog that
// removes it.
type folder struct {
	path string
	pipe *os.File // held open for as long as this process lives
}

func newFolder() (*folder, error) {
	path, err := os.MkdirTemp("", "seatline-test-")
	if err != nil {
		return nil, fmt.Errorf("testenv: %w", err)
	}
	// PostgreSQL runs as another user when the tests run as root, and must be
	// able to walk through.
	if err := os.Chmod(path, 0o711); err != nil {
		return nil, fmt.Errorf("testenv: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("testenv: %w", err)
	}
	defer r.Close()
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", watchdog, "watchdog", path)
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("testenv: starting the watchdog: %w", err)
	}
	return &folder{path: path, pipe: w}, nil
}

// sub makes a folder for one server.
func (f *folder) sub(name string) (string, error) {
	path := filepath.Join(f.path, name)
	if err := os.Mkdir(path, 0o711); err != nil {
		return "", fmt.Errorf("testenv: %w", err)
	}
	return path, nil
}
