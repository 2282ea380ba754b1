package graphqlws_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"pgregory.net/rapid"

	"seatline/internal/graphqlws"
)

// Over random operations clients see the same payloads from this transport as
// from gqlgen's own, in the same order, except that
//
//   - nothing follows `error` (gqlgen sends a `complete` as well), and
//   - a response without data is `error` here, where gqlgen sends its errors in
//     a `next` with null for data, and a `complete`.
func TestSameAsGqlgen(t *testing.T) {
	both(t, func(t *testing.T, protocol string) {
		ours := newSubject(t, protocol, graphqlws.New(graphqlws.Options{MaxMessages: 1_000_000, Log: slog.New(slog.DiscardHandler)}))
		theirs := newSubject(t, protocol, transport.Websocket{})
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			// A hundred times as many as are drawn here, for each protocol.
			for _, payload := range rapid.SliceOfN(operations(), 15, 15).Draw(rt, "operations") {
				n++
				got, want := ours.run(t, n, payload), theirs.run(t, n, payload)
				if !reflect.DeepEqual(got, want) && !reflect.DeepEqual(got, requestError(want)) {
					rt.Fatalf("%s\nours   %v\ntheirs %v", payload, got, want)
				}
			}
		})
		ours.finish(t)
		theirs.finish(t)
	})
}

// requestError is what a lone response without data becomes.
func requestError(outcomes []outcome) []outcome {
	if len(outcomes) != 2 || outcomes[0].typ != "next" || outcomes[1].typ != "complete" {
		return nil
	}
	payload, ok := outcomes[0].payload.(map[string]any)
	if data, present := payload["data"]; !ok || !present || data != nil {
		return nil
	}
	return []outcome{{"error", payload["errors"]}}
}

type subject struct {
	*peer
	http *httptest.Server
	live func() bool
}

type outcome struct {
	typ     string
	payload any
}

func newSubject(t *testing.T, protocol string, tr graphql.Transport) *subject {
	l := newLab()
	h := handler.New(l)
	h.AddTransport(tr)
	h.Use(extension.FixedComplexityLimit(20))
	h.SetRecoverFunc(func(context.Context, any) error { return gqlerror.Errorf("recovered") })
	s := &subject{http: httptest.NewServer(h), live: func() bool { return l.live.Load() > 0 }}
	c, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol}}).Dial("ws"+strings.TrimPrefix(s.http.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	s.peer = &peer{t, c}
	s.init()
	return s
}

func (s *subject) finish(t *testing.T) {
	_ = s.Close()
	s.http.Close()
	eventually(t, func() bool { return !s.live() }, "a source is still running")
}

// run returns an operation's messages, under one name for both protocols.
func (s *subject) run(t *testing.T, n int, payload string) (outcomes []outcome) {
	t.Helper()
	id := fmt.Sprint(n)
	typ := "subscribe"
	if s.Subprotocol() == legacyWS {
		typ = "start"
	}
	s.send(fmt.Sprintf(`{"id":%q,"type":%q,"payload":%s}`, id, typ, payload))
	for {
		var m struct {
			ID, Type string
			Payload  any
		}
		if err := json.Unmarshal([]byte(s.next()), &m); err != nil {
			t.Fatal(err)
		}
		if m.ID != id && m.Type == "complete" {
			continue // What gqlgen sends after an error.
		}
		if m.Type == "data" {
			m.Type = "next"
		}
		outcomes = append(outcomes, outcome{m.Type, m.Payload})
		if m.Type != "next" {
			return outcomes
		}
	}
}

// operations makes subscribe payloads: good ones, odd ones and broken ones.
func operations() *rapid.Generator[string] {
	small := rapid.IntRange(0, 5)
	text := rapid.StringN(0, 12, -1)
	queryField := rapid.OneOf(
		rapid.SampledFrom([]string{"hello", "fails", "failsHard", "panics", "__typename", "missing", "hello @skip(if:true)", "hello @nope", "echo"}),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("echo(text:%s)", mustJSON(text.Draw(t, "text"))) }),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("number(n:%d)", rapid.Int64().Draw(t, "n")) }),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("number(n:%v)", rapid.Float64().Draw(t, "n")) }),
	)
	subscription := rapid.OneOf(
		rapid.SampledFrom([]string{"refuses", "invalid", "count(to:-1)", "count", "refuses count(to:1)", "__typename"}),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("count(to:%d)", small.Draw(t, "to")) }),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("breaks(after:%d)", small.Draw(t, "after")) }),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("panics(after:%d)", small.Draw(t, "after")) }),
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("errors(at:%d,to:%d)", small.Draw(t, "at"), small.Draw(t, "to"))
		}),
	)
	document := rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2:
			var b strings.Builder
			for i, f := range rapid.SliceOfN(queryField, 0, 24).Draw(t, "fields") {
				fmt.Fprintf(&b, "a%d:%s ", i, f)
			}
			return "query Q{" + b.String() + "}"
		case 3:
			return fmt.Sprintf("mutation M{add(n:%d) again:add(n:1)}", small.Draw(t, "n"))
		case 4, 5, 6, 7:
			alias := rapid.SampledFrom([]string{"", "x:"}).Draw(t, "alias")
			return "subscription S{" + alias + subscription.Draw(t, "field") + "}"
		case 8:
			return "query Q($n:Int!,$t:String=\"d\"){number(n:$n) echo(text:$t)} subscription S{count(to:2)}"
		default:
			return text.Draw(t, "text")
		}
	})
	return rapid.Custom(func(t *rapid.T) string {
		payload := map[string]any{"query": document.Draw(t, "document")}
		if name := rapid.SampledFrom([]string{"", "", "", "Q", "S", "X"}).Draw(t, "name"); name != "" {
			payload["operationName"] = name
		}
		if rapid.Bool().Draw(t, "variables") {
			payload["variables"] = map[string]any{
				"n": rapid.SampledFrom([]any{1, 9007199254740993, "1", nil, 1.5, true}).Draw(t, "n"),
				"t": rapid.SampledFrom([]any{"x", nil, 1}).Draw(t, "t"),
			}
		}
		return mustJSON(payload)
	})
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
