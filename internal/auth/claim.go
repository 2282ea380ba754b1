package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// Claim is a claim and the value it must have, or have among its values. Dots in
// the name lead into objects, as in Keycloak's realm_access.roles; a claim whose
// whole name has dots in it, as a URL has, is found under that name first.
type Claim struct{ Name, Value string }

// maxClaimDots bounds the ways in which a name can be taken apart.
const maxClaimDots = 8

// ParseClaim reads "name=value". The name may contain "=", as a URL does, and is
// none of those that have a meaning in every token.
func ParseClaim(s string) (Claim, error) {
	i := strings.LastIndex(s, "=")
	if i <= 0 || i == len(s)-1 {
		return Claim{}, errors.New("not of the form name=value")
	}
	c := Claim{Name: s[:i], Value: s[i+1:]}
	if slices.Contains([]string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "name"}, c.Name) {
		return Claim{}, fmt.Errorf("%q means something else", c.Name)
	}
	if strings.Count(c.Name, ".") > maxClaimDots {
		return Claim{}, fmt.Errorf("its name has more than %d dots", maxClaimDots)
	}
	return c, nil
}

func (c Claim) String() string { return c.Name + "=" + c.Value }

// in reports whether the claims have c: as a string or in an array. A value of
// another type is nobody's right.
func (c Claim) in(claims jwt.MapClaims) bool {
	if c.Name == "" {
		return false
	}
	switch got := valueAt(claims, c.Name).(type) {
	case string:
		return got == c.Value
	case []any:
		return slices.Contains(got, any(c.Value))
	}
	return false
}

// valueAt is the value of a name, or of a path that dots lead along. Of several
// ways to read it, the one with the longest first name counts.
func valueAt(object map[string]any, path string) any {
	if v, ok := object[path]; ok {
		return v
	}
	for i := strings.LastIndex(path, "."); i > 0; i = strings.LastIndex(path[:i], ".") {
		if inner, ok := object[path[:i]].(map[string]any); ok {
			if v := valueAt(inner, path[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}
