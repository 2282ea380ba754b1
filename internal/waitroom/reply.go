package waitroom

import (
	"strconv"
	"time"
)

// reply is a script's answer: words, numbers and nested lists. Numbers that
// must not lose digits travel as text.
type reply []any

func (r reply) text(i int) string {
	if i >= len(r) {
		return ""
	}
	switch v := r[i].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// int64 reads a whole number; a score may come with an exponent, as 1e+09.
func (r reply) int64(i int) int64 {
	text := r.text(i)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return int64(f)
}

func (r reply) int(i int) int { return int(r.int64(i)) }

func (r reply) list(i int) reply {
	if i >= len(r) {
		return nil
	}
	l, _ := r[i].([]any)
	return l
}

func (r reply) strings() []string {
	s := make([]string, len(r))
	for i := range r {
		s[i] = r.text(i)
	}
	return s
}

// reading is the line at one instant, as prelude.lua's reading returns it.
type reading struct {
	now                           time.Time
	epoch, chg, trimmed           int64
	version                       int64
	remaining                     int
	opensAt, closesAt             int64 // ms, 0 = none
	paused                        bool
	rate                          float64
	overbook, burst               int
	frozen                        bool
	waiting, parked, tickets      int
	claims                        int
	granted, departed, used, laps int64
	lost                          int64 // ms, when a line was begun anew after a loss; 0 = never
	message                       string
}

func readingOf(r reply) reading {
	rate, _ := strconv.ParseFloat(r.text(9), 64)
	return reading{
		now: time.UnixMilli(r.int64(0)).UTC(), epoch: r.int64(1), chg: r.int64(2), trimmed: r.int64(3),
		version: r.int64(4), remaining: r.int(5), opensAt: r.int64(6), closesAt: r.int64(7),
		paused: r.int64(8) != 0, rate: rate, overbook: r.int(10), frozen: r.int64(11) != 0,
		waiting: r.int(12), parked: r.int(13), tickets: r.int(14), claims: r.int(15),
		granted: r.int64(16), departed: r.int64(17), used: r.int64(18), laps: r.int64(19), lost: r.int64(20),
		message: r.text(21), burst: r.int(22),
	}
}

// lastMoment is when a ticket ends, in ms: none lasts past the closing, whenever
// that was set.
func (rd reading) lastMoment(deadline int64) int64 {
	if rd.closesAt > 0 {
		return min(deadline, rd.closesAt)
	}
	return deadline
}

func (rd reading) line() Line {
	l := Line{
		Waiting: rd.waiting, Parked: rd.parked, Held: rd.tickets + rd.claims, InFlight: rd.claims,
		Remaining: rd.remaining, Version: rd.version, ServerTime: rd.now,
	}
	l.State = stateOf(rd.now.UnixMilli(), rd.opensAt, rd.closesAt, rd.paused, rd.remaining, l.Held, rd.overbook)
	if rd.message != "" {
		l.Message = &rd.message
	}
	return l
}

// stateOf decides a line's state: the first that fits, protocol.md section 3.
// Times in ms by Redis; 0 = none.
func stateOf(now, opensAt, closesAt int64, paused bool, free, held, overbook int) LineState {
	switch {
	case closesAt > 0 && now >= closesAt:
		return Closed
	case now < opensAt:
		return Upcoming
	case paused:
		return Paused
	case free == 0 && held == 0:
		return SoldOut
	case held > 0 && held >= free*overbook/100:
		return AllHeld
	}
	return Open
}

// standing is one person, as people.lua tells.
type standing struct {
	status   Status
	reason   Reason // "" = none
	seq      int64
	deadline int64 // ms
	rank     int   // from 0
	parked   bool  // Waiting, but set aside as absent
}

func standingOf(r reply) standing {
	s := standing{status: NotQueued, seq: r.int64(1), deadline: r.int64(2), rank: r.int(3)}
	switch r.text(0) {
	case "W":
		s.status = Waiting
	case "K":
		s.status, s.parked = Waiting, true
	case "A":
		s.status = Admitted
	case "R":
		s.status = Enrolled
	case "T":
		s.status, s.reason = Expired, TicketExpired
	case "P":
		s.status, s.reason = Expired, Away
	}
	return s
}
