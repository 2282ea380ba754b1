package graph

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// reply writes one GraphQL response in the media type that the client prefers.
// With application/json the status says only whether GraphQL was spoken; with
// application/graphql-response+json it says whether the operation was executed.
type reply struct {
	w    http.ResponseWriter
	kind string
}

func replyTo(w http.ResponseWriter, r *http.Request) reply {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept")
	return reply{w: w, kind: preferred(r, typeJSON, typeResponse)}
}

// result writes the response of an operation that was executed.
func (p reply) result(r *graphql.Response) {
	p.write(http.StatusOK, r)
}

// requestErrors writes the response of an operation that was refused before
// anything ran: without data, as there is none, not even null.
func (p reply) requestErrors(r *graphql.Response) {
	status := http.StatusOK
	if p.kind == typeResponse {
		status = http.StatusBadRequest
	}
	if wait := retryOf(r); wait > 0 {
		status = http.StatusTooManyRequests
		setRetryAfter(p.w.Header(), wait)
	}
	p.write(status, withoutData(r))
}

// refuse writes the answer to a request that is no GraphQL request.
func (p reply) refuse(e *requestError) {
	if e.status == http.StatusRequestEntityTooLarge || e.status == http.StatusRequestTimeout {
		p.w.Header().Set("Connection", "close")
	}
	p.write(e.status, withoutData(&graphql.Response{Errors: gqlerror.List{refusal(codeBadUserInput, "%s", e.text)}}))
}

func (p reply) write(status int, body any) {
	writeJSON(p.w, status, p.kind, body)
}

func writeJSON(w http.ResponseWriter, status int, kind string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // our own types; the server's recover answers
	}
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// requestResponse is a response whose data key is absent.
type requestResponse struct {
	Errors     gqlerror.List  `json:"errors"`
	Extensions map[string]any `json:"extensions,omitempty"`
}

func withoutData(r *graphql.Response) requestResponse {
	return requestResponse{Errors: r.Errors, Extensions: r.Extensions}
}

// preferred is the one of the types we have that the Accept header likes best.
// Without a header, and where nothing of ours is liked, it is the first, which is
// also what a wildcard gets.
func preferred(r *http.Request, ours ...string) string {
	best, bestQ, bestRank := ours[0], 0.0, 0
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, attrs, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		q := 1.0
		if v, ok := attrs["q"]; ok {
			if q, err = strconv.ParseFloat(v, 64); err != nil {
				continue
			}
		}
		answer, rank := kind, 2
		switch {
		case slices.Contains(ours, kind):
		case kind == "application/*", kind == "*/*":
			answer, rank = ours[0], 1
		default:
			continue
		}
		// Of equals, the more exact wins, then the one named first.
		if q > bestQ || q == bestQ && q > 0 && rank > bestRank {
			best, bestQ, bestRank = answer, q, rank
		}
	}
	return best
}

// accepts reports whether a request names a media type as one that it takes.
func accepts(r *http.Request, kind string) bool {
	return preferred(r, "", kind) == kind
}
