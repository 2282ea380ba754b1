package graph

import (
	"context"
	"crypto/rand"
	"net/http"
)

type requestIDKey struct{}

// RequestID is the id of the request, or of the socket, that ctx belongs to.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// WithRequestIDs gives every request an id, which is in the log, in INTERNAL
// errors and in the X-Request-Id of the reply. A proxy's id is kept if it is
// sane: log lines must stay lines.
func WithRequestIDs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !saneID(id) {
			id = rand.Text()
		}
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

func saneID(id string) bool {
	if len(id) == 0 || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ':', c == '=', c == '/', c == '+':
		default:
			return false
		}
	}
	return true
}
