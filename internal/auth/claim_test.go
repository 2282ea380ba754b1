package auth

import (
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

func TestParseClaim(t *testing.T) {
	for in, want := range map[string]Claim{
		"role=operator":                      {"role", "operator"},
		"realm_access.roles=operator":        {"realm_access.roles", "operator"},
		"https://id.example/c?a=roles=staff": {"https://id.example/c?a=roles", "staff"},
	} {
		if got, err := ParseClaim(in); err != nil || got != want || got.String() != in {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "=", "role", "role=", "=operator", "sub=kim", "exp=1", "name=x", strings.Repeat(".", 9) + "=x"} {
		if got, err := ParseClaim(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

// TestOperatorClaims of the shapes that identity providers give them.
func TestOperatorClaims(t *testing.T) {
	object := func(name string, value any) jwt.MapClaims { return jwt.MapClaims{name: value} }
	tests := []struct {
		name, claim string
		claims      jwt.MapClaims
		want        bool
	}{
		{"Keycloak's realm", "realm_access.roles=operator", object("realm_access", map[string]any{"roles": []any{"user", "operator"}}), true},
		{"Keycloak's client", "resource_access.seat.line.roles=operator", object("resource_access", map[string]any{"seat.line": map[string]any{"roles": []any{"operator"}}}), true},
		{"another client's", "resource_access.seatline.roles=operator", object("resource_access", map[string]any{"other": map[string]any{"roles": []any{"operator"}}}), false},
		{"a URL", "https://id.example/roles=operator", object("https://id.example/roles", []any{"operator"}), true},
		{"a name with dots", "a.b=operator", object("a.b", "operator"), true},
		{"a name with dots counts first", "a.b=operator", jwt.MapClaims{"a.b": "user", "a": map[string]any{"b": "operator"}}, false},
		{"groups", "groups=/seatline/operators", object("groups", []any{"/seatline/operators"}), true},
		{"the parent is the value", "realm_access.roles=operator", object("realm_access", "operator"), false},
		{"the parent is a list", "realm_access.roles=operator", object("realm_access", []any{map[string]any{"roles": "operator"}}), false},
		{"too deep", "role=operator", object("role", map[string]any{"role": "operator"}), false},
		{"a list in a list", "role=operator", object("role", []any{[]any{"operator"}}), false},
		{"null", "a.b=operator", object("a", map[string]any{"b": nil}), false},
		{"no claims", "a.b=operator", nil, false},
	}
	for _, test := range tests {
		o := options()
		var err error
		if o.OperatorClaim, err = ParseClaim(test.claim); err != nil {
			t.Fatal(err)
		}
		got, err := verifier(t, o).Verify(t.Context(), hs256(t, test.claims))
		if err != nil || got.Operator != test.want {
			t.Errorf("%s: %v, %v", test.name, got.Operator, err)
		}
	}
	// Who signs operators in by a nested claim is believed, too.
	o := options()
	o.OperatorClaim = Claim{"realm_access.roles", "operator"}
	token, _, err := guests(t, o).OperatorToken()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := verifier(t, o).Verify(t.Context(), token); err != nil || !got.Operator {
		t.Errorf("%+v, %v", got, err)
	}
}
