package waitroom

import (
	"math"
	"slices"
	"sync"
)

const (
	paceHalfLife = 30_000 // ms; how fast the measured rate of departures forgets
	paceWarmUp   = 5_000  // ms of admission before a rate is told
	paceWindow   = 60_000 // ms; the window of admittedPerMinute
	lateReply    = 10_000 // ms; an older sample than this is of another line
)

// sample is the totals of a line at one instant of Redis time (ms).
type sample struct {
	at                              int64
	granted, departed, used, lapsed int64
	admitting                       bool
}

// pace is how a line moves, as this instance has measured it.
type pace struct {
	rate      float64 // people leaving the line a second, while it admits; EWMA
	measured  int64   // ms of admission seen so far
	last      sample
	grants    []sample // of the last window, oldest first
	claimRate *float64
}

func (p *pace) feed(s sample) {
	if late := p.last.at - s.at; late >= 0 && late < lateReply && s.departed <= p.last.departed && s.granted <= p.last.granted {
		return // two admissions at once, and the answer to the first comes last
	}
	if s.at < p.last.at || s.departed < p.last.departed || s.granted < p.last.granted {
		*p = pace{} // another line of the same lecture, or another clock
	}
	if elapsed := s.at - p.last.at; p.last.at > 0 && elapsed > 0 && s.admitting {
		now := float64(s.departed-p.last.departed) / float64(elapsed) * 1000
		weight := 1 - math.Exp2(-float64(elapsed)/paceHalfLife)
		if p.measured < paceHalfLife {
			// Early on every sample counts the same.
			weight = max(weight, float64(elapsed)/float64(p.measured+elapsed))
		}
		p.rate += weight * (now - p.rate)
		p.measured += elapsed
	}
	p.last = s
	p.grants = append(p.grants, s)
	old := 0
	for old < len(p.grants)-1 && p.grants[old].at < s.at-paceWindow {
		old++
	}
	p.grants = slices.Delete(p.grants, 0, old)
	if n := s.used + s.lapsed; n > 0 {
		share := float64(s.used) / float64(n)
		p.claimRate = &share
	}
}

// departures is people leaving the line a second; false while not known.
func (p *pace) departures() (float64, bool) {
	return p.rate, p.measured >= paceWarmUp && p.rate > 1e-4
}

// admittedPerMinute is how many were admitted in the last minute.
func (p *pace) admittedPerMinute() float64 {
	if len(p.grants) == 0 {
		return 0
	}
	return float64(p.last.granted - p.grants[0].granted)
}

// paces are the paces of all active lectures.
type paces struct {
	mu sync.Mutex
	of map[int]*pace
}

func (p *paces) feed(id int, s sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[int]*pace{}
	}
	if p.of[id] == nil {
		p.of[id] = &pace{}
	}
	p.of[id].feed(s)
}

// look is the lecture's pace by now.
func (p *paces) look(id int) pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.of[id]; known != nil {
		copied := *known
		copied.grants = slices.Clone(known.grants[:min(1, len(known.grants))])
		return copied
	}
	return pace{}
}

// keep forgets all lectures but these.
func (p *paces) keep(ids []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.of {
		if !slices.Contains(ids, id) {
			delete(p.of, id)
		}
	}
}

// wait is how long ahead people take, in seconds; nil while not known.
func (p *pace) wait(ahead int, state LineState) *int {
	rate, known := p.departures()
	if !known || (state != Open && state != AllHeld) {
		return nil
	}
	seconds := int(math.Ceil(float64(ahead) / rate))
	return &seconds
}

// chance is how likely a seat is left for somebody with ahead people before
// them in line: that of those and of the held, who each take a seat with the
// measured share, fewer than free do. nil while not known.
func (p *pace) chance(ahead, held, free int) *float64 {
	before := held + ahead
	var result float64
	switch {
	case free <= 0:
		result = 0
	case before < free:
		result = 1
	case p.claimRate == nil:
		return nil
	default:
		// The normal approximation to the binomial, with continuity correction.
		share, n := *p.claimRate, float64(before)
		sigma := math.Sqrt(n * share * (1 - share))
		over := float64(free) - 0.5 - n*share
		switch {
		case sigma > 0:
			result = 0.5 * math.Erfc(-over/sigma/math.Sqrt2)
		case over > 0:
			result = 1
		}
	}
	result = math.Round(result*100) / 100
	return &result
}
