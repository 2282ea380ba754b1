package graphqlws

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// retryAfter is what a refused client is told to wait.
const retryAfter = 5 * time.Second

// Refusal is why a connection is not let in, said in HTTP, while it still can be.
type Refusal struct {
	Status  int
	Code    string        // for extensions.code
	Message string        // which limit it was
	Retry   time.Duration // when to ask again; 0: never
}

var (
	stopping      = &Refusal{http.StatusServiceUnavailable, "UNAVAILABLE", "the server is stopping; ask again", retryAfter}
	tooManyInAll  = &Refusal{http.StatusServiceUnavailable, "UNAVAILABLE", "too many connections to this server", retryAfter}
	tooManyHere   = &Refusal{http.StatusTooManyRequests, "RATE_LIMITED", "too many connections from this address", retryAfter}
	tooManyOfThem = &Refusal{http.StatusTooManyRequests, "RATE_LIMITED", "too many connections of this person", retryAfter}
	foreignOrigin = &Refusal{http.StatusForbidden, "FORBIDDEN", "pages of this origin may not connect", 0}
	badHandshake  = &Refusal{http.StatusBadRequest, "BAD_USER_INPUT", "this is no WebSocket handshake", 0}
)

// WriteTo answers with the refusal, as a GraphQL response.
func (e *Refusal) WriteTo(w http.ResponseWriter) {
	extensions := map[string]any{"code": e.Code}
	h := w.Header()
	if e.Retry > 0 {
		extensions["retryAfterMs"] = e.Retry.Milliseconds()
		h.Set("Retry-After", strconv.Itoa(int(e.Retry.Seconds())))
	}
	body, err := json.Marshal(map[string]any{"errors": gqlerror.List{{Message: e.Message, Extensions: extensions}}})
	if err != nil {
		panic(err) // Plain strings and numbers always marshal.
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(e.Status)
	_, _ = w.Write(body) // Who has left needs no answer.
}

// refuseHandshake is the upgrader's. What it found stays here: the text is
// gorilla's.
func refuseHandshake(w http.ResponseWriter, _ *http.Request, status int, _ error) {
	w.Header().Set("Sec-WebSocket-Version", "13")
	if status == http.StatusForbidden {
		foreignOrigin.WriteTo(w)
		return
	}
	why := *badHandshake
	why.Status = status
	why.WriteTo(w)
}

// Admit counts a connection that is no socket, an event stream say, among the
// sockets: in all, of its address and of its person. It returns the function
// that gives the place back, or why there is none. Wait waits for it, too.
func (t *Transport) Admit(r *http.Request, person string) (leave func(), why *Refusal) {
	address := t.address(r)
	if why := t.census.enter(address); why != nil {
		return nil, why
	}
	if !t.census.identify(person) {
		t.census.leave(address, "")
		return nil, tooManyOfThem
	}
	return sync.OnceFunc(func() { t.census.leave(address, person) }), nil
}

func (t *Transport) address(r *http.Request) string {
	if t.options.Address == nil {
		return ""
	}
	return t.options.Address(r)
}
