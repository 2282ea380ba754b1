// Package testenv gives tests real servers: PostgreSQL, Redis and a three-node
// Redis Cluster, each started once per test process on a free port of
// 127.0.0.1, and servers of a test's own that it may stop, kill and restart.
//
// Nothing needs to be set up or torn down by the caller. Every server runs in a
// temporary folder of the test process. A small watchdog holds the other end of
// a pipe to the process and, however the process ends (a panic, a time-out, a
// kill -9), stops the servers and removes the folder. The package keeps no
// goroutine of its own, so goleak may be used beside it.
//
// TEST_DATABASE_URL and TEST_REDIS_URL name servers to use instead. Then
// Postgres creates its databases there and drops them afterwards, and Redis
// flushes the databases that the variable lists. Servers of a test's own are
// started here all the same.
package testenv

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// setupHint ends every message about something that is not installed.
const setupHint = "run scripts/setup, which installs what the tests need or says what to install"

// env is what the tests of one process share: the only state of the package,
// because a server that every test asks for must be found by every test.
var env struct {
	folder   once[*folder]
	postgres once[*Server]
	redis    once[*redisDatabases]
	cluster  once[[]*Server]
}

// once is sync.OnceValues for a function that is known only at the first call.
type once[T any] struct {
	sync.Once
	value T
	err   error
}

// get returns the value, made by the first caller. A failure is remembered too:
// what could not be started is not tried again by every test.
func (o *once[T]) get(tb testing.TB, build func() (T, error)) T {
	tb.Helper()
	o.Do(func() { o.value, o.err = build() })
	if o.err != nil {
		tb.Fatal(o.err)
	}
	return o.value
}

// Eventually waits until condition is true, asking every 10 ms, and fails the
// test when it is not within the time given. It must be called from the test's
// own goroutine.
func Eventually(tb testing.TB, within time.Duration, condition func() bool, msg string) {
	tb.Helper()
	if !poll(within, condition) {
		tb.Fatalf("not within %v: %s", within, msg)
	}
}

// poll reports whether condition became true in time.
func poll(within time.Duration, condition func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			return condition()
		case <-tick.C:
		}
	}
	return true
}

// randomName is a name that no other test process chooses.
func randomName(prefix string) string {
	var b [8]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// lastLines is the end of a server's log, for messages.
func lastLines(file string) string {
	log, err := os.ReadFile(file)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	const most = 2000
	if len(log) > most {
		log = log[len(log)-most:]
	}
	return string(log)
}
