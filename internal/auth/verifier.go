package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// MinSecret is the length in bytes below which a secret is weaker than what
	// it signs, as RFC 7518 has it for HS256. Shorter ones work, for trying
	// things out; who starts the server is warned.
	MinSecret = 32

	maxToken = 8 << 10 // bytes; real ones are a tenth of it
	leeway   = 30 * time.Second

	// maxTime is the last second of the year 9999. Later ones have no RFC 3339
	// form and overflow arithmetic.
	maxTime = 253402300799
)

// Options is what tokens are held against: a secret, a key server, or both.
type Options struct {
	Secret        []byte     // signs HS256; should have MinSecret bytes
	Keys          *KeyServer // knows the keys of the other signatures
	Issuer        string     // required `iss`, when not empty
	Audience      string     // required among `aud`, when not empty
	OperatorClaim Claim      // who has it is an operator; the zero Claim is nobody's
	Now           func() time.Time
}

func (o Options) withDefaults() (Options, error) {
	if len(o.Secret) == 0 && o.Keys == nil {
		return o, errors.New("neither a secret nor a key server")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// methods are the signatures that are accepted, whatever a token says of itself:
// never "none", and none whose key is not configured.
func (o Options) methods() []string {
	var methods []string
	if len(o.Secret) > 0 {
		methods = append(methods, jwt.SigningMethodHS256.Alg())
	}
	if o.Keys != nil {
		methods = append(methods, publicMethods...)
	}
	return methods
}

// rules are what the claims must be like.
func (o Options) rules() *jwt.Validator {
	rules := []jwt.ParserOption{
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(leeway),
		jwt.WithTimeFunc(o.Now),
	}
	if o.Issuer != "" {
		rules = append(rules, jwt.WithIssuer(o.Issuer))
	}
	if o.Audience != "" {
		rules = append(rules, jwt.WithAudience(o.Audience))
	}
	return jwt.NewValidator(rules...)
}

// Verifier tells who a token is about. It is safe for concurrent use.
type Verifier struct {
	options Options
	parser  *jwt.Parser
	rules   *jwt.Validator
}

// NewVerifier returns a verifier, or an error when the secret is too short, or
// missing where there is no key server.
func NewVerifier(o Options) (*Verifier, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	return &Verifier{
		options: o,
		rules:   o.rules(),
		// The claims are checked by keysFor, which the parser cannot do without.
		parser: jwt.NewParser(jwt.WithValidMethods(o.methods()), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation()),
	}, nil
}

// Verify returns whom the token is about, or an ErrInvalidToken, or ErrUnavailable
// where its key is not known and the key server does not answer. ctx bounds the
// wait for the key server, which is asked for keys that are not known.
func (v *Verifier) Verify(ctx context.Context, token string) (Viewer, error) {
	if len(token) > maxToken {
		return Viewer{}, fmt.Errorf("%w: it has %d bytes, more than %d", ErrInvalidToken, len(token), maxToken)
	}
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		return v.keysFor(ctx, t, claims)
	})
	switch {
	case errors.Is(err, ErrUnavailable):
		return Viewer{}, err
	case errors.Is(err, jwt.ErrTokenExpired), errors.Is(err, ErrExpiredToken):
		return Viewer{}, ErrExpiredToken
	case err != nil:
		return Viewer{}, fmt.Errorf("%w: %w", ErrInvalidToken, err)
	}
	return v.viewer(claims)
}

// keysFor returns what the signature of a token may be checked with, and refuses
// the token where that would be of no use. What it says is judged first: so a
// token that has run out, or is another application's, costs no question to the
// key server, and is called what it is though its key may be gone.
func (v *Verifier) keysFor(ctx context.Context, t *jwt.Token, claims jwt.MapClaims) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, errors.New("it has critical extensions, and none is known")
	}
	if !identifies(t.Header) {
		return nil, errors.New("it is of a type that identifies nobody")
	}
	for _, name := range []string{"exp", "nbf", "iat"} {
		// Beyond these bounds sums overflow, and what is far ahead is past.
		if at, ok := claims[name].(float64); ok && (at < 0 || at > maxTime) {
			return nil, fmt.Errorf("its %s is no time", name)
		}
	}
	if err := v.rules.Validate(claims); err != nil {
		return nil, err
	}
	if _, err := v.expiry(claims); err != nil {
		return nil, err
	}
	method := t.Method.Alg()
	if method == jwt.SigningMethodHS256.Alg() {
		return v.options.Secret, nil
	}
	var id *string
	if value, ok := t.Header["kid"]; ok {
		text, ok := value.(string)
		if !ok || len(text) > maxKeyID {
			return nil, errors.New("its key's id is none")
		}
		id = &text
	}
	var issued time.Time
	if at, err := claims.GetIssuedAt(); err == nil && at != nil {
		issued = at.Time
	}
	return v.options.Keys.find(ctx, id, method, issued)
}

// identifies reports whether a token is one to sign in with. A key server signs
// others, too, for the same audience, such as those that announce a sign-out;
// RFC 8725 has their type tell them apart.
func identifies(header map[string]any) bool {
	value, ok := header["typ"]
	if !ok {
		return true
	}
	text, _ := value.(string)
	kind := strings.TrimPrefix(strings.ToLower(text), "application/")
	return kind == "jwt" || kind == "at+jwt"
}

// viewer is whom the claims are about.
func (v *Verifier) viewer(claims jwt.MapClaims) (Viewer, error) {
	expires, err := v.expiry(claims)
	if err != nil {
		return Viewer{}, err // it may have run out while its key was asked for
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
// ErrInvalidToken when it is not one good bearer token, ErrUnavailable when that
// cannot be told now.
func (v *Verifier) FromRequest(r *http.Request) (Viewer, error) {
	switch values := r.Header.Values("Authorization"); len(values) {
	case 0:
		return Viewer{}, ErrNoToken
	case 1:
		return v.fromAuthorization(r.Context(), values[0], false)
	default:
		return Viewer{}, fmt.Errorf("%w: %d Authorization headers", ErrInvalidToken, len(values))
	}
}

// FromPayload reads the payload of a socket's connection_init: Authorization or
// authorization, with or without "Bearer ". The errors are FromRequest's.
func (v *Verifier) FromPayload(ctx context.Context, payload map[string]any) (Viewer, error) {
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
	return v.fromAuthorization(ctx, authorization, true)
}

// fromAuthorization reads "Bearer <token>", or a bare token where that is
// allowed. Nothing at all is what a signed-out client sends.
func (v *Verifier) fromAuthorization(ctx context.Context, s string, bare bool) (Viewer, error) {
	if s == "" {
		return Viewer{}, ErrNoToken
	}
	scheme, token, found := strings.Cut(s, " ")
	switch {
	case found && strings.EqualFold(scheme, "Bearer"):
		return v.Verify(ctx, strings.TrimSpace(token))
	case !found && bare:
		return v.Verify(ctx, s)
	}
	return Viewer{}, fmt.Errorf("%w: it is not a bearer token", ErrInvalidToken)
}

// Middleware puts the viewer of a request into its context. A request without a
// token goes on without a viewer; one with a token that is not acceptable goes
// to refuse, with FromRequest's error, and no further.
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
