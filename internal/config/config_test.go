package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"seatline/internal/auth"
)

const key = "0123456789abcdef0123456789abcdef"

type env map[string]string

func (e env) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// external is the least that a server with stores of its own needs.
func external(more env) env {
	e := env{"DATABASE_URL": "postgres://app:pw@db/seatline", "REDIS_URL": "redis://r:6379/0", "JWT_SECRET": key}
	maps.Copy(e, more)
	return e
}

func load(t *testing.T, e env, args ...string) Config {
	t.Helper()
	c, err := Load(args, e.lookup, t.Output())
	if err != nil {
		t.Fatalf("%v %v: %v", e, args, err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	got := load(t, nil)
	if len(got.JWTSecret) < auth.MinSecret || load(t, nil).JWTSecret == got.JWTSecret {
		t.Error("the secret is not random")
	}
	got.JWTSecret = ""
	want := Config{
		Addr: ":8080", LogLevel: slog.LevelInfo, LogFormat: "text",
		StartTimeout: 30 * time.Second, ShutdownTimeout: 10 * time.Second,
		JWKSRefresh: 5 * time.Minute, JWKSMaxStale: 24 * time.Hour,
		Migrate: true, OperatorClaim: auth.Claim{Name: "role", Value: "operator"}, GuestSessions: true,
		Tick: time.Second, PresenceGrace: time.Minute, ParkedFor: 10 * time.Minute,
		Introspection: true, Metrics: true, MaxBody: 256 << 10, MaxFrame: 64 << 10, ParserTokens: 1000, MaxDepth: 12,
		MaxComplexity: 5000, MaxMutations: 5, RatePerPerson: 50, BurstPerPerson: 500, RatePerAddress: 200, BurstPerAddress: 2000,
		MaxMessages: 50, MaxSubscriptions: 20, MaxSockets: 20000, MaxSocketsPerPerson: 20, MaxSocketsPerAddress: 5000, SocketIdleTimeout: 5 * time.Minute,
		InitTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, Keepalive: 25 * time.Second,
		ReadTimeout: 10 * time.Second, RequestTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute,
		RandomSecret: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !got.Embedded() {
		t.Error("not embedded")
	}
}

// keyServer is the least that a key server needs.
func keyServer(more env) env {
	e := env{"JWKS_URL": "https://id.example/keys", "JWT_ISSUER": "https://id.example", "JWT_AUDIENCE": "seatline"}
	maps.Copy(e, more)
	return e
}

func TestKeyServer(t *testing.T) {
	c := load(t, keyServer(nil))
	if c.JWKSURL != "https://id.example/keys" || c.JWTSecret != "" || c.RandomSecret || c.GuestSessions || len(c.PlaceSecret) < auth.MinSecret {
		t.Errorf("alone: %+v", c)
	}
	if load(t, keyServer(nil)).PlaceSecret == c.PlaceSecret {
		t.Error("the secret of places is not random")
	}
	if c := load(t, keyServer(env{"PLACE_SECRET": key})); c.PlaceSecret != key {
		t.Errorf("with a secret for places: %+v", c)
	}
	if c := load(t, keyServer(env{"GUEST_SESSIONS": "on"})); !c.GuestSessions || !c.RandomSecret || c.JWTSecret == "" || c.PlaceSecret != "" {
		t.Errorf("with guests: %+v", c)
	}
	if c := load(t, keyServer(env{"JWT_SECRET": key})); c.JWTSecret != key || c.GuestSessions || c.PlaceSecret != "" {
		t.Errorf("with a secret: %+v", c)
	}
	if c := load(t, external(keyServer(env{"JWT_SECRET": "", "PLACE_SECRET": key}))); c.JWTSecret != "" || c.RandomSecret || c.PlaceSecret != key {
		t.Errorf("with stores: %+v", c)
	}
	if c := load(t, external(keyServer(nil))); c.JWTSecret != key || c.PlaceSecret != "" {
		t.Errorf("with stores and a secret: %+v", c)
	}
	for _, url := range []string{"http://127.0.0.1:1/keys", "http://[::1]:1/keys", "http://localhost/keys", "https://id.example/realms/a/keys?x=1"} {
		load(t, keyServer(env{"JWKS_URL": url}))
	}
	load(t, keyServer(env{"JWKS_URL": "http://keycloak:8080/keys", "JWKS_ALLOW_HTTP": "on"}))
}

func TestExternalStores(t *testing.T) {
	c := load(t, external(nil))
	if c.Embedded() || c.GuestSessions || c.RandomSecret || c.JWTSecret != key {
		t.Errorf("%+v", c)
	}
	if c := load(t, external(env{"GUEST_SESSIONS": "on"})); !c.GuestSessions {
		t.Error("guests cannot be let in")
	}
	if c := load(t, env{"GUEST_SESSIONS": "off"}); c.GuestSessions {
		t.Error("guests cannot be kept out")
	}
}

// TestEverySettingIsAVariableAndAFlag sets each by either, and expects the flag
// to win.
func TestEverySettingIsAVariableAndAFlag(t *testing.T) {
	samples := map[string][2]string{ // two values, neither the default
		"ADDR": {"127.0.0.1:0", "[::1]:9000"}, "LOG_LEVEL": {"debug", "ERROR"}, "LOG_FORMAT": {"json", "JSON"},
		"DATABASE_URL": {"postgres://a/b", "postgresql:///b?host=/run/postgresql"},
		"REDIS_URL":    {"redis://a:1/0,redis://b:2", "rediss://:pw@c:3/1"},
		"MIGRATE":      {"off", "false"}, "DATA_DIR": {"/a", "/b"},
		"JWT_SECRET": {key + "1", key + "2"}, "PLACE_SECRET": {key + "3", key + "4"},
		"JWKS_URL": {"https://a.example/keys", "http://127.0.0.1:1/keys"}, "JWKS_ALLOW_HTTP": {"on", "yes"},
		"JWKS_REFRESH": {"10s", "12h"}, "JWKS_MAX_STALE": {"10m", "720h"},
		"JWT_ISSUER": {"a", "b"}, "JWT_AUDIENCE": {"a", "b"}, "OPERATOR_CLAIM": {"a=b", "c=d"},
		"GUEST_SESSIONS": {"off", "0"}, "ALLOWED_ORIGINS": {"https://a.example", "http://localhost:3000, https://b.example/"},
		"INTROSPECTION": {"off", "no"}, "METRICS": {"off", "no"}, "MAX_BODY": {"1MiB", "4096"}, "MAX_FRAME": {"2 KiB", "16MiB"},
		"PARSER_TOKENS": {"100", "100000"}, "MAX_DEPTH": {"3", "100"}, "MAX_COMPLEXITY": {"100", "1000000"},
		"MAX_MUTATIONS": {"1", "100"}, "MAX_SUBSCRIPTIONS": {"1", "10000"}, "MAX_SOCKETS": {"1", "1000000"}, "MAX_SOCKETS_PER_PERSON": {"1", "10000"},
		"MAX_SOCKETS_PER_ADDRESS": {"1", "1000000"}, "MAX_MESSAGES": {"1", "100000"}, "SOCKET_IDLE_TIMEOUT": {"1s", "24h"},
		"RATE_PER_PERSON": {"0", "500"}, "BURST_PER_PERSON": {"50", "1000000"}, "RATE_PER_ADDRESS": {"0", "2000"}, "BURST_PER_ADDRESS": {"200", "1000000"},
		"TRUSTED_PROXIES": {"127.0.0.1", "10.0.0.0/8, fd00::/8"},
		"START_TIMEOUT":   {"1s", "10m"}, "SHUTDOWN_TIMEOUT": {"1s", "5m"}, "TICK": {"20ms", "1m"},
		"PRESENCE_GRACE": {"1s", "24h"}, "PARKED_FOR": {"1s", "168h"},
		"INIT_TIMEOUT": {"100ms", "1m"}, "WRITE_TIMEOUT": {"100ms", "1m"}, "KEEPALIVE": {"1s", "10m"},
		"READ_TIMEOUT": {"1s", "2s"}, "REQUEST_TIMEOUT": {"10s", "10m"}, "IDLE_TIMEOUT": {"1s", "1h"},
	}
	var c Config
	for _, s := range c.settings() {
		sample, ok := samples[s.name]
		if !ok {
			t.Errorf("no sample for %s", s.name)
			continue
		}
		e := env{}
		if s.name == "DATABASE_URL" || s.name == "REDIS_URL" {
			e = external(nil)
		}
		if s.name == "JWKS_URL" {
			e = env{"JWT_ISSUER": "a", "JWT_AUDIENCE": "b"}
		}
		field := func(c Config) any {
			v := reflect.ValueOf(c).FieldByNameFunc(func(name string) bool {
				return strings.EqualFold(name, strings.ReplaceAll(s.name, "_", ""))
			})
			if !v.IsValid() {
				t.Fatalf("%s has no field", s.name)
			}
			return v.Interface()
		}
		before := field(load(t, e))
		e[s.name] = sample[0]
		byVariable := field(load(t, e))
		byFlag := field(load(t, e, "-"+strings.ToLower(strings.ReplaceAll(s.name, "_", "-"))+"="+sample[1]))
		if reflect.DeepEqual(before, byVariable) {
			t.Errorf("%s=%s changes nothing", s.name, sample[0])
		}
		if s.isBool || s.name == "LOG_FORMAT" {
			continue // two ways to write one value
		}
		if reflect.DeepEqual(byVariable, byFlag) {
			t.Errorf("-%s does not win over %s", s.flag(), s.name)
		}
	}
	if n := len(c.settings()); n != len(samples) {
		t.Errorf("%d settings, %d samples", n, len(samples))
	}
}

func TestBadValues(t *testing.T) {
	tests := []struct {
		env  env
		want string // in the message
	}{
		{env{"ADDR": "8080"}, `ADDR: "8080" is not host:port`},
		{env{"ADDR": ":65536"}, `ADDR: ":65536"`},
		{env{"ADDR": ":http"}, `ADDR: ":http"`},
		{env{"ADDR": ":"}, `ADDR: ":"`},
		{env{"LOG_LEVEL": "loud"}, `LOG_LEVEL: "loud" is not debug, info, warn or error`},
		{env{"LOG_FORMAT": "xml"}, `LOG_FORMAT: "xml" is not text or json`},
		{env{"MIGRATE": "maybe"}, `MIGRATE: "maybe" is not on or off`},
		{env{"TICK": "5ms"}, `TICK: "5ms" is not 20ms to 1m`},
		{env{"TICK": "1"}, `TICK: "1" is not 20ms to 1m`},
		{env{"PARKED_FOR": "-1s"}, `PARKED_FOR: "-1s" is not 1s to 168h`},
		{env{"MAX_BODY": "1GiB"}, `MAX_BODY: "1GiB" is not 1KiB to 16MiB`},
		{env{"MAX_BODY": "17MiB"}, `MAX_BODY: "17MiB"`},
		{env{"MAX_BODY": "9223372036854775807KiB"}, `MAX_BODY: "9223372036854775807KiB"`},
		{env{"MAX_FRAME": "-1KiB"}, `MAX_FRAME: "-1KiB"`},
		{env{"MAX_FRAME": "1023"}, `MAX_FRAME: "1023" is not 1KiB to 16MiB`},
		{env{"MAX_SOCKETS": "0"}, `MAX_SOCKETS: "0" is not 1 to 1000000`},
		{env{"MAX_MUTATIONS": "five"}, `MAX_MUTATIONS: "five" is not 1 to 100`},
		{env{"OPERATOR_CLAIM": "operator"}, `OPERATOR_CLAIM: "operator" is no claim: not of the form name=value`},
		{env{"ALLOWED_ORIGINS": "*"}, `ALLOWED_ORIGINS: "*" is not https://host`},
		{env{"ALLOWED_ORIGINS": "https://*.example"}, `ALLOWED_ORIGINS: "https://*.example"`},
		{env{"ALLOWED_ORIGINS": "a.example"}, `ALLOWED_ORIGINS: "a.example"`},
		{env{"ALLOWED_ORIGINS": "https://a.example/app"}, `ALLOWED_ORIGINS: "https://a.example/app"`},
		{env{"ALLOWED_ORIGINS": "https://a.example,,"}, `ALLOWED_ORIGINS: "https://a.example,,"`},
		{env{"ALLOWED_ORIGINS": "https://u:p@a.example"}, `ALLOWED_ORIGINS:`},
		{keyServer(env{"JWKS_URL": "id.example/keys"}), `JWKS_URL: "id.example/keys": it is not a URL of the form https://host/path`},
		{keyServer(env{"JWKS_URL": "ftp://id.example/keys"}), `JWKS_URL: "ftp://id.example/keys": it is not a URL`},
		{keyServer(env{"JWKS_URL": "https:///keys"}), "JWKS_URL: "},
		{keyServer(env{"JWKS_URL": "https://kim@id.example/keys"}), "JWKS_URL: "},
		{keyServer(env{"JWKS_URL": "http://id.example/keys"}), "use https, or set JWKS_ALLOW_HTTP"},
		{keyServer(env{"JWKS_URL": "http://127.0.0.1.id.example/keys"}), "use https, or set JWKS_ALLOW_HTTP"},
		{env{"JWKS_REFRESH": "1s"}, `JWKS_REFRESH: "1s" is not 10s to 24h`},
		{env{"JWKS_MAX_STALE": "9m"}, `JWKS_MAX_STALE: "9m" is less than twice JWKS_REFRESH, "5m"`},
		{env{"JWKS_MAX_STALE": "0"}, `JWKS_MAX_STALE: "0" is not 1m to 720h`},
		{external(keyServer(env{"JWT_SECRET": "", "PLACE_SECRET": key, "GUEST_SESSIONS": "on"})), "JWT_SECRET: is needed with GUEST_SESSIONS"},
		{env{"READ_TIMEOUT": "30s"}, `REQUEST_TIMEOUT: "20s" is less than READ_TIMEOUT, "30s"`},
		{env{"DATABASE_URL": "postgres://db/seatline", "JWT_SECRET": key}, "REDIS_URL: is not set, and DATABASE_URL is"},
		{env{"REDIS_URL": "redis://r", "JWT_SECRET": key}, "DATABASE_URL: is not set, and REDIS_URL is"},
		{external(env{"JWT_SECRET": ""}), "JWT_SECRET: is needed with DATABASE_URL"},
		{external(env{"DATA_DIR": "/data"}), "DATA_DIR: is for the embedded stores, and DATABASE_URL is set"},
		{external(env{"DATABASE_URL": "mysql://db/seatline"}), "DATABASE_URL: it is not a URL of the form postgres://"},
		{external(env{"DATABASE_URL": "host=db"}), "DATABASE_URL: it is not"},
		{external(env{"DATABASE_URL": "postgres://"}), "DATABASE_URL: it is not"},
		{external(env{"REDIS_URL": "localhost:6379"}), "REDIS_URL: it is not a URL of the form redis://"},
		{external(env{"REDIS_URL": "redis://a,"}), "REDIS_URL: it is not"},
		{external(env{"REDIS_URL": "http://a"}), "REDIS_URL: it is not"},
	}
	for _, test := range tests {
		c, err := Load(nil, test.env.lookup, t.Output())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v; want %s", test.env, err, test.want)
		}
		if !reflect.DeepEqual(c, Config{}) {
			t.Errorf("%v: half a configuration", test.env)
		}
	}
}

func TestEverythingWrongIsToldAtOnce(t *testing.T) {
	_, err := Load([]string{"-max-depth=1"}, env{"TICK": "x", "ADDR": "y"}.lookup, t.Output())
	for _, name := range []string{"MAX_DEPTH", "TICK", "ADDR"} {
		if err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s is missing from: %v", name, err)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, test := range []struct {
		args   []string
		want   string
		manual bool
	}{
		{[]string{"-tikc=1s"}, "-tikc", true},
		{[]string{"-jwks-url=x"}, `JWKS_URL: "x": it is not a URL`, false},
		{[]string{"-tick"}, "-tick", true},
		{[]string{"serve"}, `unexpected argument "serve"`, false},
		{[]string{"-introspection", "off"}, `unexpected argument "off"`, false},
		{[]string{"-tick="}, `TICK: "" is not 20ms to 1m`, false},
	} {
		var out strings.Builder
		_, err := Load(test.args, env{}.lookup, &out)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v", test.args, err)
		}
		if strings.Contains(out.String(), "Usage:") != test.manual {
			t.Errorf("%v wrote %q", test.args, out.String())
		}
	}
}

func TestFlags(t *testing.T) {
	c := load(t, env{"DATA_DIR": "/data", "JWT_SECRET": key, "TICK": ""}, "-guest-sessions=false", "-introspection", "--data-dir=", "-jwt-secret=", "-healthcheck")
	if c.GuestSessions || !c.Introspection || c.DataDir != "" || !c.Healthcheck || !c.RandomSecret || c.Tick != time.Second {
		t.Errorf("%+v", c)
	}
}

func TestManual(t *testing.T) {
	var out strings.Builder
	if _, err := Load([]string{"-h"}, env{"TICK": "nonsense"}.lookup, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	manual := out.String()
	var c Config
	for _, s := range c.settings() {
		row := regexp.MustCompile(`(?m)^  ` + s.name + ` +\S`)
		if n := len(row.FindAllString(manual, -1)); n != 1 {
			t.Errorf("%s stands %d times in\n%s", s.name, n, manual)
		}
		if s.byDefault != "" && !strings.Contains(manual, "["+s.byDefault+"]") {
			t.Errorf("the default of %s is missing", s.name)
		}
	}
	for line := range strings.Lines(manual) {
		if trimmed := strings.TrimRightFunc(line, unicode.IsSpace); len(trimmed) > lineWidth || trimmed+"\n" != line {
			t.Errorf("long, or with space at its end: %q", line)
		}
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	c := load(t, external(env{"PLACE_SECRET": "place" + key}))
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("settings", "config", c, "url", c.DatabaseURL)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "config", c, "url", c.DatabaseURL)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		log.WriteString(fmt.Sprintf(verb, c) + fmt.Sprintf(verb, &c) + fmt.Sprintf(verb, c.JWTSecret))
	}
	_, err = Load(nil, external(env{"DATABASE_URL": "post gres://app:pw@db/seatline", "REDIS_URL": "http://:pw@r", "JWT_SECRET": "pw" + key[:5]}).lookup, &log)
	if err == nil {
		t.Fatal("no error")
	}
	all := log.String() + string(asJSON) + err.Error()
	for _, part := range []string{"pw", key[:5], fmt.Sprintf("%x", key), "app:"} {
		if strings.Contains(all, part) {
			t.Errorf("%q is shown in\n%s", part, all)
		}
	}
}

func TestPlaceKey(t *testing.T) {
	keys := map[string]bool{}
	for _, e := range []env{{"JWT_SECRET": key}, {"JWT_SECRET": key + "x"}, {"JWT_SECRET": key, "PLACE_SECRET": key + "y"}} {
		c := load(t, e)
		got, err := c.PlaceKey()
		if err != nil || len(got) != 32 {
			t.Fatalf("%x, %v", got, err)
		}
		again, err := c.PlaceKey()
		if err != nil || string(again) != string(got) {
			t.Error("another key at the second call")
		}
		if strings.Contains(key, string(got)) || keys[string(got)] {
			t.Errorf("%v: %x", e, got)
		}
		keys[string(got)] = true
	}
}

func TestLog(t *testing.T) {
	for _, test := range []struct{ level, format, want string }{
		{"warn", "json", `"msg":"seen"`}, {"warn", "text", "msg=seen"},
	} {
		var out strings.Builder
		log := slog.New(load(t, env{"LOG_LEVEL": test.level, "LOG_FORMAT": test.format}).Log(&out))
		log.Info("hidden")
		log.Warn("seen")
		if !strings.Contains(out.String(), test.want) || strings.Contains(out.String(), "hidden") {
			t.Errorf("%v: %s", test, out.String())
		}
	}
}

func TestCheckHealth(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
	}))
	addr := s.Listener.Addr().String()
	_, port, _ := strings.Cut(addr, ":")
	for _, addr := range []string{addr, ":" + port, "0.0.0.0:" + port} {
		if err := (Config{Addr: addr}).CheckHealth(t.Context()); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	status = http.StatusServiceUnavailable
	if err := (Config{Addr: addr}).CheckHealth(t.Context()); err == nil {
		t.Error("a server that is not ready is called healthy")
	}
	s.Close()
	if err := (Config{Addr: addr}).CheckHealth(t.Context()); err == nil {
		t.Error("nobody is called healthy")
	}
}

func TestWarnings(t *testing.T) {
	safe := env{"JWT_SECRET": strings.Repeat("s", auth.MinSecret)}
	if w := load(t, safe).Warnings(); len(w) > 0 {
		t.Errorf("warned of nothing: %v", w)
	}
	for name, tc := range map[string]struct {
		env  env
		want string
	}{
		"short secret":       {env{"JWT_SECRET": "short"}, "JWT_SECRET is short"},
		"short place secret": {env{"PLACE_SECRET": "short"}, "PLACE_SECRET is short"},
		"any issuer":         {keyServer(env{"JWT_ISSUER": ""}), "JWT_ISSUER is not set"},
		"any audience":       {keyServer(env{"JWT_AUDIENCE": ""}), "JWT_AUDIENCE is not set"},
		"random proofs":      {external(keyServer(env{"JWT_SECRET": ""})), "PLACE_SECRET is not set"},
	} {
		if w := load(t, tc.env).Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], tc.want) {
			t.Errorf("%s: %q, want one that begins with %q", name, w, tc.want)
		}
	}
}
