package model

import (
	"context"

	"seatline/ent"
	"seatline/internal/registrar"
)

// PageInfo says where a page ends.
type PageInfo struct {
	HasNextPage     bool
	HasPreviousPage bool
	StartCursor     *string
	EndCursor       *string
}

// A Count counts what is on all pages.
type Count func(ctx context.Context) (int, error)

// LectureConnection is a page of lectures.
type LectureConnection struct {
	Nodes    []*Lecture
	Edges    []*LectureEdge
	PageInfo *PageInfo
	count    Count
}

// LectureEdge is a lecture on a page.
type LectureEdge struct {
	Cursor string
	Node   *Lecture
}

// Lectures is a page of lectures; after says whether it is not the first.
func Lectures(nodes []*Lecture, more, after bool, count Count) *LectureConnection {
	c := &LectureConnection{Nodes: nodes, Edges: make([]*LectureEdge, len(nodes)), count: count}
	for i, n := range nodes {
		c.Edges[i] = &LectureEdge{Cursor: registrar.LectureCursor(n.Lecture), Node: n}
	}
	c.PageInfo = pageInfo(c.Edges, func(e *LectureEdge) *string { return &e.Cursor }, more, after)
	return c
}

// TotalCount counts the lectures on all pages; only when asked, as it costs a
// statement.
func (c *LectureConnection) TotalCount(ctx context.Context) (int, error) { return c.count(ctx) }

// ReceiptConnection is a page of receipts.
type ReceiptConnection struct {
	Nodes    []*Receipt
	Edges    []*ReceiptEdge
	PageInfo *PageInfo
	count    Count
}

// ReceiptEdge is a receipt on a page.
type ReceiptEdge struct {
	Cursor string
	Node   *Receipt
}

// Receipts is a page of a person's receipts.
func Receipts(nodes []*Receipt, more, after bool, count Count) *ReceiptConnection {
	return receipts(nodes, registrar.ReceiptCursor, more, after, count)
}

// Roster is a page of a lecture's roster.
func Roster(nodes []*Receipt, more, after bool, count Count) *ReceiptConnection {
	return receipts(nodes, registrar.RosterCursor, more, after, count)
}

func receipts(nodes []*Receipt, cursor func(*ent.Enrollment) string, more, after bool, count Count) *ReceiptConnection {
	c := &ReceiptConnection{Nodes: nodes, Edges: make([]*ReceiptEdge, len(nodes)), count: count}
	for i, n := range nodes {
		c.Edges[i] = &ReceiptEdge{Cursor: cursor(n.row), Node: n}
	}
	c.PageInfo = pageInfo(c.Edges, func(e *ReceiptEdge) *string { return &e.Cursor }, more, after)
	return c
}

// TotalCount counts the receipts on all pages; only when asked, as it costs a
// statement.
func (c *ReceiptConnection) TotalCount(ctx context.Context) (int, error) { return c.count(ctx) }

func pageInfo[E any](edges []E, cursor func(E) *string, more, after bool) *PageInfo {
	info := &PageInfo{HasNextPage: more, HasPreviousPage: after}
	if n := len(edges); n > 0 {
		info.StartCursor, info.EndCursor = cursor(edges[0]), cursor(edges[n-1])
	}
	return info
}
