package auth

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// MinSecret is the least length of a secret in bytes: that of an HS256
	// signature, as RFC 7518 asks.
	MinSecret = 32

	maxToken = 8 << 10 // bytes; real ones are a tenth of it
	leeway   = 30 * time.Second

	// maxTime is the last second of the year 9999. Later ones have no RFC 3339
	// form and overflow arithmetic.
	maxTime = 253402300799
)

// Options is what tokens are held against.
type Options struct {
	Secret        []byte // at least MinSecret bytes
	Issuer        string // required `iss`, when not empty
	Audience      string // required among `aud`, when not empty
	OperatorClaim Claim  // who has it is an operator; the zero Claim is nobody's
	Now           func() time.Time
}

func (o Options) withDefaults() (Options, error) {
	if len(o.Secret) < MinSecret {
		return o, fmt.Errorf("the secret has %d bytes, fewer than %d", len(o.Secret), MinSecret)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// Claim is a claim and the value it must have, or have among its values.
type Claim struct{ Name, Value string }

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
	return c, nil
}

func (c Claim) String() string { return c.Name + "=" + c.Value }

// in reports whether the claims have c: as a string or in an array. A value of
// another type is nobody's right.
func (c Claim) in(claims jwt.MapClaims) bool {
	if c.Name == "" {
		return false
	}
	switch got := claims[c.Name].(type) {
	case string:
		return got == c.Value
	case []any:
		return slices.Contains(got, any(c.Value))
	}
	return false
}

// Verifier tells who a token is about. It is safe for concurrent use.
type Verifier struct {
	options Options
	parser  *jwt.Parser
}

// NewVerifier returns a verifier, or an error when the secret is too short.
func NewVerifier(o Options) (*Verifier, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	rules := []jwt.ParserOption{
		// The one method, whatever a token says of itself: neither "none" nor a
		// public key taken for a secret.
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(leeway),
		jwt.WithTimeFunc(o.Now),
		jwt.WithStrictDecoding(),
	}
	if o.Issuer != "" {
		rules = append(rules, jwt.WithIssuer(o.Issuer))
	}
	if o.Audience != "" {
		rules = append(rules, jwt.WithAudience(o.Audience))
	}
	return &Verifier{options: o, parser: jwt.NewParser(rules...)}, nil
}

// Verify returns whom the token is about, or an ErrInvalidToken.
func (v *Verifier) Verify(token string) (Viewer, error) {
	if len(token) > maxToken {
		return Viewer{}, fmt.Errorf("%w: it has %d bytes, more than %d", ErrInvalidToken, len(token), maxToken)
	}
	claims := jwt.MapClaims{}
	parsed, err := v.parser.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) {
		return v.options.Secret, nil
	})
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return Viewer{}, ErrExpiredToken
	case err != nil:
		return Viewer{}, fmt.Errorf("%w: %w", ErrInvalidToken, err)
	}
	if _, ok := parsed.Header["crit"]; ok {
		return Viewer{}, fmt.Errorf("%w: it has critical extensions, and none is known", ErrInvalidToken)
	}
	expires, err := v.expiry(claims)
	if err != nil {
		return Viewer{}, err
	}
	key, err := claims.GetSubject()
	if err != nil {
		return Viewer{}, fmt.Errorf("%w: %w", ErrInvalidToken, err)
	}
	if err := ValidUserKey(key); err != nil {
		return Viewer{}, fmt.Errorf("%w: its subject: %w", ErrInvalidToken, err)
	}
	name, ok := claims["name"].(string)
	if !ok || !validName(name) {
		name = key
	}
	return Viewer{UserKey: key, Name: name, Operator: v.options.OperatorClaim.in(claims), ExpiresAt: expires}, nil
}

// expiry checks the end of a token without leeway, which is for clocks that
// disagree about the beginning: a socket is closed at ExpiresAt, and a token
// accepted after it would be let in and thrown out in turns.
func (v *Verifier) expiry(claims jwt.MapClaims) (time.Time, error) {
	exp, err := claims.GetExpirationTime()
	if err != nil || exp == nil || exp.Unix() > maxTime {
		return time.Time{}, fmt.Errorf("%w: its expiry is no time", ErrInvalidToken)
	}
	if !v.options.Now().Before(exp.Time) {
		return time.Time{}, ErrExpiredToken
	}
	return exp.UTC(), nil
}

// FromRequest reads the Authorization header. ErrNoToken when there is none,
// ErrInvalidToken when it is not one good bearer token.
func (v *Verifier) FromRequest(r *http.Request) (Viewer, error) {
	switch values := r.Header.Values("Authorization"); len(values) {
	case 0:
		return Viewer{}, ErrNoToken
	case 1:
		return v.fromAuthorization(values[0], false)
	default:
		return Viewer{}, fmt.Errorf("%w: %d Authorization headers", ErrInvalidToken, len(values))
	}
}

// FromPayload reads the payload of a socket's connection_init: Authorization or
// authorization, with or without "Bearer ". The errors are FromRequest's.
func (v *Verifier) FromPayload(payload map[string]any) (Viewer, error) {
	var found any
	for _, key := range []string{"Authorization", "authorization"} {
		value, ok := payload[key]
		if !ok || value == nil {
			continue
		}
		if found != nil && found != value {
			return Viewer{}, fmt.Errorf("%w: two of them", ErrInvalidToken)
		}
		if _, ok := value.(string); !ok {
			return Viewer{}, fmt.Errorf("%w: it is a %T", ErrInvalidToken, value)
		}
		found = value
	}
	authorization, _ := found.(string)
	return v.fromAuthorization(authorization, true)
}

// fromAuthorization reads "Bearer <token>", or a bare token where that is
// allowed. Nothing at all is what a signed-out client sends.
func (v *Verifier) fromAuthorization(s string, bare bool) (Viewer, error) {
	if s == "" {
		return Viewer{}, ErrNoToken
	}
	scheme, token, found := strings.Cut(s, " ")
	switch {
	case found && strings.EqualFold(scheme, "Bearer"):
		return v.Verify(strings.TrimSpace(token))
	case !found && bare:
		return v.Verify(s)
	}
	return Viewer{}, fmt.Errorf("%w: it is not a bearer token", ErrInvalidToken)
}

// Middleware puts the viewer of a request into its context. A request without a
// token goes on without a viewer; one with a token that is not acceptable goes
// to refuse, with an ErrInvalidToken, and no further.
func (v *Verifier) Middleware(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		viewer, err := v.FromRequest(r)
		switch {
		case err == nil:
			r = r.WithContext(NewContext(r.Context(), viewer))
		case !errors.Is(err, ErrNoToken):
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}
