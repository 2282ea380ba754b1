package waitroom

import "testing"

func TestPaceKnowsNothingAtFirst(t *testing.T) {
	var p pace
	if w := p.wait(10, Open); w != nil {
		t.Errorf("wait %d without data", *w)
	}
	if c := p.chance(10, 0, 5); c != nil {
		t.Errorf("chance %v without data", *c)
	}
	if c := p.chance(2, 2, 5); c == nil || *c != 1 {
		t.Errorf("fewer before than seats: chance %v, want 1", c)
	}
	if c := p.chance(0, 0, 0); c == nil || *c != 0 {
		t.Errorf("no seat: chance %v, want 0", c)
	}
}

func TestPaceMeasures(t *testing.T) {
	var p pace
	for i := range int64(121) {
		p.feed(sample{at: 1_000_000 + i*1000, granted: 5 * i, departed: 5 * i, used: 3 * i, lapsed: i, admitting: true})
	}
	if rate, known := p.departures(); !known || rate < 4.99 || rate > 5.01 {
		t.Errorf("departures %v %v, want 5 a second", rate, known)
	}
	if got := p.admittedPerMinute(); got != 300 {
		t.Errorf("admitted per minute %v, want 300", got)
	}
	if w := p.wait(100, Open); w == nil || *w < 20 || *w > 21 {
		t.Errorf("wait %v, want 20 s", w)
	}
	for _, state := range []LineState{Paused, Upcoming, SoldOut, Closed} {
		if w := p.wait(100, state); w != nil {
			t.Errorf("wait %d while %s, want not known", *w, state)
		}
	}
	if p.claimRate == nil || *p.claimRate != 0.75 {
		t.Errorf("claim rate %v, want 0.75", p.claimRate)
	}
	certain, even, hopeless := p.chance(3, 0, 50), p.chance(66, 0, 50), p.chance(1000, 0, 50)
	if *certain != 1 || *even < 0.4 || *even > 0.7 || *hopeless != 0 {
		t.Errorf("chances %v %v %v, want 1, about a half, 0", *certain, *even, *hopeless)
	}
}

func TestPaceIgnoresPauses(t *testing.T) {
	var p pace
	at, departed := int64(1_000_000), int64(0)
	feed := func(seconds, perSecond int64, admitting bool) {
		for range seconds {
			at += 1000
			departed += perSecond
			p.feed(sample{at: at, granted: departed, departed: departed, admitting: admitting})
		}
	}
	feed(60, 4, true)
	feed(600, 0, false)
	if rate, _ := p.departures(); rate < 3.9 {
		t.Errorf("a pause slowed the measured rate to %v", rate)
	}
	p.feed(sample{at: at + 1000, admitting: true})
	if _, known := p.departures(); known {
		t.Error("another line of the same lecture keeps the old one's rate")
	}
}

func TestPaceIgnoresLateReplies(t *testing.T) {
	var p pace
	at := func(i int64) sample {
		return sample{at: 1_000_000 + i*1000, granted: 5 * i, departed: 5 * i, used: 3 * i, lapsed: i, admitting: true}
	}
	for i := range int64(60) {
		p.feed(at(i))
	}
	p.feed(at(58))
	if rate, known := p.departures(); !known || rate < 4.99 || rate > 5.01 {
		t.Errorf("after an answer that came late: departures %v %v, want 5 a second", rate, known)
	}
	p.feed(sample{at: 1_000_000 + 61_000, granted: 1, departed: 1, admitting: true})
	if rate, known := p.departures(); known {
		t.Errorf("another line of the same lecture: departures %v", rate)
	}
}
