// Package waitroom keeps the waiting line of every lecture in Redis: who is in
// line and in which order, who holds a ticket, who is enrolling right now. It
// knows seats only as numbers that the database told it, and people only as
// user keys.
//
// # States of a person at one lecture
//
//	          join                admit                 claim
//	(none) ─────────► waiting ─────────────► admitted ─────────► in flight
//	   ▲               │   ▲ back              │  ▲                │ │ │
//	   │ leave         ▼   │ (touch, join)     │  └── settle back ─┘ │ │
//	   ├────────────  parked                   │                     │ │
//	   │               │ long away             │ deadline            │ │
//	   │               ▼                       ▼                     │ │
//	   └───────────  expired ◄─────────────────┘     settle line ────┘ │
//	                                          (waiting, old sequence)  │
//	   enrolled (a mark; the row in the database is the truth) ◄── settle in
//
// A person is in at most one of queue, parked, tickets and claims: every script
// that adds removes from the other three.
//
// # Keys
//
// All keys of a lecture share the hash tag {L}. keys.go builds them.
//
//	queue:lecture:{L}               ZSET  user → sequence: who waits
//	tickets:lecture:{L}             ZSET  user → deadline ms; the truth for tickets
//	claims:lecture:{L}              ZSET  user → claimUntil ms: enrolments in flight
//	holds:lecture:{L}               HASH  user → "<seq> <deadline> <attempt|-> <claimUntil|0>"
//	admitted:lecture:{L}:user:U     text  mirror of a ticket for people, with a TTL; never read here
//	parked:lecture:{L}              ZSET  user → sequence: absent, place kept
//	seen:lecture:{L}                ZSET  user → last sign of life, ms; of those waiting or parked
//	expired:lecture:{L}             ZSET  user → when, ms; + 0.5 where a parked place ran out
//	enrolled:lecture:{L}            ZSET  user → seat_version of the commit: a hint
//	changed:lecture:{L}             ZSET  user → change number: the feed of the hubs
//	lecture:{L}                     HASH  see below
//	lectures:active                 SET   lectures to tick: a cache
//	rate:{kind:WHO}                 text  when WHO's allowance is full again, µs, with a TTL: no part of a line
//
// Fields of lecture:{L}: epoch, seq, chg, tokens, tokens_at, remaining, version,
// synced, beat, steady, opens_at, closes_at (ms, 0 = none), paused, rate, burst,
// ttl_ms, overbook; message (the operator's word); outage (until when tickets
// are made to last after the database was away); trimmed (the last change that
// left the feed); round (how far the round of the parked has come); lost (when
// the line was begun anew); granted, departed, used, lapsed (totals, for rates).
//
// A sequence is epoch × 10⁹ + a counter, so that lines of one lecture sort by
// age. Time is Redis TIME, never a process's clock.
//
// # Guarantees
//
//   - A place is handed out once and never changes: refreshing, reconnecting, a
//     second device or a clock cannot move it.
//   - tickets + claims < floor(remaining × overbook / 100) when a ticket is
//     granted, in one script with the grant itself.
//   - Any number of instances, late or repeated calls are harmless: scripts check
//     first and write last, and a claim is only settled by who can name its
//     attempt and its end.
//   - While the database is away (seats older than 10 s) nothing is granted,
//     nothing runs out, nobody is parked, and tickets last at least 30 s beyond.
//
// # Loops
//
// Room.Run ticks admission for all active lectures, reconciles them with the
// database every 2 s, and rescans every 10 s for lines that the cache of active
// lectures lost. A hub runs for each lecture that somebody watches here: one
// peek a tick, however many watch.
package waitroom
