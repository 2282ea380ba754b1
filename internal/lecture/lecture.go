// Package lecture holds the words that the line (waitroom) and the seats
// (registrar) share, so that neither needs to know the other. It does no I/O.
package lecture

import (
	"errors"
	"strconv"
	"time"
)

var (
	// ErrNotFound says that there is no lecture with this id.
	ErrNotFound = errors.New("no such lecture")
	// ErrUnavailable says that a store did not answer in time or refused.
	// Nothing was decided that asking again could spoil.
	ErrUnavailable = errors.New("temporarily unavailable")
)

// ParseID reads an id as Seatline writes it: a positive decimal without sign or
// leading zeros. Anything else is not ours and gives false, so it never reaches
// a store.
func ParseID(s string) (int, bool) {
	id, err := strconv.Atoi(s)
	if err != nil || id <= 0 || strconv.Itoa(id) != s {
		return 0, false
	}
	return id, true
}

// Facts is one reading of a lecture's row: all that its line needs to know.
type Facts struct {
	ID        int
	Epoch     int64 // raised whenever the line is built anew
	Version   int64 // raised by every write of the row: the newer reading wins
	Capacity  int
	Remaining int       // free seats: capacity − enrolled
	OpensAt   time.Time // zero = at once
	ClosesAt  time.Time // zero = never
	Settings  Settings
}

// Settings is how an operator runs a line. Bounds are protocol.md's and are
// held by CHECKs: AdmitPerSecond 0.01..10000, Burst 1..10000,
// TicketTTLSeconds 1..3600, OverbookPercent 100..200.
type Settings struct {
	Paused           bool
	AdmitPerSecond   float64
	Burst            int
	TicketTTLSeconds int
	OverbookPercent  int
	Message          *string // a word to everyone who waits
}

// Seats is the part of a reading that a settlement carries.
type Seats struct {
	Version   int64
	Remaining int // −1 = not read
}

// Seats is the seats of these facts.
func (f Facts) Seats() Seats { return Seats{Version: f.Version, Remaining: f.Remaining} }

// ClaimStatus is the line's answer to somebody who wants to use a ticket.
type ClaimStatus int

// The answers to a claim.
const (
	ClaimNone    ClaimStatus = iota // no ticket
	ClaimOK                         // the ticket is now an enrolment in flight
	ClaimBusy                       // another attempt of the same person is in flight until Claim.Until
	ClaimExpired                    // the ticket ran out
	ClaimClosed                     // the lecture has closed
)

// ClaimLife is how long a claim holds its seat before the reconciler decides
// about it (protocol.md rule 2).
const ClaimLife = 15 * time.Second

// Claim is an enrolment in flight. (Attempt, Until) is its identity: a
// settlement that presents another one changes no person, and the row that the
// claim leads to bears it in its id.
type Claim struct {
	Status  ClaimStatus
	User    string
	Attempt string // 16 hex digits
	Until   int64  // Redis time, ms; the reconciler decides after it
}

// Verdict is how a claim ends.
type Verdict string

// The verdicts.
const (
	In   Verdict = "in"   // there is a row: enrolled now or before
	Back Verdict = "back" // nothing was decided: the ticket again, with its deadline
	Full Verdict = "line" // no seat: back in line at the old place
)

// Settlement ends one claim.
type Settlement struct {
	User    string
	Attempt string
	Until   int64
	Verdict Verdict
}
