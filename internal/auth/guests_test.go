package auth

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func guests(t *testing.T, o Options) *Guests {
	t.Helper()
	g, err := NewGuests(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGuests(t *testing.T) {
	o := options()
	v, g := verifier(t, o), guests(t, o)
	seen := map[string]bool{}
	for _, name := range []string{"Minji", "  민지 ", "Minji", strings.Repeat("민", 64)} {
		token, viewer, err := g.Start(name)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		got, err := v.Verify(t.Context(), token)
		if err != nil || got != viewer {
			t.Errorf("%q: verified as %+v, %v; issued as %+v", name, got, err, viewer)
		}
		if got.Name != strings.TrimSpace(name) || got.Operator || got.ExpiresAt != now.Add(24*time.Hour) {
			t.Errorf("%q: %+v", name, got)
		}
		if !strings.HasPrefix(got.UserKey, "guest-") || len(got.UserKey) != len("guest-")+26 || seen[got.UserKey] {
			t.Errorf("%q has the key %q", name, got.UserKey)
		}
		seen[got.UserKey] = true
	}
	for _, name := range []string{"", "  ", "a\nb", "\x1b[31m", strings.Repeat("x", 65), "\xff"} {
		if token, _, err := g.Start(name); !errors.Is(err, ErrInvalidName) || token != "" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestOperatorToken(t *testing.T) {
	o := options()
	token, viewer, err := guests(t, o).OperatorToken()
	if err != nil {
		t.Fatal(err)
	}
	got, err := verifier(t, o).Verify(t.Context(), token)
	if err != nil || got != viewer || !got.Operator {
		t.Errorf("verified as %+v, %v; issued as %+v", got, err, viewer)
	}
	o.Secret = []byte(strings.Repeat("another", 5))
	if got, err := verifier(t, o).Verify(t.Context(), token); !errors.Is(err, ErrInvalidToken) {
		t.Errorf("with another secret: %+v, %v", got, err)
	}
	o.OperatorClaim = Claim{}
	if _, _, err := guests(t, o).OperatorToken(); err == nil {
		t.Error("an operator where nothing makes one")
	}
}
