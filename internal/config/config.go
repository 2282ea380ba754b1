// Package config reads Seatline's settings: environment variables, flags of the
// same names, defaults. It checks them all before anything starts.
package config

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"seatline/internal/auth"
)

// Config is every setting. The environment variable of a field has its name in
// upper case with underscores, the flag in lower case with dashes: DatabaseURL
// is DATABASE_URL and -database-url.
type Config struct {
	Addr         string // host:port
	LogLevel     slog.Level
	LogFormat    string        // "text" or "json"
	StartTimeout time.Duration // how long the stores may take to answer at the start

	DatabaseURL Secret // postgres://…; empty on the embedded default, as is RedisURL
	RedisURL    Secret // redis://…; several, separated by commas, are the nodes of a cluster
	Migrate     bool   // bring the schema up to date at the start
	DataDir     string // where the embedded default keeps the seats; empty: nowhere for long

	JWTSecret     Secret // a random one where nothing else signs, on the embedded default alone
	JWKSURL       string // of a key server; empty: there is none
	JWKSAllowHTTP bool
	JWKSRefresh   time.Duration // how often keys are asked for
	JWKSMaxStale  time.Duration // how long they are good for when the key server does not answer
	JWTIssuer     string
	JWTAudience   string
	OperatorClaim auth.Claim
	GuestSessions bool   // whoever gives a name is signed in
	PlaceSecret   Secret // what place tokens are signed with, before derivation: see PlaceKey

	Tick          time.Duration
	PresenceGrace time.Duration
	ParkedFor     time.Duration

	AllowedOrigins []string       // web sites beside our own
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	Introspection  bool
	Metrics        bool // at /metrics, for whoever can reach it

	MaxBody       int64 // bytes
	ParserTokens  int
	MaxDepth      int
	MaxComplexity int
	MaxMutations  int // root fields of one mutation

	RatePerPerson   int // root fields a second, on average; 0: no limit
	BurstPerPerson  int // root fields at once, after a pause
	RatePerAddress  int // of those who are not signed in
	BurstPerAddress int

	MaxFrame             int64 // bytes
	MaxMessages          int   // a second, of one socket
	MaxSubscriptions     int   // of one socket
	MaxSockets           int
	MaxSocketsPerPerson  int
	MaxSocketsPerAddress int

	InitTimeout       time.Duration
	WriteTimeout      time.Duration
	Keepalive         time.Duration
	SocketIdleTimeout time.Duration // of one without operations
	ReadTimeout       time.Duration
	IdleTimeout       time.Duration // of a connection without requests
	RequestTimeout    time.Duration
	ShutdownTimeout   time.Duration

	RandomSecret      bool // JWTSecret was made up: tokens end with the process
	RandomPlaceSecret bool // PlaceSecret was made up: proofs of places are good here alone, and end with the process
	Healthcheck       bool // do not serve: ask a running server whether it is ready (-healthcheck)
}

// Embedded reports whether the stores are those within the process.
func (c Config) Embedded() bool { return c.DatabaseURL == "" }

// Log is the handler for logs in the format and from the level that are set.
func (c Config) Log(w io.Writer) slog.Handler {
	o := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}

// PlaceKey is the key that signs place tokens. It is derived, so that neither
// secret signs two kinds of things.
func (c Config) PlaceKey() ([]byte, error) {
	secret := c.PlaceSecret
	if secret == "" {
		secret = c.JWTSecret
	}
	return hkdf.Key(sha256.New, []byte(secret), nil, "place", sha256.Size)
}

