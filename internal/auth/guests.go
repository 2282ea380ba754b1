package auth

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// sessionFor is how long the tokens that Guests issues are good for.
const sessionFor = 24 * time.Hour

// Guests issues the tokens of people who sign in with nothing but a name, and of
// the operator of a server that has no other accounts. It is for trying Seatline
// out: whoever asks becomes a new person.
type Guests struct{ options Options }

// NewGuests returns an issuer of tokens that a Verifier with the same options
// accepts, or an error without a secret.
func NewGuests(o Options) (*Guests, error) {
	o.Keys = nil // whoever gives those out signs with keys of its own
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	return &Guests{options: o}, nil
}

// maxGuestName is the schema's word; tokens of other origin may hold longer names.
const maxGuestName = 64 // characters

// Start signs a new person in under a name, which is an ErrInvalidName unless it
// is 1 to 64 characters, without control characters, when space around it has
// been taken away.
func (g *Guests) Start(name string) (token string, v Viewer, err error) {
	name = strings.TrimSpace(name)
	if !validName(name) || utf8.RuneCountInString(name) > maxGuestName {
		return "", Viewer{}, fmt.Errorf("%w: 1 to %d characters, none of them a control character", ErrInvalidName, maxGuestName)
	}
	// rand.Text is 26 letters and digits of base 32: at least 128 bits, so that
	// no two guests are one and nobody guesses another.
	return g.issue(Viewer{UserKey: "guest-" + strings.ToLower(rand.Text()), Name: name})
}

// OperatorToken signs an operator in. It needs an OperatorClaim.
func (g *Guests) OperatorToken() (token string, v Viewer, err error) {
	if g.options.OperatorClaim.Name == "" {
		return "", Viewer{}, fmt.Errorf("auth: no claim makes an operator")
	}
	return g.issue(Viewer{UserKey: "operator-" + strings.ToLower(rand.Text()), Name: "Operator", Operator: true})
}

func (g *Guests) issue(v Viewer) (string, Viewer, error) {
	now := g.options.Now().UTC().Truncate(time.Second)
	v.ExpiresAt = now.Add(sessionFor)
	claims := jwt.MapClaims{
		"sub":  v.UserKey,
		"name": v.Name,
		"iat":  now.Unix(),
		"exp":  v.ExpiresAt.Unix(),
	}
	if g.options.Issuer != "" {
		claims["iss"] = g.options.Issuer
	}
	if g.options.Audience != "" {
		claims["aud"] = g.options.Audience
	}
	if v.Operator {
		claims[g.options.OperatorClaim.Name] = g.options.OperatorClaim.Value
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(g.options.Secret)
	if err != nil {
		return "", Viewer{}, fmt.Errorf("auth: signing: %w", err)
	}
	return token, v, nil
}
