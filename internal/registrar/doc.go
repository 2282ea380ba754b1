// Package registrar keeps the seats: it is the only package that writes SQL
// transactions. Seats is all that the database alone decides; Registrar adds
// what needs the waiting line beside it.
//
// # Who may have a seat
//
// An enrolment is a row. Three things in the database hold the guarantee, each
// of them enough: the lecture's row lock, under which every seat is taken and
// given back; a unique index over the active rows of a person and lecture; and
// a CHECK that enrolled_count lies between 0 and capacity. enrolled_count is
// kept, not counted, and moves only in the transaction that writes the row it
// counts. Every write of a lecture raises its seat_version, so that of two
// readings the line can tell the newer.
//
// # The way of an enrolment
//
//	Enroll ─ same person running here? ─ share its outcome
//	   │
//	room in the lecture's queue? ─ no ─► ErrUnavailable, ticket untouched
//	   │
//	Line.Claim ─ the ticket becomes a claim that lives 15 s
//	   │
//	queue of the lecture ─ take what waits, at most 500 ─► batch
//	   │
//	BEGIN · lock · cut-off · who has a row · who finds a seat · insert · count · COMMIT
//	   │
//	Line.Settle ─ once for the whole batch: in, line (full) or back
//
// A queue has no timer: while one batch commits, the next gathers. One caller
// alone therefore waits for nobody, and a thousand share one commit. Every
// lecture has a queue and, while there is work, a goroutine of its own, so a
// quiet lecture never waits behind a busy one. Several processes compete for
// the row lock; there is no leader.
//
// # What is decided, and when
//
// A member of a batch is inserted only if less than 8 s have passed since
// before its claim was sent, measured after the lock was got; the lock is a
// round trip of its own and nothing that writes is sent before its reply. So a
// slow transaction cannot outlive the claim that justifies it.
//
// Whoever concludes that there is no row holds the lock while concluding. When
// the answer to a COMMIT is lost, nobody is told no: the batch is read back
// under the lock, for which it must wait until that COMMIT has happened or
// cannot happen any more. If the lock is not got in time nothing is decided;
// the claims stay, and the line's reconciler asks Decide about them later.
//
// A row's id is the identity of the claim that led to it, in the form of a
// UUIDv7. So whoever settles a claim late knows its row even when the person has
// cancelled it since, and does not hand back the ticket that was used for it.
//
// A batch that the database refuses for what is in it is tried again by halves,
// down to the member that is to blame. One that fails because the database does
// not answer gives its tickets back.
//
// Callers come and go: a caller waits at most 8 s, and one that leaves changes
// nothing for the batch. What must happen afterwards runs on contexts of its
// own, each with a bound.
//
// # Two databases
//
// PostgreSQL and SQLite run the same code. SQLite has no row locks; its
// transactions begin IMMEDIATE (the DSN says so), which locks the database
// instead. Seats.lock is the one place that knows. Instants are in UTC and cut
// to the microsecond, as PostgreSQL keeps them.
package registrar
