package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Limits bound what one operation may ask, which is checked before any field
// runs, and how long its request may take.
type Limits struct {
	BodyBytes      int64
	ParserTokens   int
	Depth          int
	Complexity     int
	MutationFields int

	BodyTime    time.Duration // for the body to arrive
	RequestTime time.Duration // for the whole of a query or mutation
	WriteTime   time.Duration // for a client to take a piece of a stream
	KeepAlive   time.Duration // between signs of life in a stream
}

const (
	codeComplexity = "COMPLEXITY_LIMIT_EXCEEDED"

	// maxPage is the largest page that a list gives.
	maxPage = 100

	// longText is what a field counts whose text may fill pages: under a hundred
	// names it would make a small request a very large reply.
	longText = 10

	// maxIntrospections lets the standard introspection query through and
	// keeps it from being asked a hundred times under aliases.
	maxIntrospections = 2
)

// operationLimits refuses operations that ask too much, or too often.
type operationLimits struct {
	Limits
	introspection bool
	schema        *ast.Schema
	rates         *rates
}

var _ interface {
	graphql.HandlerExtension
	graphql.OperationContextMutator
} = operationLimits{}

// ExtensionName is part of gqlgen's interface.
func (operationLimits) ExtensionName() string { return "OperationLimits" }

// Validate is part of gqlgen's interface.
func (operationLimits) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext refuses the operation, or lets it pass as it is.
func (l operationLimits) MutateOperationContext(ctx context.Context, op *graphql.OperationContext) *gqlerror.Error {
	op.DisableIntrospection = !l.introspection
	m := (&meter{vars: op.Variables, fragments: map[*ast.FragmentDefinition]measure{}}).selection(op.Operation.SelectionSet)
	switch {
	case m.introspections > 0 && !l.introspection:
		return refusal(errcode.ValidationFailed, "introspection is not enabled on this server")
	case m.introspections > maxIntrospections:
		return refusal(codeComplexity, "the operation asks for the schema %d times; at most %d are answered", m.introspections, maxIntrospections)
	case m.depth > l.Depth:
		return refusal(codeComplexity, "the operation is %d fields deep; the limit is %d", m.depth, l.Depth)
	case m.cost > l.Complexity:
		return refusal(codeComplexity, "the operation may read %d fields; the limit is %d", m.cost, l.Complexity)
	case op.Operation.Operation == ast.Mutation && m.fields > l.MutationFields:
		return refusal(codeComplexity, "the operation has %d mutations; the limit is %d", m.fields, l.MutationFields)
	}
	if err := checkRoot(l.schema, op); err != nil {
		return err
	}
	return l.rates.take(ctx, m.fields)
}

// measure is how much a selection asks.
type measure struct {
	fields         int // own fields, those of fragments included
	depth          int
	cost           int // fields that may be read, a page counted in full
	introspections int
}

// meter measures selections. A fragment is measured once, however often it is
// spread, so a chain of fragments that doubles at each link costs its length to
// refuse, not its size.
type meter struct {
	vars      map[string]any
	fragments map[*ast.FragmentDefinition]measure
}

// tooMuch is where sums stop growing, so that they cannot overflow.
const tooMuch = 1 << 30

func (m *meter) selection(set ast.SelectionSet) measure {
	var sum measure
	for _, s := range set {
		var part measure
		switch s := s.(type) {
		case *ast.Field:
			part = m.field(s)
		case *ast.InlineFragment:
			part = m.selection(s.SelectionSet)
		case *ast.FragmentSpread:
			part = m.fragment(s.Definition)
		}
		sum.fields = min(sum.fields+part.fields, tooMuch)
		sum.cost = min(sum.cost+part.cost, tooMuch)
		sum.introspections = min(sum.introspections+part.introspections, tooMuch)
		sum.depth = max(sum.depth, part.depth)
	}
	return sum
}

func (m *meter) fragment(f *ast.FragmentDefinition) measure {
	if f == nil {
		return measure{}
	}
	part, ok := m.fragments[f]
	if !ok {
		part = m.selection(f.SelectionSet)
		m.fragments[f] = part
	}
	return part
}

func (m *meter) field(f *ast.Field) measure {
	if f.Name == "__schema" || f.Name == "__type" {
		// The schema is small and known; how deep one looks into it is
		// bounded by the validator.
		return measure{fields: 1, depth: 1, cost: 1, introspections: 1}
	}
	inner := m.selection(f.SelectionSet)
	cost := inner.cost
	if first := m.first(f); first > 1 {
		cost = min(cost*min(first, maxPage), tooMuch)
	}
	own := 1
	if f.Name == "description" {
		own = longText
	}
	return measure{fields: 1, depth: inner.depth + 1, cost: min(cost+own, tooMuch), introspections: inner.introspections}
}

// first is the size of the page that a field asks for, 1 where it is no page.
func (m *meter) first(f *ast.Field) int {
	if f.Definition == nil || f.Definition.Arguments.ForName("first") == nil {
		return 1
	}
	switch n := f.ArgumentMap(m.vars)["first"].(type) {
	case int64:
		return int(min(max(n, 1), maxPage))
	case nil:
		return 1
	default:
		return maxPage // a form that only the resolver understands: assume the most
	}
}
