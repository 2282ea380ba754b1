package graph

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

const (
	typeJSON     = "application/json"
	typeResponse = "application/graphql-response+json"
	typeEvents   = "text/event-stream"

	allowedMethods = "GET, POST, OPTIONS"
)

// httpTransport is GraphQL over HTTP: queries by GET, queries and mutations by
// POST with a JSON body. No other body is read, so a form on another site, which
// can send text/plain and the form types without asking, cannot act here.
type httpTransport struct {
	limits Limits
	events eventStream
}

// Supports is the last transport's: whatever nobody else took gets its answer,
// or its refusal, from here.
func (httpTransport) Supports(*http.Request) bool { return true }

func (t httpTransport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	reply := replyTo(w, r)
	var params *graphql.RawParams
	var refused *requestError
	switch r.Method {
	case http.MethodGet:
		params, refused = paramsOfURL(r.URL)
	case http.MethodPost:
		params, refused = readParams(w, r, t.limits)
	default:
		w.Header().Set("Allow", allowedMethods)
		refused = &requestError{http.StatusMethodNotAllowed, "the method must be GET or POST"}
	}
	if refused != nil {
		reply.refuse(refused)
		return
	}

	params.Headers = r.Header
	ctx, cancel := context.WithTimeout(r.Context(), t.limits.RequestTime)
	defer cancel()
	op, errs := exec.CreateOperationContext(ctx, params)
	if len(errs) > 0 {
		ctx = graphql.WithOperationContext(ctx, op)
		reply.requestErrors(exec.DispatchError(ctx, nameNeeded(op, errs)))
		return
	}
	if op.Operation.Operation == ast.Subscription && r.Method == http.MethodPost && accepts(r, typeEvents) {
		t.events.subscribe(w, r, exec, op)
		return
	}
	if refused := wrongMethod(op.Operation.Operation, r.Method); refused != nil {
		if refused.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", http.MethodPost)
		}
		reply.refuse(refused)
		return
	}
	respond, ctx := exec.DispatchOperation(ctx, op)
	reply.result(respond(ctx))
}

// wrongMethod refuses what may not be done this way: reading a link must never
// change anything, and a stream does not fit in one reply.
func wrongMethod(operation ast.Operation, method string) *requestError {
	switch {
	case operation == ast.Subscription:
		return &requestError{http.StatusBadRequest, "a subscription needs a WebSocket, or a POST that accepts text/event-stream"}
	case operation == ast.Mutation && method != http.MethodPost:
		return &requestError{http.StatusMethodNotAllowed, "a mutation must be sent by POST"}
	}
	return nil
}

// nameNeeded gives the reason when an operation was not found because none was
// named.
func nameNeeded(op *graphql.OperationContext, errs gqlerror.List) gqlerror.List {
	if op.Doc != nil && op.Operation == nil && op.OperationName == "" {
		return gqlerror.List{refusal(errcode.ValidationFailed, "operationName is needed: the document has %d operations", len(op.Doc.Operations))}
	}
	return errs
}

// requestError is a request that is no GraphQL request.
type requestError struct {
	status int
	text   string
}

func (e *requestError) Error() string { return e.text }

func badRequest(text string) *requestError { return &requestError{http.StatusBadRequest, text} }

// readParams reads the parameters of a POST. What arrived is never echoed, and
// whoever sends a byte a second is not waited for.
func readParams(w http.ResponseWriter, r *http.Request, limits Limits) (*graphql.RawParams, *requestError) {
	kind, attrs, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(attrs["charset"])
	if err != nil || kind != typeJSON || charset != "" && charset != "utf-8" {
		return nil, &requestError{http.StatusUnsupportedMediaType, "the body must be application/json in UTF-8"}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &requestError{http.StatusUnsupportedMediaType, "the body must be sent as it is, without a Content-Encoding"}
	}
	tooLarge := &requestError{http.StatusRequestEntityTooLarge, "the body is larger than " + strconv.FormatInt(limits.BodyBytes, 10) + " bytes"}
	if r.ContentLength > limits.BodyBytes {
		return nil, tooLarge // nothing is gained by reading it
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(limits.BodyTime)) // recorders in tests have no deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limits.BodyBytes))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge
		}
		return nil, &requestError{http.StatusRequestTimeout, "the body did not arrive"}
	}
	_ = control.SetReadDeadline(time.Time{})
	if !utf8.Valid(body) {
		return nil, badRequest("the body must be valid UTF-8")
	}

	var fields struct {
		Query         *string         `json:"query"`
		OperationName *string         `json:"operationName"`
		Variables     json.RawMessage `json:"variables"`
		Extensions    json.RawMessage `json:"extensions"`
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return nil, badRequest(wrong.Field + " must be a string")
		}
		return nil, badRequest("the body must be a JSON object")
	}
	return rawParams(valueOf(fields.Query), valueOf(fields.OperationName), fields.Variables, fields.Extensions)
}

func paramsOfURL(u *url.URL) (*graphql.RawParams, *requestError) {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, badRequest("the query string cannot be read")
	}
	return rawParams(q.Get("query"), q.Get("operationName"), []byte(q.Get("variables")), []byte(q.Get("extensions")))
}

func rawParams(query, name string, variables, extensions []byte) (*graphql.RawParams, *requestError) {
	p := &graphql.RawParams{Query: query, OperationName: name}
	if !readObject(variables, &p.Variables) {
		return nil, badRequest("variables must be a JSON object")
	}
	if !readObject(extensions, &p.Extensions) {
		return nil, badRequest("extensions must be a JSON object")
	}
	if query == "" && p.Extensions["persistedQuery"] == nil {
		return nil, badRequest("query is missing")
	}
	return p, nil
}

// readObject reads a JSON object; absent and null are none. Numbers keep their
// digits, so that a large one is refused and not rounded.
func readObject(b []byte, into *map[string]any) bool {
	if len(b) == 0 {
		return true
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return false
	}
	_, err := d.Token()
	return errors.Is(err, io.EOF)
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
