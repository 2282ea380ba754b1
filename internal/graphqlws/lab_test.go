package graphqlws_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seatline/internal/graphqlws"
)

const labSDL = `
	type Query {
		hello: String!
		echo(text: String!): String!
		number(n: Int!): String!
		fails: String
		failsHard: String!
		panics: String
	}
	type Mutation {
		add(n: Int!): Int!
		hold(gate: String!): Int!
		wedge(gate: String!): Int!
	}
	type Subscription {
		count(to: Int!): Int!
		never: Int
		refuses: Int
		errors(at: Int!, to: Int!): Int
		breaks(after: Int!): Int!
		panics(after: Int!): Int!
		invalid: Int
		state(pad: Int!): State!
		blob(size: Int!): String!
	}
	type State { n: Int!  pad: String! }
`

// lab is an executable schema made by hand. It does what gqlgen's generated
// code does where a transport can see it: fields that panic are recovered, a
// null that may not be one travels up, and the buffer of a response is used
// again for the next one.
type lab struct {
	schema  *ast.Schema
	sum     atomic.Int64  // of all mutations
	live    atomic.Int64  // subscriptions whose source has not let go
	emitted atomic.Int64  // blobs
	holding chan struct{} // one for each hold or wedge that has begun

	mu     sync.Mutex
	gates  map[string]chan struct{}
	states map[chan any]struct{}
	last   any
}

func newLab() *lab {
	return &lab{
		schema:  gqlparser.MustLoadSchema(&ast.Source{Input: labSDL}),
		holding: make(chan struct{}, 100),
		gates:   map[string]chan struct{}{},
		states:  map[chan any]struct{}{},
	}
}

var errSecret = errors.New("dial tcp 10.0.0.7:5432: password authentication failed")

func (l *lab) gate(name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gates[name] == nil {
		l.gates[name] = make(chan struct{})
	}
	return l.gates[name]
}

// publish gives every state subscription the newest value, and never waits.
func (l *lab) publish(v any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = v
	for mailbox := range l.states {
		select {
		case <-mailbox:
		default:
		}
		mailbox <- v
	}
}

func (l *lab) resolve(ctx context.Context, field string, args map[string]any) (any, error) {
	switch field {
	case "hello":
		return "world", nil
	case "echo":
		return args["text"], nil
	case "number":
		return fmt.Sprint(args["n"]), nil
	case "fails", "failsHard":
		return nil, errSecret
	case "panics":
		panic("query")
	case "add":
		return l.sum.Add(integer(args["n"])), nil
	case "wedge":
		l.holding <- struct{}{}
		<-l.gate(args["gate"].(string))
		return l.sum.Add(1), nil
	case "hold":
		l.holding <- struct{}{}
		select {
		case <-l.gate(args["gate"].(string)):
			return l.sum.Add(1), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("no field %s", field)
}

// source is what a subscription reads: a value, an error beside null, or the
// function to call instead.
func (l *lab) source(ctx context.Context, field string, args map[string]any) (<-chan any, error) {
	switch field {
	case "refuses":
		return nil, gqlerror.Errorf("not today")
	case "state":
		return l.watch(ctx), nil
	}
	ch := make(chan any)
	emit := func(v any) bool {
		select {
		case ch <- v:
			return true
		case <-ctx.Done():
			return false
		}
	}
	l.produce(func() {
		defer close(ch)
		switch field {
		case "count":
			for i := range integer(args["to"]) {
				if !emit(i + 1) {
					return
				}
			}
		case "errors":
			for i := range integer(args["to"]) {
				var v any = i + 1
				if i+1 == integer(args["at"]) {
					v = gqlerror.Errorf("event %d", i+1)
				}
				if !emit(v) {
					return
				}
			}
		case "breaks":
			for i := range integer(args["after"]) {
				emit(i + 1)
			}
			addError(ctx, gqlerror.Errorf("broken off"))
		case "panics":
			for i := range integer(args["after"]) {
				emit(i + 1)
			}
			emit(func() any { panic("stream") })
		case "invalid":
			emit(json.RawMessage(`{"not":`))
		case "blob":
			for emit(strings.Repeat("x", int(integer(args["size"])))) {
				l.emitted.Add(1)
			}
		case "never":
			<-ctx.Done()
		}
	})
	return ch, nil
}

func (l *lab) produce(f func()) {
	l.live.Add(1)
	go func() {
		defer l.live.Add(-1)
		f()
	}()
}

func (l *lab) watch(ctx context.Context) <-chan any {
	mailbox := make(chan any, 1)
	l.live.Add(1)
	l.mu.Lock()
	l.states[mailbox] = struct{}{}
	if l.last != nil {
		mailbox <- l.last
	}
	l.mu.Unlock()
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		delete(l.states, mailbox)
		l.mu.Unlock()
		l.live.Add(-1)
	})
	return mailbox
}

