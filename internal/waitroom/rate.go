package waitroom

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

// rateTimeout bounds one call: whoever asks is not to wait for this for long.
const rateTimeout = time.Second

//go:embed lua/rate.lua
var rateLua string

// Rate is how often each of many may ask, counted in Redis and by its clock, so
// that it holds over all instances. It is no part of any line; it is here
// because Redis and its scripts are.
type Rate struct {
	rdb       redis.UniversalClient
	script    *redis.Script
	kind      string
	perSecond int
	burst     int
}

// NewRate is a rate for those of one kind, a word: perSecond on average, and
// burst at once after a pause. Without a perSecond there is no limit.
func NewRate(rdb redis.UniversalClient, kind string, perSecond, burst int) *Rate {
	return &Rate{rdb: rdb, script: redis.NewScript(rateLua), kind: kind, perSecond: perSecond, burst: max(burst, perSecond)}
}

// Burst is the most that can ever be taken at once; 0 where there is no limit.
func (r *Rate) Burst() int {
	if r.perSecond <= 0 {
		return 0
	}
	return r.burst
}

// Take takes n of who's allowance. Where there is less than that it takes
// nothing and returns how long to wait; for more than Burst, as long as for
// that. lecture.ErrUnavailable: it could not be counted.
func (r *Rate) Take(ctx context.Context, who string, n int) (wait time.Duration, err error) {
	if r.perSecond <= 0 || n <= 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, rateTimeout)
	defer cancel()
	ms, err := r.script.Run(ctx, r.rdb, []string{rateKey(r.kind, who)}, r.perSecond, r.burst, min(n, r.burst)).Int64()
	if err != nil {
		return 0, unavailable("rate", err)
	}
	return time.Duration(ms) * time.Millisecond, nil
}
