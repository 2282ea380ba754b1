package graphqlws_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seatline/internal/graphqlws"
)

func TestOperations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, query string
		want        []string // NEXT stands for the protocol's word
	}{
		{"query", `{hello}`, []string{
			`{"id":"1","type":"NEXT","payload":{"data":{"hello":"world"}}}`,
			`{"id":"1","type":"complete"}`,
		}},
		{"alias and typename", `query Q {x:__typename y:echo(text:"<&\u2028>")}`, []string{
			`{"id":"1","type":"NEXT","payload":{"data":{"x":"Query","y":"<&\u2028>"}}}`,
			`{"id":"1","type":"complete"}`,
		}},
		{"mutation", `mutation{add(n:3)}`, []string{
			`{"id":"1","type":"NEXT","payload":{"data":{"add":3}}}`,
			`{"id":"1","type":"complete"}`,
		}},
		{"subscription", `subscription{count(to:3)}`, []string{
			`{"id":"1","type":"NEXT","payload":{"data":{"count":1}}}`,
			`{"id":"1","type":"NEXT","payload":{"data":{"count":2}}}`,
			`{"id":"1","type":"NEXT","payload":{"data":{"count":3}}}`,
			`{"id":"1","type":"complete"}`,
		}},
		{"empty subscription", `subscription{count(to:0)}`, []string{
			`{"id":"1","type":"complete"}`,
		}},
		{"error beside data", `{hello fails}`, []string{
			`{"id":"1","type":"NEXT","payload":{"errors":[{"message":"Internal error","path":["fails"],"extensions":{"code":"INTERNAL"}}],"data":{"hello":"world","fails":null}}}`,
			`{"id":"1","type":"complete"}`,
		}},
		{"null at the root", `{failsHard}`, []string{
			`{"id":"1","type":"NEXT","payload":{"errors":[{"message":"Internal error","path":["failsHard"],"extensions":{"code":"INTERNAL"}}],"data":null}}`,
			`{"id":"1","type":"complete"}`,
		}},
		{"field panics", `{panics}`, []string{
			`{"id":"1","type":"NEXT","payload":{"errors":[{"message":"Internal error","path":["panics"],"extensions":{"code":"INTERNAL"}}],"data":{"panics":null}}}`,
			`{"id":"1","type":"complete"}`,
		}},
		{"error in an event", `subscription{errors(at:2,to:3)}`, []string{
			`{"id":"1","type":"NEXT","payload":{"data":{"errors":1}}}`,
			`{"id":"1","type":"NEXT","payload":{"errors":[{"message":"event 2"}],"data":{"errors":null}}}`,
			`{"id":"1","type":"NEXT","payload":{"data":{"errors":3}}}`,
			`{"id":"1","type":"complete"}`,
		}},
		{"stream breaks", `subscription{breaks(after:1)}`, []string{
			`{"id":"1","type":"NEXT","payload":{"data":{"breaks":1}}}`,
			`{"id":"1","type":"error","payload":[{"message":"broken off"}]}`,
		}},
		{"stream panics", `subscription{panics(after:1)}`, []string{
			`{"id":"1","type":"NEXT","payload":{"data":{"panics":1}}}`,
			`{"id":"1","type":"error","payload":[{"message":"Internal error","extensions":{"code":"INTERNAL"}}]}`,
		}},
		{"data that is no JSON", `subscription{invalid}`, []string{
			`{"id":"1","type":"error","payload":[{"message":"Internal error","extensions":{"code":"INTERNAL"}}]}`,
		}},
		{"subscription refused", `subscription{refuses}`, []string{
			`{"id":"1","type":"error","payload":[{"message":"not today"}]}`,
		}},
		{"parse error", `{`, []string{
			`{"id":"1","type":"error","payload":[{"message":"Expected Name, found <EOF>","locations":[{"line":1,"column":2}],"extensions":{"code":"GRAPHQL_PARSE_FAILED"}}]}`,
		}},
		{"no operation", ``, []string{
			`{"id":"1","type":"error","payload":[{"message":"no operation provided","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`,
		}},
		{"validation error", `{nothing missing}`, []string{
			`{"id":"1","type":"error","payload":[
				{"message":"Cannot query field \"nothing\" on type \"Query\".","locations":[{"line":1,"column":2}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}},
				{"message":"Cannot query field \"missing\" on type \"Query\".","locations":[{"line":1,"column":10}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`,
		}},
		{"too complex", `{` + aliases(51) + `}`, []string{
			`{"id":"1","type":"error","payload":[{"message":"operation has complexity 51, which exceeds the limit of 50","extensions":{"code":"COMPLEXITY_LIMIT_EXCEEDED"}}]}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, protocol string) {
				s := newServer(t, graphqlws.Options{})
				p := s.open(t, protocol)
				for range 2 { // The id is free again when the client has seen the end.
					s.sum.Store(0)
					p.subscribe("1", tt.query)
					for _, want := range tt.want {
						p.expect(strings.ReplaceAll(want, "NEXT", nextType(protocol)))
					}
				}
				if protocol == transportWS {
					p.pingPong() // Nothing comes after the end.
				}
			})
		})
	}
}

func aliases(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d:hello ", i)
	}
	return b.String()
}

// Variables keep their digits, and reach the resolver by the operation's name.
func TestVariablesAndOperationName(t *testing.T) {
	t.Parallel()
	p := newServer(t, graphqlws.Options{}).open(t, transportWS)
	p.send(`{"id":"1","type":"subscribe","payload":{"operationName":"B","variables":{"n":9007199254740993},
		"query":"query A{hello} query B($n:Int!){number(n:$n)}","extensions":{"trace":"x"}}}`)
	p.expect(`{"id":"1","type":"next","payload":{"data":{"number":"9007199254740993"}}}`, `{"id":"1","type":"complete"}`)
}

func TestIDsAreRepeatedExactly(t *testing.T) {
	t.Parallel()
	p := newServer(t, graphqlws.Options{}).open(t, transportWS)
	for _, quoted := range []string{`"\"}{"`, `"줄"`, `"\n\u0000"`, `"<&>"`} {
		p.send(`{"id":` + quoted + `,"type":"subscribe","payload":{"query":"{hello}"}}`)
		p.expect(`{"id":`+quoted+`,"type":"next","payload":{"data":{"hello":"world"}}}`, `{"id":`+quoted+`,"type":"complete"}`)
	}
}

// After the client's complete nothing is sent for the id, the source is let go,
// and the id can be used at once; other ids go on.
func TestClientCompletes(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, protocol string) {
		s := newServer(t, graphqlws.Options{})
		p := s.open(t, protocol)
		p.subscribe("other", `subscription{state(pad:0){n}}`)
		eventually(t, func() bool { return s.live.Load() == 1 }, "not subscribed")
		for range 500 {
			p.subscribe("a", `subscription{never}`)
			p.send(`{"id":"a","type":"` + completeType(protocol) + `"}`)
		}
		p.subscribe("a", `{hello}`)
		p.expect(`{"id":"a","type":"`+nextType(protocol)+`","payload":{"data":{"hello":"world"}}}`, `{"id":"a","type":"complete"}`)
		eventually(t, func() bool { return s.live.Load() == 1 }, "a completed source goes on")
		s.publish(map[string]any{"n": 1})
		p.expect(`{"id":"other","type":"` + nextType(protocol) + `","payload":{"data":{"state":{"n":1}}}}`)
	})
}

// A message of an earlier owner of an id never comes after the next one's
// first: the client would take it for its own.
func TestReusedIDIsNotMixed(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	p := s.open(t, transportWS)
	for range 200 {
		p.subscribe("a", `subscription{blob(size:10)}`)
		p.send(`{"id":"a","type":"complete"}`)
		p.subscribe("a", `{hello}`)
		for seen := false; ; {
			text := p.next()
			if strings.Contains(text, `"complete"`) {
				break
			}
			switch hello := strings.Contains(text, "world"); {
			case hello:
				seen = true
			case seen:
				t.Fatalf("after the new owner's first message: %s", text)
			}
		}
	}
}

func TestCompleteOfUnknownIDIsIgnored(t *testing.T) {
	t.Parallel()
	p := newServer(t, graphqlws.Options{}).open(t, transportWS)
	p.send(`{"id":"nobody","type":"complete"}`)
	p.pingPong()
}

// One subscriber's panic is that one's: the others see no gap, and its id is free.
func TestPanicHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	var others []*peer
	for range 50 {
		p := s.open(t, transportWS)
		p.subscribe("a", `subscription{count(to:30)}`)
		others = append(others, p)
	}
	p := s.open(t, transportWS)
	for range 3 {
		p.subscribe("a", `subscription{panics(after:0)}`)
		p.expect(`{"id":"a","type":"error","payload":[{"message":"Internal error","extensions":{"code":"INTERNAL"}}]}`)
	}
	for _, p := range others {
		for i := range 30 {
			p.expect(fmt.Sprintf(`{"id":"a","type":"next","payload":{"data":{"count":%d}}}`, i+1))
		}
		p.expect(`{"id":"a","type":"complete"}`)
	}
}

func TestPingPayloads(t *testing.T) {
	t.Parallel()
	p := newServer(t, graphqlws.Options{}).dial(t, transportWS)
	p.send(`{"type":"ping"}`) // before the acknowledgement, too
	p.expect(`{"type":"pong"}`)
	p.send(`{"type":"ping","payload":null}`)
	p.expect(`{"type":"pong"}`)
	p.send(`{"type":"ping", "payload": {"a" : [1, "}"]} }`)
	p.expect(`{"type":"pong","payload":{"a":[1,"}"]}}`)
	deep := strings.Repeat(`{"a":`, 99) + `"]\"[{"` + strings.Repeat(`}`, 99)
	p.send(`{"type":"ping","payload":` + deep + `}`)
	p.expect(`{"type":"pong","payload":` + deep + `}`)
	p.send(`{"type":"pong"}`)
	p.init()
}

// An interceptor that answers for ever, where it should once, is heard once.
func TestInterceptorsThatRepeatThemselves(t *testing.T) {
	t.Parallel()
	forever := func(r graphql.Response) graphql.OperationMiddleware {
		return func(context.Context, graphql.OperationHandler) graphql.ResponseHandler {
			return func(context.Context) *graphql.Response { return &r }
		}
	}
	refusal := graphql.Response{Errors: gqlerror.List{{Message: "too fast"}}}
	tests := []struct {
		query    string
		response graphql.Response
		want     []string
	}{
		{`{hello}`, graphql.Response{Data: []byte(`{"hello":"cached"}`)}, []string{
			`{"id":"1","type":"next","payload":{"data":{"hello":"cached"}}}`, `{"id":"1","type":"complete"}`,
		}},
		{`{hello}`, refusal, []string{`{"id":"1","type":"error","payload":[{"message":"too fast"}]}`}},
		{`subscription{never}`, refusal, []string{`{"id":"1","type":"error","payload":[{"message":"too fast"}]}`}},
	}
	for _, tt := range tests {
		s := newServer(t, graphqlws.Options{})
		h := handler.New(s.lab)
		h.AddTransport(s.Transport)
		h.AroundOperations(forever(tt.response))
		s.http.Config.Handler = h
		p := s.open(t, transportWS)
		p.subscribe("1", tt.query)
		p.expect(tt.want...)
		p.pingPong()
	}
}

// A presenter or a recover function that fails, too, takes only its operation along.
func TestPanicsWhilePresenting(t *testing.T) {
	t.Parallel()
	const fallback = `{"id":"1","type":"error","payload":[{"message":"internal system error","extensions":{"code":"INTERNAL"}}]}`
	s := newServer(t, graphqlws.Options{})
	h := handler.New(s.lab)
	h.AddTransport(s.Transport)
	h.SetErrorPresenter(func(context.Context, error) *gqlerror.Error { panic("presenter") })
	h.SetRecoverFunc(func(context.Context, any) error { return errSecret })
	s.http.Config.Handler = h
	p := s.open(t, transportWS)
	for _, query := range []string{`subscription{panics(after:0)}`, `{`, `subscription{breaks(after:0)}`} {
		p.subscribe("1", query)
		p.expect(fallback)
	}
	h.SetErrorPresenter(func(context.Context, error) *gqlerror.Error { return nil })
	for _, query := range []string{`subscription{panics(after:0)}`, `{`, `subscription{breaks(after:0)}`} {
		p.subscribe("1", query)
		p.expect(fallback)
	}
}

// mine is an error extension that fails when the client is to be told of it.
type mine struct{}

func (mine) MarshalJSON() ([]byte, error) { panic("marshaler") }

// Where not even the error can be told, the socket ends, and the process goes on.
func TestPanicWhileTellingTheError(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	h := handler.New(s.lab)
	h.AddTransport(s.Transport)
	h.SetErrorPresenter(func(context.Context, error) *gqlerror.Error {
		return &gqlerror.Error{Message: "boom", Extensions: map[string]any{"mine": mine{}}}
	})
	s.http.Config.Handler = h
	bystander := s.open(t, transportWS)
	p := s.open(t, transportWS)
	p.subscribe("1", `{`)
	p.expectClose(1011, "Internal server error")
	bystander.pingPong()
}

// Operations end with their socket even where Init's context has nothing to do
// with it.
func TestForeignInitContext(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{
		Init: func(context.Context, map[string]any) (context.Context, map[string]any, time.Time, error) {
			return context.Background(), nil, time.Time{}, nil
		},
	})
	p := s.open(t, transportWS)
	p.subscribe("a", `subscription{never}`)
	eventually(t, func() bool { return s.live.Load() == 1 }, "not subscribed")
	_ = p.Close()
	eventually(t, func() bool { return s.live.Load() == 0 }, "the source goes on")
}

// Middleware may wrap the ResponseWriter, as long as it can be unwrapped.
func TestUpgradeThroughMiddleware(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	wrapped := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.http.Config.Handler.ServeHTTP(wrapper{w}, r)
	}))
	defer wrapped.Close()
	c, resp, err := (&websocket.Dialer{Subprotocols: []string{transportWS}}).Dial("ws"+strings.TrimPrefix(wrapped.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	defer func() { _ = c.Close() }()
	p := &peer{t, c}
	p.init()
	p.pingPong()
}

// wrapper hides everything but Unwrap.
type wrapper struct{ w http.ResponseWriter }

func (w wrapper) Header() http.Header         { return w.w.Header() }
func (w wrapper) Write(b []byte) (int, error) { return w.w.Write(b) }
func (w wrapper) WriteHeader(status int)      { w.w.WriteHeader(status) }
func (w wrapper) Unwrap() http.ResponseWriter { return w.w }

// net/http's timeouts end with the upgrade, and so does the request's context.
func TestSocketOutlivesTheRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t, graphqlws.Options{})
	p := s.open(t, transportWS)
	p.subscribe("a", `subscription{state(pad:0){n}}`)
	eventually(t, func() bool { return s.live.Load() == 1 }, "not subscribed")
	<-time.After(3 * httpTimeout / 2)
	s.publish(map[string]any{"n": 1})
	p.expect(`{"id":"a","type":"next","payload":{"data":{"state":{"n":1}}}}`)
	p.pingPong()
}
