package graph

import (
	"net/http"
	"net/url"
	"strings"
)

// origins are the web sites, beside our own, whose pages may talk to us: one
// list for sockets and for HTTP. There is no wildcard.
type origins map[string]bool

func newOrigins(allowed []string) origins {
	o := origins{}
	for _, s := range allowed {
		if s, ok := canonicalOrigin(s); ok {
			o[s] = true
		}
	}
	return o
}

// canonicalOrigin writes scheme, host and port in the one way that compares
// equal: lower case, without a default port or a trailing slash.
func canonicalOrigin(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" && u.Path != "/" || strings.ContainsAny(s, "@?#") {
		return "", false
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host, true
}

// allow tells whether the page that sent r may talk to us. Whoever sends no
// Origin is no page: an app, a script, curl.
func (o origins) allow(r *http.Request) bool {
	sent := r.Header.Get("Origin")
	if sent == "" {
		return true
	}
	origin, ok := canonicalOrigin(sent)
	if !ok {
		return false
	}
	_, host, _ := strings.Cut(origin, "://")
	return o[origin] || host == strings.ToLower(r.Host)
}

// middleware answers preflights and marks replies for the pages that may read
// them. Credentials are never allowed: identity travels in a header that no
// browser adds by itself.
func (o origins) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" && o.allow(r) {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", allowedMethods)
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id")
				h.Set("Access-Control-Max-Age", "600")
			}
		}
		if r.Method == http.MethodOptions {
			h.Set("Allow", allowedMethods)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}