// Load reads the settings: args (without the program's name) win over the
// environment, which wins over the defaults. An empty variable counts as one
// that is not set. Everything that is wrong is told in one error, each with
// its variable, its value and what would be right; values of secrets are not.
//
// The error is flag.ErrHelp after -h, for which the manual was written to out.
// After a flag that is not known the manual is written, too.
func Load(args []string, lookup func(string) (string, bool), out io.Writer) (Config, error) {
	var c Config
	settings := c.settings()
	given, err := readFlags(args, settings, &c, out)
	if err != nil {
		return Config{}, err
	}
	var wrong []error
	isSet := map[string]bool{} // to something else than its default
	for _, s := range settings {
		value, ok := given[s.name]
		if !ok {
			if value, _ = lookup(s.name); value == "" {
				value = s.byDefault
			}
		}
		isSet[s.name] = value != s.byDefault
		if err := s.set(value); err != nil {
			if !s.secret {
				err = fmt.Errorf("%q %w", value, err)
			}
			wrong = append(wrong, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	wrong = append(wrong, c.complete(isSet)...)
	if len(wrong) > 0 {
		return Config{}, errors.Join(wrong...)
	}
	return c, nil
}

// readFlags returns the values of the flags that are given, by the names of
// their variables.
func readFlags(args []string, settings []setting, c *Config, out io.Writer) (map[string]string, error) {
	given := map[string]string{}
	flags := flag.NewFlagSet("seatline", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller tells the error, once
	flags.Usage = func() { writeManual(out, settings) }
	flags.BoolVar(&c.Healthcheck, "healthcheck", false, "")
	for _, s := range settings {
		keep := func(value string) error {
			given[s.name] = value
			return nil
		}
		if s.isBool {
			flags.BoolFunc(s.flag(), "", keep)
		} else {
			flags.Func(s.flag(), "", keep)
		}
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: settings are flags (-h lists them) or environment variables", flags.Arg(0))
	}
	return given, nil
}

// complete decides what depends on more than one setting, and says what does
// not go together.
func (c *Config) complete(isSet map[string]bool) []error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	database, redis := isSet["DATABASE_URL"], isSet["REDIS_URL"]
	switch {
	case database && !redis:
		say("REDIS_URL: is not set, and DATABASE_URL is: set both, or neither for the embedded stores")
	case redis && !database:
		say("DATABASE_URL: is not set, and REDIS_URL is: set both, or neither for the embedded stores")
	case database && isSet["DATA_DIR"]:
		say("DATA_DIR: is for the embedded stores, and DATABASE_URL is set: set one of them")
	}
	if !isSet["GUEST_SESSIONS"] {
		c.GuestSessions = !database && !redis && !isSet["JWKS_URL"]
	}
	wrong = append(wrong, c.completeIdentity(isSet, database && redis)...)
	for _, one := range []struct {
		whose       string
		rate, burst int
	}{{"PERSON", c.RatePerPerson, c.BurstPerPerson}, {"ADDRESS", c.RatePerAddress, c.BurstPerAddress}} {
		if one.burst < one.rate {
			say(`BURST_PER_%s: "%d" is less than RATE_PER_%[1]s, "%[3]d", which a second may bring`, one.whose, one.burst, one.rate)
		}
	}
	if c.RequestTimeout < c.ReadTimeout {
		say("REQUEST_TIMEOUT: %q is less than READ_TIMEOUT, %q, which is a part of it", short(c.RequestTimeout), short(c.ReadTimeout))
	}
	return wrong
}

// completeIdentity decides what signs. A secret and a key server go together: each
// checks the signatures that are its own. A key server alone leaves no secret to
// derive the key of place tokens from.
func (c *Config) completeIdentity(isSet map[string]bool, external bool) []error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	const example = "at least %d bytes, such as `openssl rand -hex 32` prints"
	if isSet["JWKS_URL"] {
		if err := auth.CheckKeyServerURL(c.JWKSURL, c.JWKSAllowHTTP); err != nil {
			if auth.CheckKeyServerURL(c.JWKSURL, true) == nil {
				err = fmt.Errorf("%w, or set JWKS_ALLOW_HTTP where the way to it is safe", err)
			}
			say("JWKS_URL: %q: %w", c.JWKSURL, err)
		}
	}
	if c.JWKSMaxStale < 2*c.JWKSRefresh {
		say("JWKS_MAX_STALE: %q is less than twice JWKS_REFRESH, %q: one question without an answer must not make all keys void", short(c.JWKSMaxStale), short(c.JWKSRefresh))
	}
	random := func() Secret { return Secret(rand.Text() + rand.Text()) }
	switch {
	case isSet["JWT_SECRET"]:
	case external && !isSet["JWKS_URL"]:
		say("JWT_SECRET: is needed with DATABASE_URL, unless JWKS_URL is set: "+example, auth.MinSecret)
	case external && c.GuestSessions:
		say("JWT_SECRET: is needed with GUEST_SESSIONS, whose tokens it signs: "+example, auth.MinSecret)
	case isSet["JWKS_URL"] && !c.GuestSessions:
		if !isSet["PLACE_SECRET"] {
			c.PlaceSecret, c.RandomPlaceSecret = random(), true
		}
	default:
		c.JWTSecret, c.RandomSecret = random(), true
	}
	return wrong
}

// Secret is a setting that is never shown, however it is printed.
type Secret string

const hidden = "(hidden)"

// Format is for fmt, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.shown()) }

// MarshalText is for encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

// LogValue is for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.shown()) }

func (s Secret) shown() string {
	if s == "" {
		return ""
	}
	return hidden
}

// short writes a duration without the zeros at its end: 10m, not 10m0s.
func short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-len(zero)+1]
		}
	}
	return s
}

// Warnings are what works and is not safe, or not for long: a sentence each.
func (c Config) Warnings() []string {
	var warnings []string
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	for _, set := range []struct {
		name   string
		secret Secret
	}{{"JWT_SECRET", c.JWTSecret}, {"PLACE_SECRET", c.PlaceSecret}} {
		if set.secret != "" && len(set.secret) < auth.MinSecret {
			warn("%s is short enough to be guessed: %d bytes or more are safe", set.name, auth.MinSecret)
		}
	}
	// A key server signs for every application that it knows, and some for many
	// issuers.
	for _, set := range []struct{ name, value string }{{"JWT_ISSUER", c.JWTIssuer}, {"JWT_AUDIENCE", c.JWTAudience}} {
		if c.JWKSURL != "" && set.value == "" {
			warn("%s is not set: tokens that JWKS_URL signed for other applications are good here, too", set.name)
		}
	}
	if c.RandomPlaceSecret && !c.Embedded() {
		warn("PLACE_SECRET is not set: a random one is used, so proofs of places are good at this instance alone, until it ends")
	}
	return warnings
}
