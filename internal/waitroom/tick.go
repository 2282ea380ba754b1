package waitroom

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	feedsATick = 10              // chunks of the change feed read in one tick
	rereadOver = 5 * time.Second // after a break in the feed everybody is read again within this
	maxHorizon = 3000            // people near the head whose presence is kept fresh
	scanned    = 400             // heads that one admission looks at, by admit.lua
)

// tick does one round for everybody who watches here: one peek, one reading of
// the people who changed, and the places worth sending.
func (h *hub) tick(ctx context.Context) error {
	rd, digest, err := h.peek(ctx)
	if err != nil {
		return err
	}
	if err := h.reread(ctx); err != nil {
		return err
	}
	absent := h.sendAll(rd, digest)
	h.room.list(ctx, h.id)
	return h.refreshPresence(ctx, absent, rd.now)
}

// peek reads the line, its digest, and who changed since the last one.
func (h *hub) peek(ctx context.Context) (rd reading, digest ranks, err error) {
	r := h.room
	for range feedsATick {
		answer, err := r.onLine(ctx, r.scripts.peek, h.id, h.position(), exactRanks, headRanks, rankSamples)
		if err != nil {
			return rd, digest, err
		}
		rd = readingOf(answer.list(1))
		digest = ranksOf(answer.list(4), answer.list(5))
		if h.follow(rd, answer.list(2).strings(), answer.int64(3)) {
			break
		}
	}
	return rd, digest, nil
}

func (h *hub) position() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.peeked {
		return noVersion
	}
	return h.cursor
}

// follow moves the cursor and marks who must be read again: those in the feed,
// and everybody after a break in it. It reports whether the feed is read up.
func (h *hub) follow(rd reading, changed []string, last int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	back := h.cursor > rd.chg || rd.epoch < h.epoch // the line itself has gone back in time
	if !h.peeked || rd.epoch != h.epoch || back || h.cursor < rd.trimmed {
		for w := range h.watchers {
			if back {
				w.epoch, w.asOf = rd.epoch, noVersion
			}
			w.dirty = w.dirty || w.read && (w.epoch != rd.epoch || w.asOf < rd.chg)
		}
		last = rd.chg
	}
	for _, user := range changed {
		for w := range h.byUser[user] {
			w.dirty = w.dirty || w.read && w.asOf < last
		}
	}
	h.peeked, h.cursor, h.epoch = true, last, rd.epoch
	return last >= rd.chg
}

// reread reads the people who changed. After a break that is everybody, a
// share of them each tick.
func (h *hub) reread(ctx context.Context) error {
	r := h.room
	for users := range slices.Chunk(h.dirtyUsers(), peopleChunk) {
		args := make([]any, len(users))
		for i, user := range users {
			args[i] = user
		}
		answer, err := r.onLine(ctx, r.scripts.people, h.id, args...)
		if err != nil {
			return err
		}
		rd := readingOf(answer.list(1))
		h.mu.Lock()
		for i, user := range users {
			for w := range h.byUser[user] {
				w.accept(standingOf(answer.list(2+i)), rd)
			}
		}
		h.mu.Unlock()
	}
	return nil
}

func (h *hub) dirtyUsers() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var users []string
	for user, ws := range h.byUser {
		for w := range ws {
			if w.dirty {
				users = append(users, user)
				break
			}
		}
	}
	share := int(float64(len(h.byUser)) * float64(h.room.opts.Tick) / float64(rereadOver))
	return users[:min(len(users), max(5*peopleChunk, share))]
}

// sendAll sends what is worth sending, and returns those near the head, nearest
// first, whose sign of life is due.
func (h *hub) sendAll(rd reading, digest ranks) []*watcher {
	p := h.room.paces.look(h.id)
	stats := h.room.statsOf(h.id, rd)
	horizon := min(maxHorizon, scanned+rd.burst+int(rd.rate*h.room.opts.PresenceGrace.Seconds()))
	type due struct {
		w     *watcher
		ahead int
	}
	var dues []due
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		if !w.read {
			continue
		}
		if w.st.status == Waiting && !w.st.parked && w.epoch == rd.epoch && w.asOf <= rd.chg && digest.lacks(w.st.seq) {
			// The feed may not tell: a line that went back in time hands out
			// the numbers of its changes again.
			w.dirty = true
			continue
		}
		if w.st.status == Admitted && !rd.frozen && rd.now.UnixMilli() >= rd.lastMoment(w.st.deadline) {
			// Whether the sweep has come by or not. It is looked at before
			// anything is sent, since at the closing that would be the last.
			w.dirty = true
			continue
		}
		rk := digest.of(w.st.seq)
		h.show(w, rd, rk, &p)
		switch {
		case w.ended:
			h.forget(w)
		case w.st.parked:
			dues = append(dues, due{w, -1})
		case w.st.status == Waiting && rk.ahead < horizon && rd.now.Sub(w.touched) >= h.room.opts.PresenceGrace/3:
			dues = append(dues, due{w, rk.ahead})
		}
	}
	for out := range h.stats {
		put(out, stats)
	}
	slices.SortFunc(dues, func(a, b due) int {
		return cmp.Or(cmp.Compare(a.ahead, b.ahead), cmp.Compare(a.w.st.seq, b.w.st.seq))
	})
	near := make([]*watcher, 0, min(len(dues), peopleChunk))
	for _, d := range dues[:min(len(dues), peopleChunk)] {
		near = append(near, d.w)
	}
	return near
}

// show sends the watcher's place if it is worth it. The proof of a place is
// made only for what is sent.
func (h *hub) show(w *watcher, rd reading, rk rank, p *pace) {
	if w.st.status == Waiting {
		// Somebody's return may truly put a person back; an estimate must not.
		if !rk.exact && w.best > 0 {
			rk.ahead = min(rk.ahead, w.best-1)
		}
		w.best = rk.ahead + 1
	}
	place := placeOf(rd, w.st, rk, p)
	if !w.due(place, rd.now) {
		return
	}
	if w.st.status == Waiting {
		if w.token == nil || w.tokenSeq != w.st.seq || w.tokenEpoch != rd.epoch {
			w.token, w.tokenSeq, w.tokenEpoch = h.room.tokenFor(h.id, w.user, w.st, rd), w.st.seq, rd.epoch
		}
		place.PlaceToken = w.token
	}
	w.send(place, rd.now)
}

// refreshPresence says that these people are there.
func (h *hub) refreshPresence(ctx context.Context, near []*watcher, now time.Time) error {
	if len(near) == 0 {
		return nil
	}
	users := make([]any, len(near))
	for i, w := range near {
		users[i] = w.user
	}
	if _, err := h.room.run(ctx, h.room.scripts.touch, h.id, users...); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range near {
		w.touched = now
	}
	return nil
}