// addError ends a stream with an error, whichever transport carries it.
func addError(ctx context.Context, err *gqlerror.Error) {
	if !graphqlws.AddSubscriptionError(ctx, err) {
		transport.AddSubscriptionError(ctx, err)
	}
}

func integer(v any) int64 {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			panic(err)
		}
		return n
	case int64:
		return v
	}
	panic(fmt.Sprintf("%T is no integer", v))
}

func (l *lab) Schema() *ast.Schema { return l.schema }

func (l *lab) Complexity(context.Context, string, string, int, map[string]any) (int, bool) {
	return 0, false
}

func (l *lab) Exec(ctx context.Context) graphql.ResponseHandler {
	opCtx := graphql.GetOperationContext(ctx)
	if opCtx.Operation.Operation == ast.Subscription {
		return l.subscribe(ctx, opCtx)
	}
	first := true
	return func(ctx context.Context) *graphql.Response {
		if !first {
			return nil
		}
		first = false
		var buf bytes.Buffer
		l.object(ctx, &buf, opCtx, opCtx.Operation.SelectionSet)
		return &graphql.Response{Data: buf.Bytes()}
	}
}

func (l *lab) subscribe(ctx context.Context, opCtx *graphql.OperationContext) graphql.ResponseHandler {
	field := graphql.CollectFields(opCtx, opCtx.Operation.SelectionSet, []string{"Subscription"})[0]
	source, err := l.source(ctx, field.Name, field.ArgumentMap(opCtx.Variables))
	if err != nil {
		graphql.AddError(ctx, err)
		return nil
	}
	var buf bytes.Buffer
	return func(ctx context.Context) *graphql.Response {
		select {
		case <-ctx.Done():
			return nil
		case v, ok := <-source:
			if !ok {
				return nil
			}
			buf.Reset()
			if f, ok := v.(func() any); ok {
				v = f()
			}
			if err, ok := v.(error); ok {
				graphql.AddError(ctx, err)
				v = nil
			}
			if state, ok := v.(map[string]any); ok {
				v = project(opCtx, field, state)
			}
			fmt.Fprintf(&buf, `{%q:`, field.Alias)
			write(&buf, v)
			buf.WriteByte('}')
			return &graphql.Response{Data: buf.Bytes()}
		}
	}
}

func project(opCtx *graphql.OperationContext, field graphql.CollectedField, state map[string]any) map[string]any {
	selected := map[string]any{}
	for _, f := range graphql.CollectFields(opCtx, field.Selections, []string{"State"}) {
		selected[f.Alias] = state[f.Name]
	}
	return selected
}

// object writes the fields of a query or mutation, one after the other.
func (l *lab) object(ctx context.Context, buf *bytes.Buffer, opCtx *graphql.OperationContext, set ast.SelectionSet) {
	buf.WriteByte('{')
	for i, field := range graphql.CollectFields(opCtx, set, []string{"Query", "Mutation"}) {
		if i > 0 {
			buf.WriteByte(',')
		}
		fmt.Fprintf(buf, `%q:`, field.Alias)
		if field.Name == "__typename" {
			write(buf, field.ObjectDefinition.Name)
			continue
		}
		v := l.field(ctx, field, opCtx)
		if v == nil && field.Definition.Type.NonNull {
			buf.Reset()
			buf.WriteString("null")
			return
		}
		write(buf, v)
	}
	buf.WriteByte('}')
}

func (l *lab) field(ctx context.Context, field graphql.CollectedField, opCtx *graphql.OperationContext) (v any) {
	ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: field.ObjectDefinition.Name, Field: field})
	defer func() {
		if r := recover(); r != nil {
			graphql.AddError(ctx, graphql.Recover(ctx, r))
			v = nil
		}
	}()
	v, err := l.resolve(ctx, field.Name, field.ArgumentMap(opCtx.Variables))
	if err != nil {
		graphql.AddError(ctx, err)
		return nil
	}
	return v
}

func write(buf *bytes.Buffer, v any) {
	if raw, ok := v.(json.RawMessage); ok {
		buf.Write(raw)
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	buf.Write(b)
}
