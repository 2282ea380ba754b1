package waitroom

import (
	"testing"
	"time"
)

// TestAClosedLineIsIdle: people whom nobody will admit any more are no reason
// to tick their lecture for ever; a reopened one is ticked again.
func TestAClosedLineIsIdle(t *testing.T) {
	t.Parallel()
	w := newFeedWorld(t)
	w.join(t, "first", "second")
	idle := func() bool {
		t.Helper()
		a, err := w.room.admit(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return a.idle()
	}
	if idle() {
		t.Error("two wait, and the line is idle")
	}
	f := facts(2, 0)
	f.ClosesAt = time.Now().Add(-time.Minute)
	if err := w.room.Changed(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if !idle() {
		t.Error("the line of a closed lecture is not idle")
	}
	if err := w.room.retire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := w.room.Changed(t.Context(), facts(3, 0)); err != nil {
		t.Fatal(err)
	}
	if idle() {
		t.Error("reopened, two wait, and the line is idle")
	}
	if listed := w.room.rdb.SIsMember(t.Context(), activeKey, 1).Val(); !listed {
		t.Error("the reopened lecture is not ticked")
	}
}
