package graph

import (
	"context"
	"maps"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seatline/graph/model"
)

// coercions read the scalars of arguments, as the resolvers will.
var coercions = map[string]func(any) error{
	"Int":     func(v any) error { _, err := model.UnmarshalInt(v); return err },
	"Float":   func(v any) error { _, err := model.UnmarshalFloat(v); return err },
	"String":  func(v any) error { _, err := model.UnmarshalString(v); return err },
	"Time":    func(v any) error { _, err := model.UnmarshalTime(v); return err },
	"Boolean": func(v any) error { _, err := graphql.UnmarshalBoolean(v); return err },
}

// checkRoot refuses an operation whose root fields cannot be what they must: a
// subscription to several things, or an argument that its type does not hold.
// The executor would find out field by field, when mutations before that one
// have run.
func checkRoot(schema *ast.Schema, op *graphql.OperationContext) *gqlerror.Error {
	root := map[ast.Operation]*ast.Definition{
		ast.Query: schema.Query, ast.Mutation: schema.Mutation, ast.Subscription: schema.Subscription,
	}[op.Operation.Operation]
	fields := graphql.CollectFields(op, op.Operation.SelectionSet, []string{root.Name})
	if op.Operation.Operation == ast.Subscription && len(fields) != 1 {
		return refusal(errcode.ValidationFailed, "a subscription subscribes to one thing, and this one to %d", len(fields))
	}
	for _, f := range fields {
		if f.Definition == nil {
			continue // __typename
		}
		args := f.ArgumentMap(op.Variables)
		for _, arg := range f.Definition.Arguments {
			path := ast.Path{ast.PathName(f.Alias), ast.PathName(arg.Name)}
			if err := coerces(schema, arg.Type, args[arg.Name], path); err != nil {
				return err
			}
		}
	}
	return nil
}

// coerces tells where a value is not of its type, and how. Whether null or
// nothing may stand there has been judged before.
func coerces(schema *ast.Schema, t *ast.Type, v any, path ast.Path) *gqlerror.Error {
	if v == nil {
		return nil
	}
	if t.Elem != nil {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for i, one := range list {
			if err := coerces(schema, t.Elem, one, append(slices.Clip(path), ast.PathIndex(i))); err != nil {
				return err
			}
		}
		return nil
	}
	definition := schema.Types[t.NamedType]
	if definition != nil && definition.Kind == ast.InputObject {
		object, ok := v.(map[string]any)
		if !ok {
			return gqlerror.WrapPath(path, &model.BadInput{Reason: "a " + t.NamedType + " is an object"})
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			field := definition.Fields.ForName(name)
			if field == nil {
				continue
			}
			if err := coerces(schema, field.Type, object[name], append(slices.Clip(path), ast.PathName(name))); err != nil {
				return err
			}
		}
		return nil
	}
	coerce, ok := coercions[t.NamedType]
	if !ok {
		return nil // an id, which any text or number may be
	}
	if err := coerce(v); err != nil {
		return gqlerror.WrapPath(path, err)
	}
	return nil
}

// variablesNamed puts our words in the place of the validator's where the value
// of a variable is not what the operation declares: those tell of Go's types.
func variablesNamed(schema *ast.Schema, next graphql.ErrorPresenterFunc) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		shown := next(ctx, err)
		// Only those have a path that begins with this word, and no variables after it.
		if len(shown.Path) < 2 || shown.Path[0] != ast.PathName("variable") || !graphql.HasOperationContext(ctx) {
			return shown
		}
		op := graphql.GetOperationContext(ctx)
		if op.Operation == nil || op.Variables != nil {
			return shown
		}
		return wrongVariable(schema, op.Operation, shown.Path)
	}
}

func wrongVariable(schema *ast.Schema, op *ast.OperationDefinition, path ast.Path) *gqlerror.Error {
	name, _ := path[1].(ast.PathName)
	variable := op.VariableDefinitions.ForName(string(name))
	if variable == nil {
		return refusal(errcode.ValidationFailed, "a variable is not what the operation declares")
	}
	where, expected := "$"+string(name), variable.Type
	for _, step := range path[2:] {
		switch step := step.(type) {
		case ast.PathIndex:
			if expected.Elem != nil {
				expected = expected.Elem
			}
		case ast.PathName:
			definition := schema.Types[expected.Name()]
			field := definition.Fields.ForName(string(step))
			if field == nil {
				return refusal(errcode.ValidationFailed, "%s: %s has no such field", where+"."+string(step), definition.Name)
			}
			where, expected = where+"."+string(step), field.Type
		}
	}
	return refusal(errcode.ValidationFailed, "%s: the value must be of type %s", where, expected)
}
