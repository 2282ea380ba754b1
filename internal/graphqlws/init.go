package graphqlws

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// initialise asks Init who is there, on a goroutine of its own: what the peer
// sends before the acknowledgement is a violation now, not later.
func (c *conn) initialise(payload map[string]any) {
	c.mu.Lock()
	c.phase = max(c.phase, initialising)
	c.mu.Unlock()
	c.goroutines.Go(func() {
		defer close(c.initialised)
		defer c.recover("initialising")
		ctx, ack, expiry, err := c.t.options.Init(c.ctx, payload)
		if err != nil {
			c.refuse(err)
			return
		}
		c.acknowledge(ctx, ack, expiry)
	})
}

func (c *conn) refuse(err error) {
	switch {
	case errors.Is(err, ErrUnauthenticated):
		c.close(unauthorized)
	case errors.Is(err, ErrForbidden):
		c.close(forbidden)
	case errors.Is(err, ErrUnavailable):
		c.close(tryAgainLater)
	case c.ctx.Err() != nil: // Closing has begun; that is what the error says.
	default:
		c.t.options.Log.Error("websocket: init", "error", err)
		c.close(internalError)
	}
}

func (c *conn) acknowledge(ctx context.Context, ack map[string]any, expiry time.Time) {
	if !expiry.IsZero() && !time.Now().Before(expiry) {
		c.close(unauthorized)
		return
	}
	answer := ackMessage
	if ack != nil {
		payload, err := json.Marshal(ack)
		if err != nil {
			c.refuse(err)
			return
		}
		answer = payloadMessage("connection_ack", payload)
	}
	if !c.identify(ctx) {
		c.close(tooManySockets)
		return
	}

	c.mu.Lock()
	if c.phase == closing {
		c.mu.Unlock()
		return
	}
	// The acknowledgement is in line before an operation can be, and the phase
	// is right before the peer can have read it.
	c.phase = acknowledged
	c.base = ctx
	c.out.put(answer)
	if c.protocol.legacy {
		c.out.put(keepAliveMessage)
	}
	c.deadline.Stop()
	if !expiry.IsZero() {
		c.deadline = time.AfterFunc(time.Until(expiry), func() { c.close(unauthorized) })
	}
	c.heard.Store(false)
	c.ticker = time.AfterFunc(c.t.options.PingInterval/ticksPerPing, c.tick)
	c.rest()
	c.mu.Unlock()
}

// identify counts the socket towards its person.
func (c *conn) identify(ctx context.Context) bool {
	if c.t.options.Person == nil {
		return true
	}
	person := c.t.options.Person(ctx)
	if !c.t.census.identify(person) {
		return false
	}
	c.mu.Lock()
	c.person = person
	c.mu.Unlock()
	return true
}

// expectInit gives the peer until InitTimeout to be acknowledged.
func (c *conn) expectInit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == closing {
		return
	}
	c.deadline = time.AfterFunc(c.t.options.InitTimeout, func() {
		c.mu.Lock()
		late := c.phase < acknowledged // The timer may have fired while it was being stopped.
		c.mu.Unlock()
		if late {
			c.close(initTimeout)
		}
	})
}
