package registrar

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	entsql "entgo.io/ent/dialect/sql"

	"seatline/ent"
)

const (
	maxPage   = 100
	maxSearch = 200 // characters; no title is longer, and no user key
)

// Page asks for the First entries after the one whose cursor is After ("" =
// from the start). First must be 1 to 100.
type Page struct {
	First int
	After string
}

// Each kind of list has cursors of its own, so that one taken from another
// list is refused and not misread.
const (
	lectureCursor = "lecture"
	receiptCursor = "receipt"
	rosterCursor  = "roster"
)

// LectureCursor is where a page of lectures goes on after l.
func LectureCursor(l *ent.Lecture) string { return cursor(lectureCursor, strconv.Itoa(l.ID)) }

// ReceiptCursor is where a page of a person's receipts goes on after e.
func ReceiptCursor(e *ent.Enrollment) string { return cursor(receiptCursor, e.ID.String()) }

// RosterCursor is where a page of a roster goes on after e.
func RosterCursor(e *ent.Enrollment) string { return cursor(rosterCursor, strconv.Itoa(e.Number)) }

func cursor(kind, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + key))
}

// after reads the page's cursor of this kind with parse; ok is false at the
// start of the list.
func after[K any](p Page, kind string, parse func(string) (K, error)) (key K, ok bool, err error) {
	if p.First < 1 || p.First > maxPage {
		return key, false, &InvalidError{Field: "first", Reason: fmt.Sprintf("must be between 1 and %d", maxPage)}
	}
	if p.After == "" {
		return key, false, nil
	}
	bad := &InvalidError{Field: "after", Reason: "is not a cursor of this list"}
	text, err := base64.RawURLEncoding.DecodeString(p.After)
	if err != nil {
		return key, false, bad
	}
	rest, found := strings.CutPrefix(string(text), kind+":")
	if !found {
		return key, false, bad
	}
	// Of the many ways to write a number, a UUID or base64, only ours is taken.
	if key, err = parse(rest); err != nil || cursor(kind, fmt.Sprint(key)) != p.After {
		return key, false, bad
	}
	return key, true, nil
}

// cut takes the one row too many off that was read to see whether more follow.
func cut[E any](rows []E, first int) ([]E, bool) {
	if len(rows) > first {
		return rows[:first], true
	}
	return rows, false
}

// checkSearch refuses what no database would look for.
func checkSearch(text string) error {
	if utf8.RuneCountInString(text) > maxSearch {
		return &InvalidError{Field: "search", Reason: fmt.Sprintf("must be at most %d characters", maxSearch)}
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &InvalidError{Field: "search", Reason: "must be valid text without NUL"}
	}
	return nil
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// containsFold matches a column that contains text, whatever the case of its
// letters. SQLite's own LIKE folds A–Z alone; internal/embedded gives it fold.
func containsFold(column, text string, postgres bool) func(*entsql.Selector) {
	pattern := "%" + likeEscaper.Replace(text) + "%"
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) {
			if postgres {
				b.Ident(s.C(column)).WriteString(" ILIKE ").Arg(pattern)
			} else {
				b.WriteString("fold(").Ident(s.C(column)).WriteString(") LIKE fold(").Arg(pattern).WriteString(")")
			}
			b.WriteString(` ESCAPE '\'`)
		}))
	}
}

// contains matches a column that contains text, byte for byte.
func contains(column, text string, postgres bool) func(*entsql.Selector) {
	position := "instr"
	if postgres {
		position = "strpos"
	}
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(position + "(").Ident(s.C(column)).Comma().Arg(text).WriteString(") > 0")
		}))
	}
}
