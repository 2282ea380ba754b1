package graphqlws

import (
	"context"
	"time"
)

// burst is how many seconds' worth of messages may come at once, after a pause.
const burst = 10

// pace bounds how many messages are read from one socket. What comes faster is
// not refused but read later: the peer feels it as it feels a slow network, and
// one that merely had much to say at once loses nothing.
type pace struct {
	each time.Duration // between two messages, on average; 0: no limit
	full time.Time     // when the next burst may be whole
}

func newPace(perSecond int) pace {
	if perSecond <= 0 {
		return pace{}
	}
	return pace{each: time.Second / time.Duration(perSecond)}
}

// wait returns when the next message may be read, or ctx is done.
func (p *pace) wait(ctx context.Context) {
	if p.each == 0 {
		return
	}
	now := time.Now()
	if p.full.Before(now) {
		p.full = now
	}
	p.full = p.full.Add(p.each)
	early := p.full.Sub(now) - burst*time.Second
	if early <= 0 {
		return
	}
	timer := time.NewTimer(early)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
