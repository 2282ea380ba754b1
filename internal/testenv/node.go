package testenv

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// nodeWithin bounds what a program of Node.js takes. Where many tests run at
// once, half a minute is nothing.
const nodeWithin = 3 * time.Minute

// Node is a program of Node.js that tells what happens to it: it writes events,
// a line of JSON each, and ends when its standard input does. Its methods are for
// the goroutine of the test.
type Node struct {
	tb     testing.TB
	cmd    *exec.Cmd
	events *bufio.Scanner
	stderr bytes.Buffer
	ended  bool
}

// Event is something that happened to a Node.
type Event struct {
	Event string
	Value any // as JSON has it
}

// StartNode starts node with these arguments in dir, whose npm packages must have
// been installed. The program ends with the test, if not before.
func StartNode(tb testing.TB, dir string, args ...string) *Node {
	tb.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		tb.Fatalf("testenv: %v; %s", err, setupHint)
	}
	// npm writes this file last.
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err != nil {
		tb.Fatalf("testenv: the npm packages of %s are not installed: %v; %s", dir, err, setupHint)
	}
	ctx, cancel := context.WithTimeout(context.Background(), nodeWithin)
	n := &Node{tb: tb, cmd: exec.CommandContext(ctx, "node", args...)}
	n.cmd.Dir, n.cmd.Stderr = dir, &n.stderr
	// Nothing is ever written there. It ends when the test process does, however
	// that happens.
	_, err := n.cmd.StdinPipe()
	var out io.Reader
	if err == nil {
		out, err = n.cmd.StdoutPipe()
	}
	if err == nil {
		err = n.cmd.Start()
	}
	if err != nil {
		cancel()
		tb.Fatalf("testenv: node: %v", err)
	}
	n.events = bufio.NewScanner(out)
	tb.Cleanup(func() {
		cancel()
		_ = n.wait() // killed, it says, where it had not ended
	})
	return n
}

// Next returns the next event, or false when the program is done.
func (n *Node) Next() (e Event, ok bool) {
	n.tb.Helper()
	if !n.events.Scan() {
		return Event{}, false
	}
	if err := json.Unmarshal(n.events.Bytes(), &e); err != nil {
		n.tb.Fatalf("%v says %q: %v", n.cmd.Args, n.events.Text(), err)
	}
	return e, true
}

// Until returns the next event of that name and counts those before it.
func (n *Node) Until(name string) (e Event, before map[string]int) {
	n.tb.Helper()
	before = map[string]int{}
	for {
		e, ok := n.Next()
		switch {
		case !ok:
			n.tb.Fatalf("%v ended before %q, after %v: %v\n%s", n.cmd.Args, name, before, n.wait(), &n.stderr)
		case e.Event == name:
			return e, before
		}
		before[e.Event]++
	}
}

// Rest returns what happens until the program ends by itself, which it must do
// without an error.
func (n *Node) Rest() (events []Event) {
	n.tb.Helper()
	for {
		e, ok := n.Next()
		if !ok {
			break
		}
		events = append(events, e)
	}
	if err := n.wait(); err != nil {
		n.tb.Fatalf("%v, after %v: %v\n%s", n.cmd.Args, events, err, &n.stderr)
	}
	return events
}

// wait waits for the end, once.
func (n *Node) wait() error {
	if n.ended {
		return nil
	}
	n.ended = true
	return n.cmd.Wait()
}
