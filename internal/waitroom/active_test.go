package waitroom_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seatline/internal/testenv"
	"seatline/internal/waitroom"
)

// TestMalformedActive: what is no lecture id in the cache is dropped, and never
// in the way of those that are.
func TestMalformedActive(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		if err := s.rdb.SAdd(t.Context(), "lectures:active", "", "x", "007", "-1", strings.Repeat("9", 40)).Err(); err != nil {
			t.Fatal(err)
		}
		id := in.newLecture(t, 0, nil)
		in.join(t, id, "first")
		s.setCapacity(t, in, id, 1)
		in.awaitStatus(t, id, "first", waitroom.Admitted, 5*time.Second)
		testenv.Eventually(t, 5*time.Second, func() bool {
			m, err := s.rdb.SMembers(t.Context(), "lectures:active").Result()
			return err == nil && len(m) == 1
		}, "malformed members stay")
	})
}

// TestActiveOfAnotherKind: what is no set in the cache's place goes, too.
func TestActiveOfAnotherKind(t *testing.T) {
	onEvery(t, func(t *testing.T, s stores) {
		in := s.start(t, waitroom.Options{})
		id := in.newLecture(t, 0, nil)
		in.join(t, id, "first")
		beat := s.line(t, id).hash["beat"]
		testenv.Eventually(t, 10*time.Second, func() bool { return s.line(t, id).hash["beat"] != beat }, "not ticked at all")
		if err := s.rdb.Set(t.Context(), "lectures:active", "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		// In SQL, so that only the loops can find out.
		if _, err := s.db.ExecContext(t.Context(), "UPDATE lectures SET capacity = 1"); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 9*time.Second, func() bool { return len(s.line(t, id).tickets) == 1 }, "the line rests until the rescan")
		testenv.Eventually(t, 30*time.Second, func() bool {
			listed, err := s.rdb.SMembers(t.Context(), "lectures:active").Result()
			return err == nil && slices.Equal(listed, []string{fmt.Sprint(id)})
		}, "the cache is never one again")
	})
}

// noCache is a Redis whose list of active lectures cannot be read, as when the
// node of a cluster that has it is away.
type noCache struct{}

func (noCache) DialHook(next redis.DialHook) redis.DialHook { return next }

func (noCache) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (noCache) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "smembers" || cmd.Name() == "sadd" {
			err := errors.New("the node is away")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// TestActiveOutOfReach: the lines that are known go on without the cache, and so
// do those that somebody watches.
func TestActiveOutOfReach(t *testing.T) {
	s := realStores(t)
	in := s.start(t, waitroom.Options{})
	known, watched := in.newLecture(t, 0, nil), in.newLecture(t, 0, nil)
	in.join(t, known, "first")
	beat := s.line(t, known).hash["beat"]
	testenv.Eventually(t, 10*time.Second, func() bool { return s.line(t, known).hash["beat"] != beat }, "not ticked at all")
	s.rdb.AddHook(noCache{})
	in.join(t, watched, "first")
	if _, err := in.room.Watch(t.Context(), watched, "first"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []int{known, watched} { // in SQL, so that only the loops can find out
		if _, err := s.db.ExecContext(t.Context(), "UPDATE lectures SET capacity = 1 WHERE id = $1", id); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 20*time.Second, func() bool { return len(s.line(t, id).tickets) == 1 }, fmt.Sprint("line ", id, " stands still"))
	}
}
