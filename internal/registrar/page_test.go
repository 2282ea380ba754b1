package registrar

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"seatline/ent"
)

// FuzzCursor: whatever a client sends as a cursor is the one that a list would
// issue, of this list, or is refused as a bad argument.
func FuzzCursor(f *testing.F) {
	id := uuid.MustParse("018f3c1e-7d2a-7cc3-98c4-dc0c0c07398f")
	for _, s := range []string{
		LectureCursor(&ent.Lecture{ID: 7}), ReceiptCursor(&ent.Enrollment{ID: id}), RosterCursor(&ent.Enrollment{Number: 1 << 40}),
		cursor(lectureCursor, "+7"), cursor(rosterCursor, "007"), cursor(rosterCursor, "9223372036854775808"), cursor(rosterCursor, "7:8"),
		cursor(receiptCursor, "urn:uuid:"+id.String()), cursor(receiptCursor, strings.ToUpper(id.String())), cursor(lectureCursor, ""),
		cursor("", "7"), cursor(lectureCursor, "7") + "\n", "bGVjdHVyZTo4", "bGVjdHVyZTp=", "%", "\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" {
			return // the start of the list
		}
		accepted := 0
		check := func(kind string, key any, ok bool, err error) {
			invalid, refused := errors.AsType[*InvalidError](err)
			switch {
			case ok && err == nil && cursor(kind, fmt.Sprint(key)) == s:
				accepted++
			case !ok && refused && invalid.Field == "after":
			default:
				t.Errorf("%q as a cursor of a %s: %v, %v, %v", s, kind, key, ok, err)
			}
		}
		page := Page{First: 1, After: s}
		for _, kind := range []string{lectureCursor, rosterCursor} {
			key, ok, err := after(page, kind, strconv.Atoi)
			check(kind, key, ok, err)
		}
		key, ok, err := after(page, receiptCursor, uuid.Parse)
		check(receiptCursor, key, ok, err)
		if accepted > 1 {
			t.Errorf("%q is a cursor of several lists", s)
		}
	})
}
