package graphqlws

import (
	"errors"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// What may wait in an outbox. Past it those who post wait for room; an
// operation waits for its own frame anyway, so it has at most one in here.
const (
	maxQueued      = 128
	maxQueuedBytes = 256 << 10
)

// frame is a message on its way out.
type frame struct {
	data []byte
	op   *operation // whose message it is; nil for the connection's own
	last bool       // ends op
	due  time.Time  // the kernel must have taken it by then
	done bool       // written or dropped; guarded by outbox.mu
}

// outbox makes one writer out of all who have something to say on a socket.
// Whoever comes when nobody writes does it on its own goroutine; frames that
// find a writer at work wait in line, in order, and are written by a goroutine
// that lives no longer than the line. The time a frame waits counts towards its
// deadline, so that no frame waits long behind a stalled one.
type outbox struct {
	ws      *websocket.Conn
	timeout time.Duration
	fail    func(error) // called, without mu, when a write failed

	mu      sync.Mutex
	moved   sync.Cond // a frame is done, or the writer is
	queue   []*frame
	size    int // of the queue, in bytes
	writing bool
	closed  bool
}

func newOutbox(ws *websocket.Conn, timeout time.Duration, fail func(error)) *outbox {
	o := &outbox{ws: ws, timeout: timeout, fail: fail}
	o.moved.L = &o.mu
	return o
}

// send returns when f is written or dropped. Nothing refers to f.data then.
func (o *outbox) send(f *frame) {
	f.due, f.done = time.Now().Add(o.timeout), false
	o.mu.Lock()
	switch {
	case o.closed:
		o.mu.Unlock()
	case o.writing:
		o.push(f)
		for !f.done {
			o.moved.Wait()
		}
		o.mu.Unlock()
	default:
		o.writing = true
		o.mu.Unlock()
		o.write(f)
		o.handOver()
	}
}

// post leaves data to be written and returns, at once where there is room.
func (o *outbox) post(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && len(o.queue) > 0 && (len(o.queue) >= maxQueued || o.size+len(data) > maxQueuedBytes) {
		o.moved.Wait()
	}
	o.enqueue(data)
}

// put is post that never waits for room, for what is said once a socket.
func (o *outbox) put(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.enqueue(data)
}

func (o *outbox) enqueue(data []byte) {
	if o.closed {
		return
	}
	o.push(&frame{data: data, due: time.Now().Add(o.timeout)})
	if !o.writing {
		o.writing = true
		go o.drain()
	}
}

// close drops what waits and refuses what comes. A farewell, where there is
// one, is written before close returns; it waits for the writer, which is
// bounded by its frame's deadline.
func (o *outbox) close(farewell []byte) {
	o.mu.Lock()
	o.closed = true
	for _, f := range o.queue {
		f.done = true
	}
	o.queue, o.size = nil, 0
	o.moved.Broadcast()
	if farewell == nil {
		o.mu.Unlock()
		return
	}
	for o.writing {
		o.moved.Wait()
	}
	o.writing = true
	o.mu.Unlock()
	o.write(&frame{data: farewell, due: time.Now().Add(closeGrace)})
	o.handOver()
}

func (o *outbox) push(f *frame) {
	o.queue = append(o.queue, f)
	o.size += len(f.data)
}

// handOver ends the caller's turn as the writer.
func (o *outbox) handOver() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > 0 {
		go o.drain()
		return
	}
	o.writing = false
	o.moved.Broadcast()
}

// drain writes what waits, as the writer.
func (o *outbox) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		f := o.queue[0]
		o.queue[0] = nil
		if o.queue = o.queue[1:]; len(o.queue) == 0 {
			o.queue = nil
		}
		o.size -= len(f.data)
		o.mu.Unlock()
		o.write(f)
		o.mu.Lock()
		f.done = true
		o.moved.Broadcast()
	}
	o.writing = false
	o.moved.Broadcast()
}

// write is called by the writer only.
func (o *outbox) write(f *frame) {
	if f.op != nil && !f.op.mayWrite(f.last) {
		return
	}
	_ = o.ws.SetWriteDeadline(f.due) // Only remembered here; it cannot fail.
	if err := o.ws.WriteMessage(websocket.TextMessage, f.data); err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		o.fail(err)
	}
}
