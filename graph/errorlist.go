package graph

import (
	"context"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

const (
	// maxErrors caps what a bad document can make us say, maxFieldErrors what a
	// good one can while a store is away. The text of a bad document comes back
	// in its errors, so that is cut, too: all in all less than 4 kB.
	maxErrors      = 10
	maxFieldErrors = 100
	maxErrorText   = 200
)

// shortErrors keeps lists of errors short, on every transport.
func shortErrors(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	r := next(ctx)
	if r == nil || len(r.Errors) == 0 {
		return r
	}
	most := maxFieldErrors
	if r.Data == nil {
		most = maxErrors
	}
	errs := make(gqlerror.List, min(len(r.Errors), most))
	for i, err := range r.Errors[:len(errs)] {
		errs[i] = shortened(err)
	}
	out := *r
	out.Errors = errs
	return &out
}

func shortened(err *gqlerror.Error) *gqlerror.Error {
	if len(err.Message) <= maxErrorText && len(err.Locations) <= 1 {
		return err
	}
	out := *err
	out.Locations = err.Locations[:min(len(err.Locations), 1)]
	if len(err.Message) > maxErrorText {
		end := maxErrorText
		for !utf8.RuneStart(err.Message[end]) {
			end--
		}
		out.Message = err.Message[:end] + "…"
	}
	return &out
}

// silentRules are the validation rules for a server that does not tell its
// schema. gqlgen, told to make no suggestions, still makes those for arguments,
// types and values.
func silentRules() *rules.Rules {
	r := rules.NewDefaultRules()
	for _, silent := range []struct {
		name string
		rule core.Rule
	}{
		{rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions},
		{rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions},
		{rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions},
	} {
		r.RemoveRule(silent.name)
		r.AddRule(silent.rule.Name, silent.rule.RuleFunc)
	}
	return r
}
