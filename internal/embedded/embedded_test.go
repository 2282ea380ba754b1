package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seatline/ent"
	"seatline/ent/enrollment"
	"seatline/ent/lecture"
	"seatline/internal/embedded"
	"seatline/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *embedded.Stores {
	t.Helper()
	s, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shut(t *testing.T, s *embedded.Stores) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSeatsSurviveInAFolder(t *testing.T) {
	// A path that would mean something else, unescaped.
	dir := filepath.Join(t.TempDir(), "semester 50% ?#&", "data")
	opens := time.Date(2026, 3, 2, 9, 0, 0, 123456000, time.FixedZone("KST", 9*3600))
	s := open(t, dir)
	created, err := s.Ent.Lecture.Create().SetTitle("서울의 역사").SetCapacity(3).SetOpensAt(opens).Save(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shut(t, s)

	s = open(t, dir)
	defer shut(t, s)
	// By equality, which only one of the driver's ways to write times allows.
	got, err := s.Ent.Lecture.Query().Where(lecture.OpensAtEQ(opens)).Only(t.Context())
	if err != nil || got.ID != created.ID || got.Title != "서울의 역사" || !got.OpensAt.Equal(opens) {
		t.Errorf("after reopening: %v, %v", got, err)
	}
	if n, err := s.Redis.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("the line holds %d keys, %v", n, err)
	}
}

func TestTemporaryFolderIsRemoved(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	s := open(t, "")
	if entries, err := os.ReadDir(tmp); err != nil || len(entries) != 1 {
		t.Errorf("%d folders, %v", len(entries), err)
	}
	shut(t, s)
	if entries, err := os.ReadDir(tmp); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestSeveralAtATime: a program that embeds this one, or a test, may.
func TestSeveralAtATime(t *testing.T) {
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			s, err := embedded.Open(t.Context(), "")
			if err != nil {
				t.Error(err)
				return
			}
			shut(t, s)
		})
	}
	all.Wait()
}

func TestFolderIsOfOneProcess(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	if s, err := embedded.Open(t.Context(), dir); !errors.Is(err, embedded.ErrInUse) {
		t.Errorf("a second time: %v, %v", s, err)
	}
	if err := first.Redis.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Errorf("the first one suffered: %v", err)
	}
	shut(t, first)
	shut(t, open(t, dir))
}

func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := embedded.Open(t.Context(), file); err == nil {
		t.Errorf("in a file: %v", s)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "seats.db"), []byte("this was never a database, whatever its name says"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := embedded.Open(t.Context(), dir); err == nil {
		t.Errorf("over another file: %v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := embedded.Open(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", s, err)
	}
}

// TestWritersTakeTurns: transactions that read and then write, 64 at once, all
// succeed and none writes over another's reading.
func TestWritersTakeTurns(t *testing.T) {
	s := open(t, "")
	defer shut(t, s)
	ctx := t.Context()
	l, err := s.Ent.Lecture.Create().SetTitle("t").SetCapacity(1000).Save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 64, 4
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if err := enrol(ctx, s.Ent, l.ID, fmt.Sprintf("user-%d-%d", w, i)); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
				if _, err := s.Ent.Enrollment.Query().Where(enrollment.LectureID(l.ID)).Count(ctx); err != nil {
					t.Errorf("reader %d: %v", w, err)
				}
			}
		})
	}
	all.Wait()
	l, err = s.Ent.Lecture.Get(ctx, l.ID)
	if err != nil || l.EnrolledCount != writers*each {
		t.Errorf("%v, %v", l, err)
	}
}

func enrol(ctx context.Context, client *ent.Client, id int, user string) error {
	tx, err := client.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after the commit there is nothing to roll back
	l, err := tx.Lecture.Get(ctx, id)
	if err != nil {
		return err
	}
	n := l.EnrolledCount + 1
	if err := tx.Enrollment.Create().SetID(uuid.Must(uuid.NewV7())).SetLectureID(id).SetUserKey(user).SetNumber(n).Exec(ctx); err != nil {
		return err
	}
	if err := tx.Lecture.UpdateOneID(id).SetEnrolledCount(n).Exec(ctx); err != nil {
		return err
	}
	return tx.Commit()
}

// TestForeignKeysHoldOnEveryConnection holds many connections at once, so that
// none is the one that was set up first.
func TestForeignKeysHoldOnEveryConnection(t *testing.T) {
	s := open(t, "")
	defer shut(t, s)
	for i := range s.DB.Stats().MaxOpenConnections {
		conn, err := s.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for pragma, want := range map[string]string{"foreign_keys": "1", "journal_mode": "wal", "busy_timeout": "10000"} {
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("connection %d: %s is %s, %v", i, pragma, got, err)
			}
		}
	}
}

func TestUnknownLectureIsRefused(t *testing.T) {
	s := open(t, "")
	defer shut(t, s)
	err := s.Ent.Enrollment.Create().SetID(uuid.Must(uuid.NewV7())).SetLectureID(7).SetUserKey("kim").SetNumber(1).Exec(t.Context())
	if !sqlgraph.IsForeignKeyConstraintError(err) {
		t.Errorf("an enrolment in no lecture: %v", err)
	}
}

func TestLineExpires(t *testing.T) {
	s := open(t, "")
	defer shut(t, s)
	if err := s.Redis.Set(t.Context(), "ticket", "7", 60*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Redis.Get(t.Context(), "ticket").Result(); err != nil || got != "7" {
		t.Errorf("at once: %q, %v", got, err)
	}
	testenv.Eventually(t, 10*time.Second, func() bool {
		return errors.Is(s.Redis.Get(t.Context(), "ticket").Err(), redis.Nil)
	}, "the ticket runs out")
}

// TestLongPipelines: a pipeline is sent whole before its answers are read, long
// as both may be.
func TestLongPipelines(t *testing.T) {
	s := open(t, "")
	defer shut(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const commands = 5000
	value := strings.Repeat("x", 1000)
	pipe := s.Redis.Pipeline()
	for range commands {
		pipe.Echo(ctx, value)
	}
	answers, err := pipe.Exec(ctx)
	if err != nil || len(answers) != commands {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for _, answer := range answers {
		if got := answer.(*redis.StringCmd).Val(); got != value {
			t.Fatalf("answered %q", got)
		}
	}
}

func TestLineRunsScriptsAndKeepsDeadlines(t *testing.T) {
	s := open(t, "")
	defer shut(t, s)
	script := redis.NewScript(`return redis.call("ZADD", KEYS[1], "NX", ARGV[1], "kim")`)
	for i, want := range []int64{1, 0} {
		if got, err := script.Run(t.Context(), s.Redis, []string{"queue"}, 1).Int64(); err != nil || got != want {
			t.Errorf("run %d: %d, %v", i, got, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Redis.BLPop(ctx, time.Minute, "nothing").Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %v", err)
	}
}
