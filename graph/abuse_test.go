package graph_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"seatline/graph"
)

// chained is a document of n fragments that each spread the next one twice.
func chained(n int) string {
	var b strings.Builder
	b.WriteString(`{lectures{nodes{...f0}}} `)
	for i := range n {
		fmt.Fprintf(&b, "fragment f%d on Lecture{id a:title ...f%d ...f%d} ", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "fragment f%d on Lecture{id}", n)
	return b.String()
}

// spreads is a document in which n fragments, each with the same fields, meet.
func spreads(n int) string {
	var b strings.Builder
	b.WriteString(`{lectures{nodes{`)
	for i := range n {
		fmt.Fprintf(&b, "...f%d ", i)
	}
	b.WriteString(`}}} `)
	for i := range n {
		fmt.Fprintf(&b, "fragment f%d on Lecture{id title capacity ...f%d} ", i, i+1)
	}
	fmt.Fprintf(&b, "fragment f%d on Lecture{id}", n)
	return b.String()
}

// TestDocumentsMadeToHurt: what it costs to refuse a document, in time and in
// bytes of the reply, is no multiple of what it costs to send it (A20).
func TestDocumentsMadeToHurt(t *testing.T) {
	s, _ := newServer(t, func(o *graph.Options) { o.Limits.BodyBytes, o.Limits.ParserTokens = 256<<10, 1000 })
	long := strings.Repeat("x", 240<<10)
	for name, query := range map[string]string{
		"A20: directives":            `{__typename ` + strings.Repeat("@a ", 20000) + `}`,
		"directives, few":            `{__typename ` + strings.Repeat("@a ", 400) + `}`,
		"directives that repeat":     `{__typename ` + strings.Repeat("@skip(if:false)", 150) + `}`,
		"a chain of fragments":       chained(60),
		"fragments that meet":        spreads(60),
		"a fragment cycle":           `{...a} fragment a on Query{...b ...b} fragment b on Query{...a ...a}`,
		"the same field":             `{` + strings.Repeat("lectures{totalCount}", 240) + `}`,
		"unknown fields":             `{` + strings.Repeat("nope ", 900) + `}`,
		"unknown fields, long":       `{` + strings.Repeat(strings.Repeat("x", 240)+" ", 900) + `}`,
		"a long field":               `{` + long + `}`,
		"a long argument":            `{lectures(` + long + `:1){totalCount}}`,
		"a long type":                `query($a:` + long + `){__typename}`,
		"long types":                 `query(` + strings.Repeat("$a:"+strings.Repeat("y", 500)+" ", 240) + `){__typename}`,
		"a long value":               `{lectures(first:` + long + `){totalCount}}`,
		"a long name of nothing":     `query ` + long + `{nope}`,
		"a long variable":            `query($` + long + `:Int){lectures{totalCount}}`,
		"many variables":             `query(` + aliasesOf(240, "$a%d:Int ") + `){__typename}`,
		"nested lists":               `{lectures(first:` + strings.Repeat("[", 450) + strings.Repeat("]", 450) + `){totalCount}}`,
		"nested objects":             `{lectures(first:` + strings.Repeat("{a:", 300) + "1" + strings.Repeat("}", 300) + `){totalCount}}`,
		"unclosed braces":            strings.Repeat("{a", 499),
		"operations":                 aliasesOf(150, "query q%d{__typename} "),
		"operations of one name":     strings.Repeat("query q{__typename} ", 150),
		"introspection, deep":        `{__schema{types{` + strings.Repeat("fields{type{", 60) + "name" + strings.Repeat("}}", 60) + `}}}`,
		"introspection by fragment":  `{...a ...b ...c} fragment a on Query{a:__schema{types{name}}} fragment b on Query{b:__schema{types{name}}} fragment c on Query{c:__schema{types{name}}}`,
		"an expensive introspection": `query IntrospectionQuery{` + aliasesOf(60, "a%d:lectures(first:100){nodes{id title capacity}} ") + `}`, // A27
	} {
		begun := time.Now()
		a := post(t, s, query)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: refused after %v", name, took)
		}
		if len(a.body) > 4096 || len(a.Errors) == 0 || len(a.Errors) > 10 || a.Data != nil {
			t.Errorf("%s: %d bytes, %d errors: %.300s", name, len(a.body), len(a.Errors), a.body)
		}
	}
}

func aliasesOf(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestCachesAreBounded: whoever sends ever new queries fills no memory with them,
// neither by text nor by hash (A26).
func TestCachesAreBounded(t *testing.T) {
	s, _ := newServer(t)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	send := func(n int) {
		query := fmt.Sprintf(`{b%d:__typename %s}`, n, aliasesOf(125, "a%d:__typename "))
		if a := post(t, s, query); a.Errors != nil {
			t.Fatalf("%.300s", a.body)
		}
		query = fmt.Sprintf(`{c%d:__typename%s}`, n, strings.Repeat(" ", 1500))
		persisted := fmt.Sprintf(`{"query":%q,"extensions":{"persistedQuery":{"version":1,"sha256Hash":"%x"}}}`, query, sha256.Sum256([]byte(query)))
		if a := do(t, request(t, http.MethodPost, s.URL+"/graphql", persisted, "Content-Type", plain)); a.Errors != nil {
			t.Fatalf("%.300s", a.body)
		}
	}
	const full = 600 // both caches hold fewer
	for n := range full {
		send(n)
	}
	before := heap()
	for n := range 2 * full {
		send(full + n)
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("%d more queries take %d KiB", 2*full, grown>>10)
	}
	if before > 128<<20 {
		t.Errorf("%d MiB are in use with both caches full", before>>20)
	}
}

// TestNothingIsSuggestedWithoutIntrospection: a server that does not tell its
// schema does not tell it by the way.
func TestNothingIsSuggestedWithoutIntrospection(t *testing.T) {
	on, _ := newServer(t)
	off, _ := newServer(t, func(o *graph.Options) { o.Introspection = false })
	for _, query := range []string{
		`{lectur{id}}`, `{lectures(firs:1){totalCount}}`, `fragment f on Lectur{id} {lectures{nodes{...f}}}`,
		`mutation{createLecture(input:{titel:"x",capacity:1}){id}}`, `{lecture(id:1)}`,
	} {
		if a := post(t, on, query); !strings.Contains(a.body, "Did you mean") {
			t.Errorf("on, %s: %s", query, a.body)
		}
		a := post(t, off, query)
		if a.code() != "GRAPHQL_VALIDATION_FAILED" || strings.Contains(a.body, "Did you mean") {
			t.Errorf("off, %s: %s", query, a.body)
		}
	}
}
