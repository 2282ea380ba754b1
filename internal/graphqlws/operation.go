package graphqlws

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// operation is a query, a mutation or a subscription in flight.
type operation struct {
	conn   *conn
	id     string
	quoted []byte // id as a JSON string
	cancel context.CancelFunc
	frame  frame // the message under way; there is one at most
	broken streamErrors

	over   bool // the id is not the operation's any more; guarded by conn.mu
	stream bool // a subscription, which Drain does not wait for; guarded by conn.mu
}

// start begins the operation of a subscribe message and tells whether to go on
// reading.
func (c *conn) start(m message) bool {
	c.awaitRoom()
	c.mu.Lock()
	switch {
	case c.phase == closing || c.draining: // The client will ask again, elsewhere.
		c.mu.Unlock()
		return true
	case c.ops[m.id] != nil:
		c.mu.Unlock()
		c.close(alreadyExists(m.id))
		return false
	case len(c.ops) >= c.t.options.MaxSubscriptions || c.crowded():
		c.mu.Unlock()
		c.out.post(c.tooManyOperations(m.id))
		return true
	}
	ctx, cancel := context.WithCancel(c.base)
	op := &operation{conn: c, id: m.id, quoted: quote(m.id), cancel: cancel}
	if c.ops == nil {
		c.ops = make(map[string]*operation, 1)
	}
	c.ops[m.id] = op
	c.busy()
	c.running++
	c.pending++
	c.t.operations.Add(1)
	c.goroutines.Go(func() { op.run(ctx, m.params) })
	c.mu.Unlock()
	return true
}

// crowded tells whether operations that lost their ids, but have not ended, are
// as many as may run. An id is free the moment the client completes it, the
// goroutine behind it a little later.
func (c *conn) crowded() bool {
	return c.running >= 2*c.t.options.MaxSubscriptions
}

// awaitRoom slows down a client that subscribes and completes faster than
// resolvers let go, by not reading on until one has, or for patience.
func (c *conn) awaitRoom() {
	const patience = time.Second
	deadline := time.Now().Add(patience)
	for {
		c.mu.Lock()
		crowded := c.crowded()
		c.mu.Unlock()
		if !crowded {
			return
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-c.ended:
			timer.Stop()
		case <-c.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			return
		}
	}
}

func (c *conn) tooManyOperations(id string) []byte {
	return errorMessage(nil, quote(id), gqlerror.List{{
		Message: fmt.Sprintf("Too many operations on one socket; the limit is %d.", c.t.options.MaxSubscriptions),
		Extensions: map[string]any{
			"code":         "RATE_LIMITED",
			"retryAfterMs": time.Second.Milliseconds(),
		},
	}})
}

// complete is the client's: it wants no more of the operation.
func (c *conn) complete(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	op := c.ops[id]
	if op == nil { // It ended by itself, and the messages crossed.
		return
	}
	op.over = true
	delete(c.ops, id)
	op.cancel()
}

// run executes the operation and says how it ended.
func (op *operation) run(ctx context.Context, params *graphql.RawParams) {
	defer op.conn.recover("ending an operation")
	defer op.end()
	errs := op.execute(ctx, params)
	buf := op.conn.t.buffer()
	defer op.conn.t.recycle(buf)
	if len(errs) > 0 {
		*buf = errorMessage(*buf, op.quoted, errs)
	} else {
		*buf = append(appendHead(*buf, op.quoted, "complete"), '}')
	}
	op.say(*buf, true)
}

// execute sends the operation's responses as they come. It returns the errors
// that end it, or nil when it is complete.
func (op *operation) execute(ctx context.Context, params *graphql.RawParams) (errs gqlerror.List) {
	exec := op.conn.exec
	ctx = withStreamErrors(graphql.StartOperationTrace(ctx), &op.broken)
	defer func() {
		if r := recover(); r != nil {
			errs = presentPanic(ctx, exec, r)
		}
	}()

	rc, bad := exec.CreateOperationContext(ctx, params)
	ctx = graphql.WithOperationContext(ctx, rc)
	if len(bad) > 0 {
		return present(ctx, exec, bad)
	}
	subscription := rc.Operation.Operation == ast.Subscription
	if subscription {
		op.becomeStream()
	}
	responses, ctx := exec.DispatchOperation(ctx, rc)
	for ctx.Err() == nil {
		response := responses(ctx)
		if response == nil {
			break
		}
		if response.Data == nil && len(response.Errors) > 0 {
			return response.Errors
		}
		op.next(response)
		if !subscription && (response.HasNext == nil || !*response.HasNext) {
			break // A query has one response, even where a handler would repeat itself for ever.
		}
	}
	if broken := op.broken.list(); len(broken) > 0 {
		return present(ctx, exec, broken)
	}
	return nil
}

// next sends one response. It panics where gqlgen's marshalers made no JSON, as
// a resolver would.
func (op *operation) next(response *graphql.Response) {
	buf := op.conn.t.buffer()
	defer op.conn.t.recycle(buf)
	*buf = append(appendHead(*buf, op.quoted, op.conn.protocol.next), `,"payload":`...)
	*buf = append(appendResponse(*buf, response), '}')
	op.say(*buf, false)
}

// say returns when data is written, or not needed any more.
func (op *operation) say(data []byte, last bool) {
	op.frame = frame{data: data, op: op, last: last}
	op.conn.out.send(&op.frame)
}

// mayWrite is asked by the writer when a frame's turn has come. The id is given
// back before its last frame is written, for the client may use it as soon as
// it has read that.
func (op *operation) mayWrite(last bool) bool {
	c := op.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if op.over {
		return false
	}
	if last {
		op.over = true
		delete(c.ops, op.id)
	}
	return true
}

// becomeStream tells Drain not to wait for the operation.
func (op *operation) becomeStream() {
	op.conn.mu.Lock()
	op.stream = true
	op.conn.mu.Unlock()
	op.conn.settle(0, 1)
}

// end gives back what start took.
func (op *operation) end() {
	op.cancel()
	c := op.conn
	c.mu.Lock()
	if !op.over { // A panic on the way out: an error's own marshaler, say.
		op.over = true
		delete(c.ops, op.id)
	}
	stream := op.stream
	c.mu.Unlock()
	c.t.operations.Add(-1)
	if stream {
		c.settle(1, 0)
	} else {
		c.settle(1, 1)
	}
}

// settle takes operations off the counts, and ends a draining socket with the
// last one that it waited for.
func (c *conn) settle(running, pending int) {
	c.mu.Lock()
	c.running -= running
	c.pending -= pending
	drained := c.draining && c.pending == 0
	c.rest()
	c.mu.Unlock()
	select {
	case c.ended <- struct{}{}:
	default: // There is word of another one, still unread.
	}
	if drained {
		c.restart()
	}
}

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // A string always marshals.
	}
	return b
}
