package graphqlws

import "time"

// A socket on which nothing runs is kept for IdleTimeout: clients open the next
// one when they need it. It gets 1001, for which stock clients with something to
// do come back, with back-off.

// busy is told that an operation begins. It is called with mu held.
func (c *conn) busy() {
	if c.idle != nil {
		c.idle.Stop()
	}
}

// rest is told that nothing runs any more. It is called with mu held.
func (c *conn) rest() {
	switch {
	case c.phase != acknowledged || c.running > 0:
	case c.idle == nil:
		c.idle = time.AfterFunc(c.t.options.IdleTimeout, c.leave)
	default:
		c.idle.Reset(c.t.options.IdleTimeout)
	}
}

func (c *conn) leave() {
	c.mu.Lock()
	if c.running > 0 || c.phase != acknowledged { // The timer may have fired while it was being stopped.
		c.mu.Unlock()
		return
	}
	c.draining = true // An operation that comes now is not begun to be cut off.
	c.mu.Unlock()
	c.close(nothingRuns)
}
