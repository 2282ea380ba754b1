package embedded

import (
	"net"
	"sync"
	"time"
)

// queued is a connection whose writes wait for nobody, as those of a socket with
// room enough. miniredis answers each command before it reads the next, and the
// ends of a net.Pipe wait for each other: a client that sends a pipeline before
// it reads would wait for a server that waits for it.
type queued struct {
	net.Conn
	more chan struct{} // something was written, or the connection closed

	mu      sync.Mutex
	pending []byte
	failed  error // what the other end did not take
}

func newQueued(conn net.Conn) *queued {
	q := &queued{Conn: conn, more: make(chan struct{}, 1)}
	go q.send()
	return q
}

func (q *queued) Write(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.failed != nil {
		return 0, q.failed
	}
	q.pending = append(q.pending, b...)
	q.signal()
	return len(b), nil
}

func (q *queued) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// send passes on what was written, until the connection is closed at either end.
func (q *queued) send() {
	for range q.more {
		q.mu.Lock()
		next, failed := q.pending, q.failed
		q.pending = nil
		q.mu.Unlock()
		if failed != nil {
			return
		}
		if _, err := q.Conn.Write(next); err != nil {
			q.fail(err)
			return
		}
	}
}

func (q *queued) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = err
	q.signal()
}

// Close loses what the other end has not taken.
func (q *queued) Close() error {
	q.fail(net.ErrClosed)
	return q.Conn.Close()
}

// SetDeadline bounds reading: writing does not wait.
func (q *queued) SetDeadline(t time.Time) error { return q.SetReadDeadline(t) }

// SetWriteDeadline does nothing: writing does not wait.
func (q *queued) SetWriteDeadline(time.Time) error { return nil }
