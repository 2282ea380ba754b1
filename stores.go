package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"seatline/ent"
	"seatline/internal/config"
	"seatline/internal/embedded"
	"seatline/internal/registrar"
	"seatline/migrations"
)

// stores are where the line and the seats are kept.
type stores struct {
	redis redis.UniversalClient
	ent   *ent.Client
	close func()
}

// open opens the stores of the settings: those within the process only where no
// others are named. There is no falling back from one to the other.
func (p *program) open(ctx context.Context) (*stores, error) {
	if p.cfg.Embedded() {
		e, err := embedded.Open(ctx, p.cfg.DataDir)
		if err != nil {
			return nil, err
		}
		return &stores{redis: e.Redis, ent: e.Ent, close: func() {
			if err := e.Close(); err != nil {
				p.log.Warn("closing the embedded stores", "error", err)
			}
		}}, nil
	}
	return connect(ctx, p.cfg, p.log)
}

// connect connects to PostgreSQL and Redis, waiting for those that are still
// starting, for START_TIMEOUT at most.
func connect(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *stores, err error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	rdb, err := newRedis(string(cfg.RedisURL))
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	client, db, shut, err := registrar.OpenPostgres(context.WithoutCancel(ctx), string(cfg.DatabaseURL))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("DATABASE_URL: %w", err), rdb.Close())
	}
	s := &stores{redis: rdb, ent: client, close: func() {
		if err := rdb.Close(); err != nil {
			log.Warn("closing redis", "error", err)
		}
		shut()
	}}
	if err := s.await(ctx, db, cfg, log); err != nil {
		s.close()
		return nil, err
	}
	warnOfEviction(ctx, rdb, log)
	return s, nil
}

func (s *stores) await(ctx context.Context, db *sql.DB, cfg config.Config, log *slog.Logger) error {
	if err := persist(ctx, log, "REDIS_URL", "redis", func(ctx context.Context) error { return s.redis.Ping(ctx).Err() }); err != nil {
		return err
	}
	if err := persist(ctx, log, "DATABASE_URL", "the database", db.PingContext); err != nil {
		return err
	}
	return persist(ctx, log, "MIGRATE", "the database's schema", func(ctx context.Context) error {
		if cfg.Migrate {
			return migrations.Apply(ctx, db)
		}
		done, err := migrations.Applied(ctx, db)
		if err == nil && !done {
			err = errors.New("migrations are missing, and MIGRATE is off")
		}
		return err
	})
}

// persist tries until it works or ctx ends, more and more slowly.
func persist(ctx context.Context, log *slog.Logger, setting, what string, try func(context.Context) error) error {
	const attempt, slowest = 10 * time.Second, 2 * time.Second
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, slowest) {
		bounded, cancel := context.WithTimeout(ctx, attempt)
		err := try(bounded)
		cancel()
		if err == nil {
			return nil
		}
		log.Warn(what+" is not ready yet", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%s: %s did not become ready in time: %w", setting, what, err)
		}
	}
}

const (
	redisTimeout = 2 * time.Second
	redisRetries = 2
)

// newRedis is a client of one server or, with several URLs, of a cluster. Each
// command is bounded: by its context, and by a timeout of its own.
func newRedis(urls string) (redis.UniversalClient, error) {
	o := &redis.UniversalOptions{
		ContextTimeoutEnabled:    true, // or no deadline of a context holds
		DialTimeout:              redisTimeout,
		ReadTimeout:              redisTimeout,
		WriteTimeout:             redisTimeout,
		PoolTimeout:              redisTimeout,
		MaxRetries:               redisRetries,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for text := range strings.SplitSeq(urls, ",") {
		one, err := redis.ParseURL(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.New("it is not a URL of the form redis://host:port/0") // the library's error would repeat it
		}
		if len(o.Addrs) > 0 && (one.Username != o.Username || one.Password != o.Password || one.DB != o.DB || (one.TLSConfig == nil) != (o.TLSConfig == nil)) {
			return nil, errors.New("the nodes of a cluster must have the same user, password, database and scheme")
		}
		o.Addrs = append(o.Addrs, one.Addr)
		o.Username, o.Password, o.DB, o.TLSConfig = one.Username, one.Password, one.DB, one.TLSConfig
	}
	if o.TLSConfig != nil && len(o.Addrs) > 1 {
		o.TLSConfig.ServerName = "" // each node's own, not the first one's
	}
	return redis.NewUniversalClient(o), nil
}

// warnOfEviction says so when Redis may throw the line away to make room. A
// server that does not let itself be asked is left in peace.
func warnOfEviction(ctx context.Context, rdb redis.UniversalClient, log *slog.Logger) {
	const setting = "maxmemory-policy"
	policy, err := rdb.ConfigGet(ctx, setting).Result()
	if err != nil || policy[setting] == "" || policy[setting] == "noeviction" {
		return
	}
	log.Warn("redis may evict the waiting line when it runs out of memory: set maxmemory-policy to noeviction", setting, policy[setting])
}
