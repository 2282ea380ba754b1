package testenv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const slots = 16384

// RedisCluster returns the URLs, separated by commas, of the three nodes of the
// Redis Cluster of this test process, emptied for this test. Tests that use it
// must not run in parallel.
func RedisCluster(tb testing.TB) string {
	tb.Helper()
	nodes := env.cluster.get(tb, launchCluster)
	urls := make([]string, len(nodes))
	for i, n := range nodes {
		withRedis(tb, n.URL, func(ctx context.Context, c *redis.Client) error {
			return c.FlushAll(ctx).Err()
		})
		urls[i] = n.URL
	}
	return strings.Join(urls, ",")
}

// launchCluster starts three masters that share the slots, and waits until each
// of them knows the others and agrees.
func launchCluster() ([]*Server, error) {
	const masters = 3
	nodes := make([]*Server, masters)
	for i := range nodes {
		var err error
		nodes[i], err = launchRedis([]string{
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "5000",
		})
		if err != nil {
			return nil, err
		}
	}
	for i, n := range nodes {
		if err := onRedis(n.URL, func(ctx context.Context, c *redis.Client) error {
			first, last := i*slots/masters, (i+1)*slots/masters-1
			if err := c.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
				return err
			}
			// Distinct epochs, or the nodes would first have to settle a conflict.
			if err := c.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
				return err
			}
			if i == 0 {
				return nil
			}
			return c.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(nodes[0].port)).Err()
		}); err != nil {
			return nil, err
		}
	}
	if !poll(startWithin, func() bool { return agreed(nodes) }) {
		return nil, fmt.Errorf("testenv: the Redis Cluster did not come up within %v\n%s", startWithin, lastLines(nodes[0].log()))
	}
	return nodes, nil
}

// agreed reports whether every node sees all slots served by all nodes.
func agreed(nodes []*Server) bool {
	for _, n := range nodes {
		if err := onRedis(n.URL, func(ctx context.Context, c *redis.Client) error {
			info, err := c.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, fmt.Sprintf("cluster_size:%d\r\n", len(nodes))) {
				return errors.New("not yet")
			}
			return nil
		}); err != nil {
			return false
		}
	}
	return true
}
