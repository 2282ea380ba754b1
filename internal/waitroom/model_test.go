package waitroom

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"seatline/internal/lecture"
)

// refLine is the line as one would explain it to a person: the reference for
// the scripts. Time is seconds.
type refLine struct {
	now              int64
	queue, parked    []string
	seq              map[string]int64
	tickets          map[string]int64 // deadline
	claims           map[string]int64 // the ticket's deadline
	seen             map[string]int64
	expired          map[string]Reason
	enrolled         map[string]bool
	next             int64
	capacity, tokens int64
	rate, burst, ttl int64
	paused           bool
}

const (
	refGrace, refParkedFor = 10, 30
	refOpened              = 1_000_000
)

func newRefLine(capacity int64) *refLine {
	return &refLine{
		now: refOpened, seq: map[string]int64{}, tickets: map[string]int64{}, claims: map[string]int64{}, seen: map[string]int64{},
		expired: map[string]Reason{}, enrolled: map[string]bool{}, capacity: capacity, tokens: 3, rate: 1, burst: 3, ttl: 20,
	}
}

func (l *refLine) free() int64 { return l.capacity - int64(len(l.enrolled)) }
func (l *refLine) held() int64 { return int64(len(l.tickets) + len(l.claims)) }

func (l *refLine) insert(user string) {
	at, _ := slices.BinarySearchFunc(l.queue, l.seq[user], func(u string, seq int64) int { return int(l.seq[u] - seq) })
	l.queue = slices.Insert(l.queue, at, user)
}

func remove(list *[]string, user string) bool {
	i := slices.Index(*list, user)
	if i < 0 {
		return false
	}
	*list = slices.Delete(*list, i, i+1)
	return true
}

func (l *refLine) grant(user string) {
	l.tickets[user] = l.now + l.ttl
	delete(l.seen, user)
	l.tokens--
}

func (l *refLine) join(user string) {
	if _, ok := l.claims[user]; ok {
		return
	}
	if deadline, ok := l.tickets[user]; ok {
		if deadline > l.now {
			return
		}
		delete(l.tickets, user)
		l.expired[user] = TicketExpired
	}
	if remove(&l.parked, user) {
		l.insert(user)
		l.seen[user] = l.now
		return
	}
	if slices.Contains(l.queue, user) {
		l.seen[user] = l.now
		return
	}
	if l.enrolled[user] {
		return
	}
	l.next++
	l.seq[user] = l.next
	delete(l.expired, user)
	if len(l.queue) == 0 && !l.paused && l.tokens >= 1 && l.free()-l.held() >= 1 {
		l.grant(user)
		return
	}
	l.insert(user)
	l.seen[user] = l.now
}

func (l *refLine) admit() {
	for user, deadline := range l.tickets {
		if deadline <= l.now {
			delete(l.tickets, user)
			l.expired[user] = TicketExpired
		}
	}
	for _, user := range slices.Clone(l.parked) {
		if l.now-l.seen[user] > refGrace+refParkedFor {
			remove(&l.parked, user)
			delete(l.seen, user)
			l.expired[user] = Away
		}
	}
	for !l.paused && l.tokens >= 1 && l.free()-l.held() >= 1 && len(l.queue) > 0 {
		user := l.queue[0]
		l.queue = l.queue[1:]
		if l.now-l.seen[user] > refGrace {
			l.parked = append(l.parked, user)
			slices.SortFunc(l.parked, func(a, b string) int { return int(l.seq[a] - l.seq[b]) })
			continue
		}
		l.grant(user)
	}
}

func (l *refLine) leave(user string) {
	if _, ok := l.claims[user]; ok {
		return
	}
	remove(&l.queue, user)
	remove(&l.parked, user)
	delete(l.tickets, user)
	delete(l.expired, user)
	delete(l.seen, user)
}

func (l *refLine) touch(user string) {
	if remove(&l.parked, user) {
		l.insert(user)
	}
	if slices.Contains(l.queue, user) {
		l.seen[user] = l.now
	}
}

func (l *refLine) claim(user string) lecture.ClaimStatus {
	if _, ok := l.claims[user]; ok {
		return lecture.ClaimBusy
	}
	deadline, ok := l.tickets[user]
	switch {
	case ok && deadline > l.now:
		delete(l.tickets, user)
		l.claims[user] = deadline
		return lecture.ClaimOK
	case ok:
		delete(l.tickets, user)
		l.expired[user] = TicketExpired
		return lecture.ClaimExpired
	case l.expired[user] == TicketExpired:
		return lecture.ClaimExpired
	}
	return lecture.ClaimNone
}

