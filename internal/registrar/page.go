package registrar

import "seatline/ent"

// Page asks for the First entries after the one whose cursor is After ("" =
// from the start). First must be 1 to 100.
type Page struct {
	First int
	After string
}

// LectureCursor is where a page of lectures goes on after l.
func LectureCursor(l *ent.Lecture) string { panic("not written yet") }

// ReceiptCursor is where a page of a person's receipts goes on after e.
func ReceiptCursor(e *ent.Enrollment) string { panic("not written yet") }

// RosterCursor is where a page of a roster goes on after e.
func RosterCursor(e *ent.Enrollment) string { panic("not written yet") }
