package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestValidUserKey(t *testing.T) {
	good := []string{
		"a", "kim", "Kim", "kim ", "서울", "caf\u00e9", "cafe\u0301", "😀", "a:b{c}%2F/..", "\u00a0", "guest-abc",
		strings.Repeat("x", 128), strings.Repeat("é", 64),
	}
	for _, key := range good {
		if err := ValidUserKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	bad := map[string]string{
		"empty":           "",
		"129 bytes":       strings.Repeat("x", 129),
		"130 bytes":       strings.Repeat("é", 65),
		"NUL":             "a\x00b",
		"newline":         "a\nb",
		"escape":          "\x1b[31m",
		"DEL":             "a\x7f",
		"C1":              "a\u0085b",
		"last C1":         "\u009f",
		"not UTF-8":       "a\xff",
		"half a rune":     "\xe2\x82",
		"surrogate":       "\xed\xa0\x80",
		"overlong":        "\xc0\xaf",
		"replaced before": "a\ufffd",
	}
	for name, key := range bad {
		if err := ValidUserKey(key); !errors.Is(err, ErrInvalidUserKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzValidUserKey(f *testing.F) {
	for _, key := range []string{"kim", "\xed\xa0\x80", "a\x00b", "cafe\u0301", "a:b{c}%2F", "\u202e", "\ufeffkim", "\u2028", strings.Repeat("é", 64), "👩‍🚀\ufe0f"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if ValidUserKey(key) != nil {
			return
		}
		// What passes survives every transport that decodes as UTF-8 text.
		if len(key) == 0 || len(key) > 128 || string([]rune(key)) != key || strings.ContainsAny(key, "\x00\n\r\x7f\u0085\ufffd") {
			t.Errorf("%q passed", key)
		}
	})
}

func TestContext(t *testing.T) {
	if v, ok := FromContext(t.Context()); ok {
		t.Errorf("a viewer out of nothing: %v", v)
	}
	want := Viewer{UserKey: "kim", Name: "Kim", Operator: true}
	ctx := context.WithValue(NewContext(t.Context(), want), "viewer", Viewer{UserKey: "eve"}) //nolint:revive,staticcheck // the point: a key of another type
	if got, ok := FromContext(ctx); !ok || got != want {
		t.Errorf("got %v, %v", got, ok)
	}
}