func (l *refLine) advance(seconds int64) {
	l.now += seconds
	if !l.paused {
		l.tokens = min(l.burst, l.tokens+seconds*l.rate)
	}
}

func (l *refLine) status(user string) (Status, Reason, int) {
	if _, ok := l.claims[user]; ok {
		return Admitted, "", 0
	}
	if deadline, ok := l.tickets[user]; ok {
		if deadline > l.now {
			return Admitted, "", 0
		}
		return Expired, TicketExpired, 0
	}
	if i := slices.Index(l.queue, user); i >= 0 {
		return Waiting, "", i + 1
	}
	if slices.Contains(l.parked, user) {
		ahead := 0
		for _, u := range l.queue {
			if l.seq[u] < l.seq[user] {
				ahead++
			}
		}
		return Waiting, "", ahead + 1
	}
	if l.enrolled[user] {
		return Enrolled, "", 0
	}
	if reason, ok := l.expired[user]; ok {
		return Expired, reason, 0
	}
	return NotQueued, "", 0
}

// modelWorld is a Room over miniredis, whose time the test holds, beside the
// reference.
type modelWorld struct {
	ctx     context.Context
	mr      *miniredis.Miniredis
	room    *Room
	ref     *refLine
	version int64
	flights map[string]lecture.Claim
}

func (w *modelWorld) facts() lecture.Facts {
	return lecture.Facts{
		ID: 1, Epoch: 1, Version: w.version, Capacity: int(w.ref.capacity), Remaining: int(w.ref.free()),
		OpensAt: time.Unix(refOpened-1000, 0),
		Settings: lecture.Settings{
			Paused: w.ref.paused, AdmitPerSecond: float64(w.ref.rate), Burst: int(w.ref.burst),
			TicketTTLSeconds: int(w.ref.ttl), OverbookPercent: 100,
		},
	}
}

func (w *modelWorld) sync(t *rapid.T) {
	w.version++
	if _, err := w.room.sync(w.ctx, w.facts(), noVersion, 1); err != nil {
		t.Fatal(err)
	}
}

func (w *modelWorld) admit(t *rapid.T) {
	if _, err := w.room.admit(w.ctx, 1); err != nil {
		t.Fatal(err)
	}
	w.ref.admit()
}

// TestLineAgainstReference plays random lives of six people at one lecture
// against the reference, and compares what everybody sees after every step.
func TestLineAgainstReference(t *testing.T) {
	mr := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mr.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	users := []string{"ann", "bob", "cho", "다영", "e:v{e}", "f%20"}

	rapid.Check(t, func(t *rapid.T) {
		mr.FlushAll()
		mr.SetTime(time.Unix(refOpened, 0))
		room := New(rdb, nil, Options{PresenceGrace: refGrace * time.Second, ParkedFor: refParkedFor * time.Second})
		room.listed.at = map[int]time.Time{1: time.Now().Add(time.Hour)}
		w := &modelWorld{
			ctx: context.Background(), mr: mr, room: room,
			ref: newRefLine(rapid.Int64Range(0, 3).Draw(t, "capacity")), flights: map[string]lecture.Claim{},
		}
		w.sync(t)
		user := rapid.SampledFrom(users)
		attempts := 0
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				u := user.Draw(t, "user")
				if _, err := w.room.Join(w.ctx, 1, u, ""); err != nil {
					t.Fatal(err)
				}
				w.ref.join(u)
			},
			"leave": func(t *rapid.T) {
				u := user.Draw(t, "user")
				had := w.ref.tickets[u] > 0
				if _, err := w.room.Leave(w.ctx, 1, u); err != nil {
					t.Fatal(err)
				}
				w.ref.leave(u)
				if had && w.flights[u].Attempt == "" {
					w.ref.admit() // the seat goes on at once
				}
			},
			"touch": func(t *rapid.T) {
				u := user.Draw(t, "user")
				if _, err := w.room.Place(w.ctx, 1, u); err != nil {
					t.Fatal(err)
				}
				w.ref.touch(u)
			},
			"admit": w.admit,
			"claim": func(t *rapid.T) {
				u := user.Draw(t, "user")
				attempts++
				c, err := w.room.Claim(w.ctx, 1, u, fmt.Sprintf("%016x", attempts))
				if err != nil {
					t.Fatal(err)
				}
				if want := w.ref.claim(u); c.Status != want {
					t.Fatalf("claim of %s: %v, want %v", u, c.Status, want)
				}
				if c.Status == lecture.ClaimOK {
					w.flights[u] = c
				}
			},
			"settle": func(t *rapid.T) { w.settle(t, user.Draw(t, "user")) },
			"cancel": func(t *rapid.T) {
				u := user.Draw(t, "user")
				if !w.ref.enrolled[u] {
					return
				}
				delete(w.ref.enrolled, u)
				w.version++
				if err := w.room.Changed(w.ctx, w.facts(), u); err != nil {
					t.Fatal(err)
				}
				w.ref.admit()
			},
			"capacity": func(t *rapid.T) {
				w.ref.capacity = max(int64(len(w.ref.enrolled)), rapid.Int64Range(0, 4).Draw(t, "capacity"))
				w.sync(t)
			},
			"pause": func(t *rapid.T) {
				w.ref.paused = !w.ref.paused
				w.sync(t)
			},
			"time": func(t *rapid.T) {
				seconds := rapid.Int64Range(1, 9).Draw(t, "seconds")
				w.ref.advance(seconds)
				mr.SetTime(time.Unix(w.ref.now, 0))
				w.sync(t)
				w.admit(t)
			},
			"": func(t *rapid.T) { w.compare(t, users) },
		})
	})
}

