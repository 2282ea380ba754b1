package graphqlws

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// What an InitFunc returns, possibly wrapped, to say how the socket is closed.
// Any other error closes it with 1011.
var (
	// ErrUnauthenticated closes with 4401: stock clients give up.
	ErrUnauthenticated = errors.New("graphqlws: unauthenticated")
	// ErrForbidden closes with 4403: known, and not allowed in.
	ErrForbidden = errors.New("graphqlws: forbidden")
	// ErrUnavailable closes with 1013: clients come back after a pause.
	ErrUnavailable = errors.New("graphqlws: unavailable")
)

// InitFunc decides who is at the other end. It runs once a socket, on the
// payload of connection_init (nil when there was none), and is bounded by
// InitTimeout through ctx. Operations run under the context it returns, ack is
// sent along with the acknowledgement when not nil, and the socket is closed at
// expiry when that is not zero.
type InitFunc func(ctx context.Context, payload map[string]any) (_ context.Context, ack map[string]any, expiry time.Time, err error)

// Options configures a Transport. A zero field takes its default; a negative
// Max lifts that limit, except MaxFrame's and MaxSubscriptions', which always
// hold.
type Options struct {
	CheckOrigin func(*http.Request) bool     // who may upgrade; default: same origin, or no Origin header
	Init        InitFunc                     // who is there; default: everybody, anonymously
	Person      func(context.Context) string // whom MaxSocketsPerPerson counts, from the context after Init; "" is not counted; default: nobody
	Address     func(*http.Request) string   // whom MaxSocketsPerAddress counts; "" is not counted; default: nobody
	Log         *slog.Logger                 // where faults of the server are told; default: slog.Default()

	InitTimeout  time.Duration // from the upgrade to the acknowledgement; default 10 s
	WriteTimeout time.Duration // from a message being ready to its last byte being taken by the kernel; default 10 s
	PingInterval time.Duration // between signs of life asked of the peer, which is gone after two unanswered; default 25 s
	IdleTimeout  time.Duration // on which no operation runs; default 5 min
	DrainTimeout time.Duration // what queries and mutations in flight are given after Drain; default 5 s

	MaxFrame             int64 // bytes in a message from the client; default 64 KiB
	MaxMessages          int   // read per second, on average over some; what comes faster is read later; default 50
	MaxSubscriptions     int   // operations of any kind in flight on a socket; default 20
	MaxSockets           int   // in all; default 20,000
	MaxSocketsPerPerson  int   // default 20
	MaxSocketsPerAddress int   // default 5,000: a whole campus may share one
}

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Init == nil {
		o.Init = anonymous
	}
	o.InitTimeout = positiveOr(o.InitTimeout, 10*time.Second)
	o.WriteTimeout = positiveOr(o.WriteTimeout, 10*time.Second)
	o.PingInterval = positiveOr(o.PingInterval, 25*time.Second)
	o.IdleTimeout = positiveOr(o.IdleTimeout, 5*time.Minute)
	o.DrainTimeout = positiveOr(o.DrainTimeout, 5*time.Second)
	o.MaxFrame = positiveOr(o.MaxFrame, 64<<10)
	o.MaxMessages = cmp.Or(o.MaxMessages, 50)
	o.MaxSubscriptions = positiveOr(o.MaxSubscriptions, 20)
	o.MaxSockets = cmp.Or(o.MaxSockets, 20_000)
	o.MaxSocketsPerPerson = cmp.Or(o.MaxSocketsPerPerson, 20)
	o.MaxSocketsPerAddress = cmp.Or(o.MaxSocketsPerAddress, 5_000)
	return o
}

func positiveOr[N int | int64 | time.Duration](n, fallback N) N {
	if n > 0 {
		return n
	}
	return fallback
}

func anonymous(ctx context.Context, _ map[string]any) (context.Context, map[string]any, time.Time, error) {
	return ctx, nil, time.Time{}, nil
}
