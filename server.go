// Seatline is a waiting line that knows the seats: first come, first served
// enrolment for lectures, as a GraphQL service with live positions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/sync/errgroup"

	"seatline/graph"
	"seatline/internal/config"
	"seatline/internal/graphqlws"
	"seatline/internal/registrar"
	"seatline/internal/waitroom"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	logging.Disable()            // go-redis writes past our log what every failed call says in it
	err := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintln(os.Stderr, "seatline:", err)
		os.Exit(1)
	}
}

// run is the whole program: until ctx ends, and then until all is finished that
// had begun. What there is to open is written to stdout, the log to stderr.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) error {
	cfg, err := config.Load(args, lookup, stdout)
	if err != nil {
		return err
	}
	if cfg.Healthcheck {
		return cfg.CheckHealth(ctx)
	}
	log := slog.New(cfg.Log(stderr))
	for _, warning := range cfg.Warnings() {
		log.Warn(warning)
	}
	listener, err := listen(ctx, cfg)
	if err != nil {
		return err
	}
	log.Info("listening", "addr", listener.Addr().String())
	front := newFront(cfg.Metrics)
	p := &program{cfg: cfg, log: log, stdout: stdout, listener: listener, front: front, server: &http.Server{
		Handler:           graph.WithRequestIDs(timed(front, cfg.ReadTimeout)),
		ReadHeaderTimeout: cfg.ReadTimeout,
		WriteTimeout:      cfg.ReadTimeout + cfg.RequestTimeout + cfg.WriteTimeout, // streams set their own, piece by piece
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	return p.run(ctx)
}

// program is a server and what it serves. The front answers from the first
// moment; behind it, the stores may take their time.
type program struct {
	cfg      config.Config
	log      *slog.Logger
	stdout   io.Writer
	listener net.Listener
	server   *http.Server
	front    *front
}

// run serves until ctx ends or something fails. Whatever stops it stops all of
// it, in order: who talks to people first, then the line and the registrar,
// which those conversations need, then the stores.
func (p *program) run(ctx context.Context) error {
	// The long runners outlive the signal until requests are answered.
	work, finish := context.WithCancel(context.WithoutCancel(ctx))
	defer finish()
	g, stopping := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error { return p.work(stopping, work) })
	g.Go(func() error {
		<-stopping.Done()
		defer finish()
		return p.stop()
	})
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-after(stopping, p.cfg.ShutdownTimeout):
		return errors.New("stopping took longer than SHUTDOWN_TIMEOUT")
	}
}

// after is closed some time after ctx is done.
func after(ctx context.Context, d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(d, func() { close(over) }) })
	return over
}

// work opens the stores, puts what they are for behind the front, and keeps it
// going until work ends.
func (p *program) work(stopping, work context.Context) error {
	stores, err := p.open(stopping)
	if err != nil {
		if stopping.Err() != nil {
			return nil // told to stop before the stores answered
		}
		return err
	}
	defer stores.close()
	who, err := p.identify(stopping)
	if err != nil {
		if stopping.Err() != nil {
			return nil
		}
		return err
	}
	placeKey, err := p.cfg.PlaceKey()
	if err != nil {
		return err
	}
	seats := registrar.Open(stores.ent, registrar.Options{Log: p.log})
	room := waitroom.New(stores.redis, seats, waitroom.Options{
		Tick: p.cfg.Tick, PresenceGrace: p.cfg.PresenceGrace, ParkedFor: p.cfg.ParkedFor, PlaceKey: placeKey, Log: p.log,
	})
	reg := registrar.New(seats, room)
	g, ctx := errgroup.WithContext(work)
	g.Go(func() error { return who.run(ctx) })
	g.Go(func() error { return room.Run(ctx) })
	g.Go(func() error { return reg.Run(ctx) })
	if p.cfg.Embedded() {
		if err := createDemo(stopping, reg); err != nil {
			p.log.Warn("the demo lectures could not be created", "error", err)
		}
	}
	p.front.open(p.api(stores, who, room, reg), room, reg, stores.redis)
	p.greet(who)
	return g.Wait()
}

// api is GraphQL over the line and the seats.
func (p *program) api(stores *stores, who *identity, room *waitroom.Room, reg *registrar.Registrar) *graph.Handler {
	c := p.cfg
	return graph.NewHandler(graph.Options{
		Resolver: graph.NewResolver(room, reg, who.guests),
		Roster:   reg.Seats,
		Verifier: who.verifier,
		Origins:  c.AllowedOrigins,
		Proxies:  c.TrustedProxies,
		Limits: graph.Limits{
			BodyBytes: c.MaxBody, ParserTokens: c.ParserTokens, Depth: c.MaxDepth, Complexity: c.MaxComplexity, MutationFields: c.MaxMutations,
			BodyTime: c.ReadTimeout, RequestTime: c.RequestTimeout, WriteTime: c.WriteTimeout, KeepAlive: c.Keepalive,
		},
		PersonRate:  waitroom.NewRate(stores.redis, "person", c.RatePerPerson, c.BurstPerPerson),
		AddressRate: waitroom.NewRate(stores.redis, "address", c.RatePerAddress, c.BurstPerAddress),
		Sockets: graphqlws.Options{
			InitTimeout: c.InitTimeout, WriteTimeout: c.WriteTimeout, PingInterval: c.Keepalive, DrainTimeout: c.ShutdownTimeout / 2,
			IdleTimeout: c.SocketIdleTimeout, MaxFrame: c.MaxFrame, MaxMessages: c.MaxMessages, MaxSubscriptions: c.MaxSubscriptions,
			MaxSockets: c.MaxSockets, MaxSocketsPerPerson: c.MaxSocketsPerPerson, MaxSocketsPerAddress: c.MaxSocketsPerAddress,
		},
		Introspection: c.Introspection,
		Log:           p.log,
	})
}

// stop turns newcomers away with a 503, lets requests in flight finish, and sends
// sockets and streams away; those that would not go in time are cut. The port is
// closed only then: a balancer hears a refusal better than silence.
func (p *program) stop() error {
	p.log.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.ShutdownTimeout*7/10)
	defer cancel()
	p.server.SetKeepAlivesEnabled(false)
	if err := errors.Join(p.front.shut(ctx), p.server.Shutdown(ctx)); err != nil {
		p.log.Warn("some requests were cut short", "error", err)
		return p.server.Close()
	}
	return nil
}
