package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"seatline/internal/auth"
)

// setting is one row of the table that Load reads and the manual prints.
type setting struct {
	group     string
	name      string // of the environment variable
	byDefault string
	help      string
	bounds    string // what set takes, in words
	secret    bool   // its value is not shown
	isBool    bool
	set       func(value string) error
}

func (s setting) flag() string {
	return strings.ReplaceAll(strings.ToLower(s.name), "_", "-")
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// settings is the table, its values bound to the fields of c.
func (c *Config) settings() []setting {
	var all []setting
	var group string
	add := func(name, byDefault, help string, v value) {
		all = append(all, setting{group, name, byDefault, help, v.bounds, v.secret, v.isBool, v.set})
	}

	group = "Server"
	add("ADDR", ":8080", "where to listen", address(&c.Addr))
	add("LOG_LEVEL", "info", "what to log", level(&c.LogLevel))
	add("LOG_FORMAT", "text", "how to log", oneOf(&c.LogFormat, "text", "json"))
	add("START_TIMEOUT", "30s", "how long the stores and the key server may take to answer at the start, after which the program ends",
		duration(&c.StartTimeout, time.Second, 10*time.Minute))
	add("SHUTDOWN_TIMEOUT", "10s", "how long requests in flight may take after SIGTERM",
		duration(&c.ShutdownTimeout, time.Second, 5*time.Minute))

	group = "Stores: both URLs, or neither for the stores within the process"
	add("DATABASE_URL", "", "PostgreSQL, which keeps the seats: postgres://user:password@host:port/database",
		storeURL(&c.DatabaseURL, false, "postgres", "postgresql"))
	add("REDIS_URL", "", "Redis, which keeps the line: redis://host:port/0; several, separated by commas, are the nodes of a cluster",
		storeURL(&c.RedisURL, true, "redis", "rediss"))
	add("MIGRATE", "on", "bring the database's schema up to date at the start", boolean(&c.Migrate))
	add("DATA_DIR", "", "folder where the store within the process keeps the seats; when empty, they are gone at exit", text(&c.DataDir))

	group = "Identity: JSON Web Tokens, whose sub is the user key, signed with a secret or by a key server"
	add("JWT_SECRET", "", "what signs HS256; needed with DATABASE_URL unless JWKS_URL is set, else a random one is made at each start", secret(&c.JWTSecret))
	add("JWKS_URL", "", "JWK set with the public keys of RS256, PS256, ES256, ES384, ES512 and EdDSA: https, or http on this machine; with JWT_SECRET, "+
		"either may sign; set JWT_ISSUER and JWT_AUDIENCE with it", text(&c.JWKSURL))
	add("JWKS_ALLOW_HTTP", "off", "take keys from other machines by http, which whoever is on the way can replace", boolean(&c.JWKSAllowHTTP))
	add("JWKS_REFRESH", "5m", "how often keys are asked for, beside when a token names a new one", duration(&c.JWKSRefresh, 10*time.Second, 24*time.Hour))
	add("JWKS_MAX_STALE", "24h", "how long known keys are good for while the key server does not answer", duration(&c.JWKSMaxStale, time.Minute, 30*24*time.Hour))
	add("JWT_ISSUER", "", "the iss that they must have, when set", text(&c.JWTIssuer))
	add("JWT_AUDIENCE", "", "the aud that they must have, when set", text(&c.JWTAudience))
	add("OPERATOR_CLAIM", "role=operator", "claim, a string or a list of them, that makes an operator; dots lead into objects: realm_access.roles=operator",
		claim(&c.OperatorClaim))
	add("GUEST_SESSIONS", "", "sign in whoever gives a name; on without DATABASE_URL and JWKS_URL, off with either", optional(boolean(&c.GuestSessions)))
	add("PLACE_SECRET", "", "what proofs of a place are signed with; when empty, a key derived from JWT_SECRET or, where that is not set, a random one, good for one instance alone",
		secret(&c.PlaceSecret))

	group = "The line"
	add("TICK", "1s", "how often people are admitted and told their places", duration(&c.Tick, 20*time.Millisecond, time.Minute))
	add("PRESENCE_GRACE", "1m", "how long somebody may be out of touch before the line moves past them", duration(&c.PresenceGrace, time.Second, 24*time.Hour))
	add("PARKED_FOR", "10m", "how long after that their place is kept", duration(&c.ParkedFor, time.Second, 7*24*time.Hour))

	group = "Protection: requests"
	add("ALLOWED_ORIGINS", "", "web sites beside our own whose pages may use the API", origins(&c.AllowedOrigins))
	add("TRUSTED_PROXIES", "", "addresses of our own proxies, whose X-Forwarded-For says which address a client has; without them, everybody behind a proxy has the proxy's",
		networks(&c.TrustedProxies))
	add("INTROSPECTION", "on", "answer questions about the schema, as playgrounds ask", boolean(&c.Introspection))
	add("METRICS", "on", "tell this instance's figures at /metrics, in the format of Prometheus, to whoever can reach it; they name nobody", boolean(&c.Metrics))
	add("MAX_BODY", "256KiB", "largest request", size(&c.MaxBody, kib, 16*mib))
	add("PARSER_TOKENS", "1000", "most words and signs in an operation", integer(&c.ParserTokens, 100, 100_000))
	add("MAX_DEPTH", "12", "deepest nesting of fields", integer(&c.MaxDepth, 3, 100))
	add("MAX_COMPLEXITY", "5000", "most fields that an operation may read, pages counted in full", integer(&c.MaxComplexity, 100, 1_000_000))
	add("MAX_MUTATIONS", "5", "most mutations in a request", integer(&c.MaxMutations, 1, 100))
	add("RATE_PER_PERSON", "50", "how many fields of Query, Mutation and Subscription a person may ask for per second, on average and over all instances; 0 lifts the limit",
		integer(&c.RatePerPerson, 0, 100_000))
	add("BURST_PER_PERSON", "500", "how many at once, after a pause, and most in an operation", integer(&c.BurstPerPerson, 1, 1_000_000))
	add("RATE_PER_ADDRESS", "200", "the same for all who are not signed in and share an address", integer(&c.RatePerAddress, 0, 100_000))
	add("BURST_PER_ADDRESS", "2000", "the same for all who are not signed in and share an address", integer(&c.BurstPerAddress, 1, 1_000_000))
	add("READ_TIMEOUT", "10s", "how long a request may take to arrive", duration(&c.ReadTimeout, time.Second, 5*time.Minute))
	add("REQUEST_TIMEOUT", "20s", "how long a request may take in all", duration(&c.RequestTimeout, time.Second, 10*time.Minute))
	add("IDLE_TIMEOUT", "2m", "how long a connection is kept for the next request", duration(&c.IdleTimeout, time.Second, time.Hour))

	group = "Protection: sockets and streams"
	add("MAX_FRAME", "64KiB", "largest message from a client", size(&c.MaxFrame, kib, 16*mib))
	add("MAX_MESSAGES", "50", "most messages per second that are read from a socket, on average; what comes faster waits", integer(&c.MaxMessages, 1, 100_000))
	add("MAX_SUBSCRIPTIONS", "20", "most operations in flight on a socket", integer(&c.MaxSubscriptions, 1, 10_000))
	add("MAX_SOCKETS", "20000", "most sockets and event streams in all", integer(&c.MaxSockets, 1, 1_000_000))
	add("MAX_SOCKETS_PER_PERSON", "20", "most of one person", integer(&c.MaxSocketsPerPerson, 1, 10_000))
	add("MAX_SOCKETS_PER_ADDRESS", "5000", "most from one address, which a whole campus may share", integer(&c.MaxSocketsPerAddress, 1, 1_000_000))
	add("INIT_TIMEOUT", "10s", "how long a client may take to say who it is", duration(&c.InitTimeout, 100*time.Millisecond, time.Minute))
	add("WRITE_TIMEOUT", "10s", "how long a client may take to take a message", duration(&c.WriteTimeout, 100*time.Millisecond, time.Minute))
	add("KEEPALIVE", "25s", "how often a sign of life is sent and asked for", duration(&c.Keepalive, time.Second, 10*time.Minute))
	add("SOCKET_IDLE_TIMEOUT", "5m", "how long a socket is kept on which nothing runs", duration(&c.SocketIdleTimeout, time.Second, 24*time.Hour))
	return all
}

// value is how the text of a setting becomes a field.
type value struct {
	bounds         string
	secret, isBool bool
	set            func(string) error
}

// check is a value that is right or not, as bounds says.
func check(bounds string, set func(string) bool) value {
	return value{bounds: bounds, set: func(s string) error {
		if !set(s) {
			return errors.New("is not " + bounds)
		}
		return nil
	}}
}

func text(field *string) value {
	return value{set: func(s string) error {
		*field = s
		return nil
	}}
}

func boolean(field *bool) value {
	v := check("on or off", func(s string) bool {
		switch strings.ToLower(s) {
		case "on", "true", "yes", "1":
			*field = true
		case "off", "false", "no", "0":
			*field = false
		default:
			return false
		}
		return true
	})
	v.isBool = true
	return v
}

// optional leaves the field alone where nothing is set.
func optional(v value) value {
	set := v.set
	v.set = func(s string) error {
		if s == "" {
			return nil
		}
		return set(s)
	}
	return v
}

func integer(field *int, least, most int) value {
	return check(fmt.Sprintf("%d to %d", least, most), func(s string) (ok bool) {
		*field, ok = parse(strconv.Atoi(s))
		return ok && least <= *field && *field <= most
	})
}

func duration(field *time.Duration, least, most time.Duration) value {
	return check(short(least)+" to "+short(most), func(s string) (ok bool) {
		*field, ok = parse(time.ParseDuration(s))
		return ok && least <= *field && *field <= most
	})
}

func size(field *int64, least, most int64) value {
	return check(bytes(least)+" to "+bytes(most), func(s string) bool {
		unit := int64(1)
		number := s
		for suffix, n := range map[string]int64{"KiB": kib, "MiB": mib} {
			if trimmed, found := strings.CutSuffix(s, suffix); found {
				number, unit = strings.TrimSpace(trimmed), n
			}
		}
		n, ok := parse(strconv.ParseInt(number, 10, 64))
		// Before it is multiplied, so that it cannot wrap around.
		if !ok || n > most/unit || n*unit < least {
			return false
		}
		*field = n * unit
		return true
	})
}

func bytes(n int64) string {
	if n >= mib {
		return fmt.Sprintf("%dMiB", n/mib)
	}
	return fmt.Sprintf("%dKiB", n/kib)
}

// parse turns the error of a parser into a word on its success: the parser's
// text would say less than the bounds do.
func parse[T any](v T, err error) (T, bool) { return v, err == nil }

func oneOf(field *string, words ...string) value {
	return check(strings.Join(words, " or "), func(s string) bool {
		for _, word := range words {
			if strings.EqualFold(s, word) {
				*field = word
				return true
			}
		}
		return false
	})
}

func level(field *slog.Level) value {
	return check("debug, info, warn or error", func(s string) bool {
		return field.UnmarshalText([]byte(s)) == nil
	})
}

func address(field *string) value {
	return check("host:port or :port", func(s string) bool {
		*field = s
		_, port, err := net.SplitHostPort(s)
		n, ok := parse(strconv.ParseUint(port, 10, 16))
		return err == nil && ok && strconv.FormatUint(n, 10) == port
	})
}

func claim(field *auth.Claim) value {
	return value{bounds: "name=value", set: func(s string) (err error) {
		if *field, err = auth.ParseClaim(s); err != nil {
			return fmt.Errorf("is no claim: %w", err)
		}
		return nil
	}}
}

// secret takes anything, or nothing; see Config.Warnings.
func secret(field *Secret) value {
	return value{bounds: fmt.Sprintf("%d bytes or more, or a warning", auth.MinSecret), secret: true, set: func(s string) error {
		*field = Secret(s)
		return nil
	}}
}

// storeURL takes URLs of the schemes, or nothing. They may hold passwords, so
// nothing of them is repeated.
func storeURL(field *Secret, several bool, schemes ...string) value {
	return value{secret: true, set: func(s string) error {
		*field = Secret(s)
		if s == "" {
			return nil
		}
		urls := []string{s}
		if several {
			urls = strings.Split(s, ",")
		}
		for _, text := range urls {
			u, err := url.Parse(strings.TrimSpace(text))
			// A Unix socket of PostgreSQL's stands in a parameter.
			if err != nil || u.Host == "" && u.Query().Get("host") == "" || !contains(schemes, u.Scheme) {
				return fmt.Errorf("it is not a URL of the form %s://host:port/…", schemes[0])
			}
		}
		return nil
	}}
}

// origins takes web sites as browsers name them.
func origins(field *[]string) value {
	return check("https://host or http://host:port, separated by commas, without paths or wildcards", func(s string) bool {
		*field = nil
		if s == "" {
			return true
		}
		for text := range strings.SplitSeq(s, ",") {
			text = strings.TrimSuffix(strings.TrimSpace(text), "/")
			u, err := url.Parse(text)
			if err != nil || !contains([]string{"http", "https"}, u.Scheme) || u.Host == "" ||
				strings.Contains(u.Host, "*") || text != u.Scheme+"://"+u.Host {
				return false
			}
			*field = append(*field, text)
		}
		return true
	})
}

// networks takes addresses, and ranges of them in CIDR notation. Trusting the
// whole world would let everybody say where they come from.
func networks(field *[]netip.Prefix) value {
	return check("addresses or ranges such as 10.0.0.0/8, separated by commas, and less than all there are", func(s string) bool {
		*field = nil
		if s == "" {
			return true
		}
		for text := range strings.SplitSeq(s, ",") {
			text = strings.TrimSpace(text)
			network, ok := parse(netip.ParsePrefix(text))
			if addr, single := parse(netip.ParseAddr(text)); single {
				network, ok = netip.PrefixFrom(addr, addr.BitLen()), addr.Zone() == ""
			}
			if !ok || network.Bits() == 0 || network.Addr().Is4In6() {
				return false
			}
			*field = append(*field, network.Masked())
		}
		return true
	})
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}