// settle ends a flight as the database might have, sometimes twice and
// sometimes with an identity that is no longer the claim's.
func (w *modelWorld) settle(t *rapid.T, u string) {
	c, ok := w.flights[u]
	if !ok {
		return
	}
	verdict := rapid.SampledFrom([]lecture.Verdict{lecture.In, lecture.Back, lecture.Full}).Draw(t, "verdict")
	if verdict == lecture.In && w.ref.free() < 1 {
		verdict = lecture.Full
	}
	deadline := w.ref.claims[u]
	delete(w.ref.claims, u)
	delete(w.flights, u)
	switch verdict {
	case lecture.In:
		w.ref.enrolled[u] = true
	case lecture.Back:
		w.ref.tickets[u] = max(deadline, w.ref.now+10)
	case lecture.Full:
		w.ref.insert(u)
		w.ref.seen[u] = w.ref.now
	}
	w.version++
	seats := lecture.Seats{Version: w.version, Remaining: int(w.ref.free())}
	end := lecture.Settlement{User: u, Attempt: c.Attempt, Until: c.Until, Verdict: verdict}
	wrong := end
	wrong.Attempt, wrong.Verdict = "ffffffffffffffff", lecture.Full
	late := end
	late.Until++
	late.Verdict = lecture.Back
	ends := []lecture.Settlement{wrong, late, end, end}
	if err := w.room.Settle(w.ctx, 1, seats, ends); err != nil {
		t.Fatal(err)
	}
}

func (w *modelWorld) compare(t *rapid.T, users []string) {
	args := make([]any, len(users))
	for i, u := range users {
		args[i] = u
	}
	answer, err := w.room.call(w.ctx, w.room.scripts.people, 1, args...)
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range users {
		st := standingOf(answer.list(2 + i))
		status, reason, position := w.ref.status(u)
		if st.status != status || st.reason != reason {
			t.Fatalf("%s reads %s %s, want %s %s", u, st.status, st.reason, status, reason)
		}
		if status == Waiting && st.rank+1 != position {
			t.Fatalf("%s is at %d, want %d", u, st.rank+1, position)
		}
		w.inOnePlace(t, u)
	}
	line := readingOf(answer.list(1)).line()
	if line.Held != int(w.ref.held()) || line.Remaining != int(w.ref.free()) || line.Waiting != len(w.ref.queue) {
		t.Fatalf("line reads %+v, want held %d, free %d, waiting %d", line, w.ref.held(), w.ref.free(), len(w.ref.queue))
	}
}

func (w *modelWorld) inOnePlace(t *rapid.T, u string) {
	k := keysOf(1)
	var in []string
	for _, key := range []string{k.queue, k.parked, k.tickets, k.claims} {
		members, _ := w.mr.SortedSet(key) // no such key: nobody is in it
		if _, ok := members[u]; ok {
			in = append(in, key)
		}
	}
	if len(in) > 1 {
		t.Fatalf("%s is in %v", u, in)
	}
	_, held := w.ref.tickets[u]
	if w.mr.Exists(k.mirror(u)) && !held {
		t.Fatalf("%s has a mirror of no ticket", u)
	}
}
