package waitroom

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// callTimeout bounds every call to Redis, whatever the caller's context says. With
// what counting the rate may take, most requests are answered within three seconds
// though Redis hangs; those that write SQL first, within four.
const callTimeout = 2 * time.Second

var (
	//go:embed lua/prelude.lua
	preludeLua string
	//go:embed lua/join.lua
	joinLua string
	//go:embed lua/admit.lua
	admitLua string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/settle.lua
	settleLua string
	//go:embed lua/overdue.lua
	overdueLua string
	//go:embed lua/sync.lua
	syncLua string
	//go:embed lua/touch.lua
	touchLua string
	//go:embed lua/leave.lua
	leaveLua string
	//go:embed lua/unmark.lua
	unmarkLua string
	//go:embed lua/people.lua
	peopleLua string
	//go:embed lua/peek.lua
	peekLua string
	//go:embed lua/drop.lua
	dropLua string
)

// A script is one verb of the line, with the keys it declares.
type script struct {
	name string
	lua  *redis.Script
	keys func(lineKeys) []string
}

// scripts are the verbs of the line. Every one may run twice, or late.
type scripts struct {
	join, admit, claim, settle, overdue, sync, touch, leave, unmark, people, peek, drop script
}

func newScripts() scripts {
	make := func(name, body string, keys func(lineKeys) []string) script {
		return script{name: name, lua: redis.NewScript(preludeLua + "\n" + body), keys: keys}
	}
	return scripts{
		join: make("join", joinLua, func(k lineKeys) []string {
			return []string{k.lecture, k.queue, k.tickets, k.claims, k.holds, k.parked, k.seen, k.expired, k.enrolled, k.changed, k.mirrors}
		}),
		admit: make("admit", admitLua, func(k lineKeys) []string {
			return []string{k.lecture, k.queue, k.tickets, k.claims, k.holds, k.parked, k.seen, k.expired, k.changed, k.mirrors}
		}),
		claim: make("claim", claimLua, func(k lineKeys) []string {
			return []string{k.lecture, k.tickets, k.claims, k.holds, k.expired, k.changed, k.mirrors}
		}),
		settle: make("settle", settleLua, func(k lineKeys) []string {
			return []string{k.lecture, k.queue, k.tickets, k.claims, k.holds, k.seen, k.enrolled, k.changed, k.mirrors}
		}),
		overdue: make("overdue", overdueLua, func(k lineKeys) []string {
			return []string{k.claims, k.holds}
		}),
		sync: make("sync", syncLua, func(k lineKeys) []string {
			return []string{k.lecture, k.tickets, k.enrolled}
		}),
		touch: make("touch", touchLua, func(k lineKeys) []string {
			return []string{k.lecture, k.queue, k.parked, k.seen, k.changed}
		}),
		leave: make("leave", leaveLua, func(k lineKeys) []string {
			return []string{k.lecture, k.queue, k.tickets, k.claims, k.holds, k.parked, k.seen, k.expired, k.changed, k.mirrors}
		}),
		unmark: make("unmark", unmarkLua, func(k lineKeys) []string {
			return []string{k.lecture, k.enrolled, k.changed}
		}),
		people: make("people", peopleLua, func(k lineKeys) []string {
			return []string{k.lecture, k.queue, k.tickets, k.claims, k.holds, k.parked, k.expired, k.enrolled}
		}),
		peek: make("peek", peekLua, func(k lineKeys) []string {
			return []string{k.lecture, k.queue, k.tickets, k.claims, k.parked, k.changed}
		}),
		drop: make("drop", dropLua, func(k lineKeys) []string {
			return []string{k.lecture, k.queue, k.tickets, k.claims, k.holds, k.parked, k.seen, k.expired, k.enrolled, k.changed, k.mirrors}
		}),
	}
}

// run calls a script by its hash and falls back to its text where the server
// does not have it (a restart, a failover, SCRIPT FLUSH).
func (r *Room) run(ctx context.Context, s script, id int, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v, err := s.lua.Run(ctx, r.rdb, s.keys(keysOf(id)), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, unavailable(s.name, err)
	}
	return v, nil
}

// call runs a script that answers with a code, alone or before a list.
func (r *Room) call(ctx context.Context, s script, id int, args ...any) (reply, error) {
	v, err := r.run(ctx, s, id, args...)
	if err != nil {
		return nil, err
	}
	if l, ok := v.([]any); ok {
		return l, nil
	}
	return reply{v}, nil
}
