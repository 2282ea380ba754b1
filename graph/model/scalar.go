package model

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
)

// BadInput is an argument that cannot be meant; its text is for the client.
type BadInput struct {
	Reason string
}

func (e *BadInput) Error() string { return e.Reason }

// MarshalInt writes an Int.
func MarshalInt(i int) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Itoa(i)) })
}

// UnmarshalInt reads an Int as GraphQL defines it: 32 bits, and a number, not
// text that looks like one. Anything else is refused rather than wrapped.
func UnmarshalInt(v any) (int, error) {
	var n int64
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int32:
		n = int64(v)
	case int64:
		n = v
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > math.MaxInt32+1 {
			return 0, &BadInput{"an Int is a whole number of at most 32 bits"}
		}
		n = int64(v)
	case json.Number:
		var err error
		if n, err = v.Int64(); err != nil {
			return 0, &BadInput{"an Int is a whole number of at most 32 bits"}
		}
	default:
		return 0, &BadInput{"an Int is a number"}
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		return 0, &BadInput{"an Int has at most 32 bits"}
	}
	return int(n), nil
}

// MarshalFloat writes a Float. The figures of a line are finite by
// construction; should one not be, null is honest and valid JSON.
func MarshalFloat(f float64) graphql.Marshaler {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return graphql.Null
	}
	return graphql.WriterFunc(func(w io.Writer) {
		_, _ = w.Write(strconv.AppendFloat(nil, f, 'g', -1, 64))
	})
}

// UnmarshalFloat reads a Float: a finite number, not text that looks like one.
func UnmarshalFloat(v any) (float64, error) {
	var f float64
	switch v := v.(type) {
	case int:
		f = float64(v)
	case int32:
		f = float64(v)
	case int64:
		f = float64(v)
	case float64:
		f = v
	case json.Number:
		var err error
		if f, err = v.Float64(); err != nil {
			return 0, &BadInput{"a Float is a finite number"}
		}
	default:
		return 0, &BadInput{"a Float is a number"}
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, &BadInput{"a Float is a finite number"}
	}
	return f, nil
}

// MarshalString writes a String.
func MarshalString(s string) graphql.Marshaler { return graphql.MarshalString(s) }

// UnmarshalString reads a String. NUL and broken UTF-8 are refused here, once,
// because no database column can hold them.
func UnmarshalString(v any) (string, error) {
	s, ok := v.(string)
	switch {
	case !ok:
		return "", &BadInput{"a String is text"}
	case !utf8.ValidString(s):
		return "", &BadInput{"a String is valid UTF-8"}
	case strings.ContainsRune(s, 0):
		return "", &BadInput{"a String has no NUL character"}
	}
	return s, nil
}

// MarshalTime writes an instant as RFC 3339 in UTC. Nullable fields are
// pointers, so a zero time never stands for null.
func MarshalTime(t time.Time) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		b := append(make([]byte, 0, 40), '"')
		b = t.UTC().AppendFormat(b, time.RFC3339Nano)
		_, _ = w.Write(append(b, '"'))
	})
}

// UnmarshalTime reads an RFC 3339 instant; the zone is part of it, so nothing
// depends on where the server runs. Finer than a microsecond is cut, as
// PostgreSQL would.
func UnmarshalTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, &BadInput{"a Time is text"}
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil { // stricter than Parse
		return time.Time{}, &BadInput{"a Time is an RFC 3339 instant with its zone, for instance 2026-03-02T01:00:00Z"}
	}
	if y := t.UTC().Year(); y < 1970 || y > 9999 {
		return time.Time{}, &BadInput{"a Time lies between the years 1970 and 9999"}
	}
	return t.UTC().Truncate(time.Microsecond), nil
}
