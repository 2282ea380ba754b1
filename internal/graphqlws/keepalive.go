package graphqlws

import (
	"time"

	"github.com/gorilla/websocket"
)

// A tick is half a ping interval. Every second one asks the peer for a sign of
// life, and the third in a row without any is the peer's end: between one and a
// half and two intervals after its last word, when a ping has gone unanswered
// for a whole one.
//
// Ticks are counted, not time: after the process stood still for minutes, all
// peers have been silent for minutes, and none of them is to blame.
const (
	ticksPerPing = 2
	maxSilent    = 3
)

// tick runs on a timer that it sets anew, so waiting takes no goroutine.
func (c *conn) tick() {
	c.mu.Lock()
	if c.phase == closing {
		c.mu.Unlock()
		return
	}
	if c.silent++; c.heard.Swap(false) {
		c.silent = 0
	}
	if c.silent >= maxSilent {
		c.mu.Unlock()
		c.abort(&c.t.dead)
		return
	}
	c.ticks++
	ping := c.ticks%ticksPerPing == 0
	c.ticker.Reset(c.t.options.PingInterval / ticksPerPing)
	c.mu.Unlock()
	if ping {
		c.ping()
	}
}

func (c *conn) ping() {
	if !c.protocol.legacy {
		c.out.post(pingMessage)
		return
	}
	c.out.post(keepAliveMessage)
	// A failure to write is found by the message beside it.
	_ = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.t.options.WriteTimeout))
}
