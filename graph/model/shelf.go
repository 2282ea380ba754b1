package model

import (
	"context"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"seatline/ent"
)

const (
	shelfSize = 1024
	shelfAge  = 30 * time.Second
	shelfWait = 5 * time.Second
)

// Rows reads one lecture's row. *registrar.Seats does.
type Rows interface {
	Lecture(ctx context.Context, id int) (*ent.Lecture, error)
}

// Shelf keeps lecture rows for live positions: five thousand watchers who ask
// for the title and the seats of one lecture cost one statement per version of
// its row, not one each.
type Shelf struct {
	rows   Rows
	shelf  *lru.Cache[int, shelved]
	flight singleflight.Group
	now    func() time.Time
}

// shelved is a row and what is known about how new it is.
type shelved struct {
	row     *ent.Lecture
	version int64 // the row is at least as new as this
	read    time.Time
}

// NewShelf returns an empty shelf over rows.
func NewShelf(rows Rows) *Shelf {
	shelf, err := lru.New[int, shelved](shelfSize)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &Shelf{rows: rows, shelf: shelf, now: time.Now}
}

// At is the lecture's row at version or later. A row is read again after half a
// minute even so, for changes made in SQL, which leave the version as it was;
// should that reading fail, the old row still serves its version.
// lecture.ErrNotFound and lecture.ErrUnavailable as from Rows.
func (s *Shelf) At(ctx context.Context, id int, version int64) (*ent.Lecture, error) {
	row, fresh := s.kept(id, version)
	if fresh {
		return row, nil
	}
	newer, err := s.load(ctx, id, version)
	if err != nil && row != nil && ctx.Err() == nil {
		return row, nil
	}
	return newer, err
}

// kept is the row on the shelf where it is of this version or later, and whether
// it is young enough to do without another look.
func (s *Shelf) kept(id int, version int64) (row *ent.Lecture, fresh bool) {
	kept, ok := s.shelf.Get(id)
	if !ok || kept.version < version {
		return nil, false
	}
	return kept.row, s.now().Sub(kept.read) < shelfAge
}

// load reads the row once for all who ask at the same time. Callers come and
// go; the reading they share goes on without them, bounded by its own time.
func (s *Shelf) load(ctx context.Context, id int, version int64) (*ent.Lecture, error) {
	key := strconv.Itoa(id) + "@" + strconv.FormatInt(version, 10)
	c := s.flight.DoChan(key, func() (any, error) {
		if row, fresh := s.kept(id, version); fresh {
			return row, nil // somebody's reading has ended since the caller looked
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shelfWait)
		defer cancel()
		row, err := s.rows.Lecture(ctx, id)
		if err != nil {
			return nil, err
		}
		// The line may know a version that the database has lost in a
		// failover. Remembering what was asked for keeps that from turning
		// into one reading a watcher.
		s.shelf.Add(id, shelved{row: row, version: max(row.SeatVersion, version), read: s.now()})
		return row, nil
	})
	select {
	case r := <-c:
		row, _ := r.Val.(*ent.Lecture)
		return row, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
