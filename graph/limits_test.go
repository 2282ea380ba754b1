package graph_test

import (
	"strings"
	"testing"
	"time"

	"seatline/graph"
)

func TestOperationsThatAskTooMuchAreRefusedBeforeAnythingRuns(t *testing.T) {
	s, _ := newServer(t)
	var doubling strings.Builder
	doubling.WriteString("query{...f0} ")
	for i := range 40 {
		n := string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10))
		m := string(rune('0'+i/10)) + string(rune('0'+i%10))
		if i == 0 {
			m = "0"
		}
		doubling.WriteString("fragment f" + m + " on Query{...f" + n + " ...f" + n + "} ")
	}
	doubling.WriteString("fragment f40 on Query{lectures{totalCount}}")
	for name, tc := range map[string]struct {
		query, code string
	}{
		"mutations":         {`mutation{` + strings.Repeat(`a:startSession(name:"x"){token} `, 1) + aliases(6, `startSession(name:"x"){token}`) + `}`, "COMPLEXITY_LIMIT_EXCEEDED"},
		"cost":              {`{` + aliases(60, `lectures(first:100){nodes{id}}`) + `}`, "COMPLEXITY_LIMIT_EXCEEDED"},
		"doubled fragments": {doubling.String(), "COMPLEXITY_LIMIT_EXCEEDED"},
		"tokens":            {`{__typename ` + strings.Repeat("@a ", 15000) + `}`, "GRAPHQL_PARSE_FAILED"},
		"the schema ×20":    {`{` + aliases(20, `__schema{types{name}}`) + `}`, "COMPLEXITY_LIMIT_EXCEEDED"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			a := post(t, s, tc.query, "Accept", response)
			if a.status != 400 || a.code() != tc.code || a.Data != nil {
				t.Fatalf("%d %.300s", a.status, a.body)
			}
			if len(a.body) > 4096 || len(a.Errors) > 10 {
				t.Errorf("the refusal has %d bytes and %d errors", len(a.body), len(a.Errors))
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("the refusal took %v", took)
			}
		})
	}
	many := post(t, s, `{`+aliases(50, `nope`)+`}`)
	if len(many.Errors) != 10 {
		t.Errorf("%d errors are listed", len(many.Errors))
	}
}

func aliases(n int, field string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("x" + strings.Repeat("i", i) + ":" + field + " ")
	}
	return b.String()
}

func TestIntrospectionCanBeSwitchedOffWithItsSuggestions(t *testing.T) {
	on, _ := newServer(t)
	off, _ := newServer(t, func(o *graph.Options) { o.Introspection = false })
	for _, query := range []string{introspection, `{__type(name:"Query"){name}}`} {
		if a := post(t, on, query); a.Errors != nil || len(a.Data) < 20 {
			t.Errorf("on: %.300s", a.body)
		}
		if a := post(t, off, query); a.code() != "GRAPHQL_VALIDATION_FAILED" || a.Data != nil {
			t.Errorf("off: %.300s", a.body)
		}
	}
	if a := post(t, off, `{__typename}`); a.Errors != nil {
		t.Errorf("off: %s", a.body)
	}
	if a := post(t, on, `{lectur{id}}`); !strings.Contains(a.body, "Did you mean") {
		t.Errorf("on: %s", a.body)
	}
	if a := post(t, off, `{lectur{id}}`); strings.Contains(a.body, "Did you mean") {
		t.Errorf("off: %s", a.body)
	}
}

const introspection = `query IntrospectionQuery {
  __schema {
    queryType { name } mutationType { name } subscriptionType { name }
    types { ...FullType }
    directives { name description locations args { ...InputValue } }
  }
}
fragment FullType on __Type {
  kind name description
  fields(includeDeprecated: true) { name description args { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
  inputFields { ...InputValue }
  interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
  possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue }
fragment TypeRef on __Type {
  kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } }
}`
