package waitroom

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s spaced[string]
		due := func(key string, want bool) {
			t.Helper()
			if got := s.due(key, time.Minute); got != want {
				t.Errorf("%s is due: %v, want %v", key, got, want)
			}
		}
		due("a", true)
		due("a", false)
		due("b", true)
		time.Sleep(59 * time.Second)
		due("a", false)
		time.Sleep(time.Second)
		due("a", true)
		s.forget("b")
		due("b", true)
	})
}
