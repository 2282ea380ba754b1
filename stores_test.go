package main

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"seatline/internal/testenv"
)

func TestRedisURLs(t *testing.T) {
	for urls, cluster := range map[string]bool{
		"redis://127.0.0.1:1/3":                        false,
		"rediss://user:pw@h:1/0":                       false,
		"redis://127.0.0.1:1/0, redis://127.0.0.1:2/0": true,
		"rediss://user:pw@a:1,rediss://user:pw@b:2":    true,
	} {
		rdb, err := newRedis(urls)
		if err != nil {
			t.Errorf("%s: %v", urls, err)
			continue
		}
		switch c := rdb.(type) {
		case *redis.Client:
			if cluster || !c.Options().ContextTimeoutEnabled || c.Options().ReadTimeout != redisTimeout || c.Options().MaxRetries != redisRetries {
				t.Errorf("%s: %+v", urls, c.Options())
			}
		case *redis.ClusterClient:
			if !cluster || !c.Options().ContextTimeoutEnabled || len(c.Options().Addrs) != 2 {
				t.Errorf("%s: %+v", urls, c.Options())
			}
		}
		rdb.Close()
	}
	for _, urls := range []string{"", "127.0.0.1:6379", "http://x", "redis://a:1/0,redis://pw@b:1/0", "redis://a:1/0,rediss://b:1/0", "redis://a:hunter2@b:c:d/0"} {
		if _, err := newRedis(urls); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", urls, err)
		}
	}
}

func TestAnEvictingRedisIsWarnedOf(t *testing.T) {
	for policy, warned := range map[string]bool{"volatile-lru": true, "noeviction": false} {
		t.Run(policy, func(t *testing.T) {
			redis := testenv.StartRedis(t, "--maxmemory-policy", policy)
			s := start(t, env{"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": redis.URL})
			s.awaitReady()
			if got := strings.Contains(s.log.String(), "level=WARN") && strings.Contains(s.log.String(), policy); got != warned {
				t.Errorf("warned: %v\n%s", got, s.log)
			}
		})
	}
}
