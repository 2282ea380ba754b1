package waitroom

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

var (
	headerKey  = regexp.MustCompile(`(?m)^-- KEYS\[(\d+)\] `)
	headerArgv = regexp.MustCompile(`(?m)^-- ARGV\[(\d+)(\.\.\.)?\] `)
	usedKey    = regexp.MustCompile(`\bKEYS\[(\d+)\]`)
	usedArgv   = regexp.MustCompile(`\bARGV\[(\d+)\]`)
	manyArgv   = regexp.MustCompile(`#ARGV`)
)

// TestHeaders holds every script's header against what the script uses and
// what the Room gives it.
func TestHeaders(t *testing.T) {
	sources := map[string]string{
		"join": joinLua, "admit": admitLua, "claim": claimLua, "settle": settleLua, "overdue": overdueLua, "sync": syncLua, "touch": touchLua,
		"leave": leaveLua, "unmark": unmarkLua, "people": peopleLua, "peek": peekLua, "drop": dropLua,
	}
	for _, s := range all(t, newScripts()) {
		t.Run(s.name, func(t *testing.T) {
			source, ok := sources[s.name]
			if !ok {
				t.Fatalf("no source of %s", s.name)
			}
			delete(sources, s.name)
			checkHeader(t, source, len(s.keys(keysOf(1))))
		})
	}
	if len(sources) > 0 {
		t.Errorf("never called: %v", sources)
	}
	t.Run("rate", func(t *testing.T) { checkHeader(t, rateLua, 1) })
	if _, body := split(preludeLua); usedKey.MatchString(body) || usedArgv.MatchString(body) {
		t.Error("the prelude uses KEYS or ARGV of its own")
	}
}

// checkHeader holds a script's header against what it uses, and against how many
// keys it is given.
func checkHeader(t *testing.T, source string, given int) {
	t.Helper()
	header, body := split(source)
	for _, want := range []string{"-- Purpose: ", "-- KEYS", "-- ARGV", "-- Returns: "} {
		if !strings.Contains(header, want) {
			t.Errorf("header has no %q", want)
		}
	}
	keys := numbers(t, headerKey, header)
	if used := numbers(t, usedKey, body); !reflect.DeepEqual(keys, used) {
		t.Errorf("header declares KEYS %v, the script uses %v", keys, used)
	}
	if given != len(keys) {
		t.Errorf("header declares %d keys, the Room gives %d", len(keys), given)
	}
	argv := numbers(t, headerArgv, header)
	if used := numbers(t, usedArgv, body); !manyArgv.MatchString(body) && !reflect.DeepEqual(argv, used) {
		t.Errorf("header declares ARGV %v, the script uses %v", argv, used)
	}
	if many := strings.Contains(header, "...] "); many != manyArgv.MatchString(body) {
		t.Errorf("header says open-ended ARGV: %v, the script says otherwise", many)
	}
	for _, forbidden := range []string{"#!lua", "cmsgpack", "tostring(", "os.clock"} {
		if strings.Contains(body, forbidden) {
			t.Errorf("uses %s", forbidden)
		}
	}
}

// all is every script of the set, found by type so that none is forgotten.
func all(t *testing.T, s scripts) []script {
	t.Helper()
	v := reflect.ValueOf(&s).Elem()
	list := make([]script, v.NumField())
	for i := range list {
		list[i] = *(*script)(unsafe.Pointer(v.Field(i).UnsafeAddr()))
	}
	return list
}

func split(source string) (header, body string) {
	lines := strings.Split(source, "\n")
	n := 0
	for n < len(lines) && strings.HasPrefix(lines[n], "--") {
		n++
	}
	return strings.Join(lines[:n], "\n"), strings.Join(lines[n:], "\n")
}

// numbers is the distinct numbers that re finds, which must run from 1 without a gap.
func numbers(t *testing.T, re *regexp.Regexp, text string) []int {
	t.Helper()
	seen := map[int]bool{}
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		seen[n] = true
	}
	var list []int
	for n := 1; len(list) < len(seen); n++ {
		if !seen[n] {
			t.Fatalf("numbers %v have a gap at %d", seen, n)
		}
		list = append(list, n)
	}
	return list
}
