package model_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seatline/ent"
	"seatline/graph/model"
	"seatline/internal/lecture"
	"seatline/internal/waitroom"
)

// rows is a database of one lecture that counts its statements.
type rows struct {
	version atomic.Int64
	failing atomic.Bool
	asked   atomic.Int64
	hold    chan struct{}
}

func (r *rows) Lecture(ctx context.Context, id int) (*ent.Lecture, error) {
	r.asked.Add(1)
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if r.failing.Load() {
		return nil, lecture.ErrUnavailable
	}
	return &ent.Lecture{ID: id, Title: "t", Capacity: 5, EnrolledCount: 2, SeatVersion: r.version.Load()}, nil
}

func TestAVersionOfARowIsReadOnceForAllWhoAsk(t *testing.T) {
	db := &rows{hold: make(chan struct{})}
	db.version.Store(7)
	shelf := model.NewShelf(db)
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			if row, err := shelf.At(t.Context(), 1, 7); err != nil || row.SeatVersion != 7 {
				t.Errorf("%v, %v", row, err)
			}
		})
	}
	// One who gives up does not take the reading of the others along.
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := shelf.At(gone, 1, 7); !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	close(db.hold)
	all.Wait()
	if n := db.asked.Load(); n != 1 {
		t.Errorf("%d statements for one version", n)
	}
	db.version.Store(8)
	if row, err := shelf.At(t.Context(), 1, 8); err != nil || row.SeatVersion != 8 {
		t.Errorf("the next version: %v, %v", row, err)
	}
	if _, err := shelf.At(t.Context(), 1, 7); err != nil || db.asked.Load() != 2 {
		t.Errorf("a newer row does for an older version: %v after %d statements", err, db.asked.Load())
	}
}

func TestAVersionThatTheDatabaseLostIsNotAskedForAgainAndAgain(t *testing.T) {
	db := &rows{}
	db.version.Store(3) // a failover lost version 9, which the line still has
	shelf := model.NewShelf(db)
	for range 10 {
		if row, err := shelf.At(t.Context(), 1, 9); err != nil || row.SeatVersion != 3 {
			t.Fatalf("%v, %v", row, err)
		}
	}
	if n := db.asked.Load(); n != 1 {
		t.Errorf("%d statements", n)
	}
}

func TestARowIsReadAgainAfterAWhileAndServesWhenItCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &rows{}
		db.version.Store(1)
		shelf := model.NewShelf(db)
		at := func(version int64) error {
			_, err := shelf.At(t.Context(), 1, version)
			return err
		}
		if err := at(1); err != nil {
			t.Fatal(err)
		}
		<-time.After(31 * time.Second) // of the bubble's clock
		if err := at(1); err != nil || db.asked.Load() != 2 {
			t.Errorf("an old row was not read again: %v, %d statements", err, db.asked.Load())
		}
		db.failing.Store(true)
		<-time.After(31 * time.Second)
		if err := at(1); err != nil {
			t.Errorf("an outage took a row away that is known: %v", err)
		}
		if err := at(2); !errors.Is(err, lecture.ErrUnavailable) {
			t.Errorf("a row that is not known: %v", err)
		}
	})
}

// lines counts the readings of lines.
type lines struct{ asked atomic.Int64 }

func (l *lines) Lines(_ context.Context, facts []lecture.Facts) (map[int]waitroom.Line, error) {
	l.asked.Add(1)
	read := map[int]waitroom.Line{}
	for _, f := range facts {
		read[f.ID] = waitroom.Line{State: waitroom.Open, Waiting: f.ID * 10}
	}
	return read, nil
}

func TestAPageReadsItsLinesOnceAndOnlyIfAsked(t *testing.T) {
	var room lines
	page := model.Page(&room, &ent.Lecture{ID: 1}, nil, &ent.Lecture{ID: 2}, &ent.Lecture{ID: 1})
	if page[1] != nil || page[0].SeatsLeft() != 0 || room.asked.Load() != 0 {
		t.Fatalf("the line was read before anybody asked")
	}
	var all sync.WaitGroup
	for _, l := range page {
		if l == nil {
			continue
		}
		all.Go(func() {
			state, err := l.LineState(t.Context())
			waiting, err2 := l.Waiting(t.Context())
			if err != nil || err2 != nil || state != waitroom.Open || waiting != l.ID*10 {
				t.Errorf("lecture %d: %v %d, %v, %v", l.ID, state, waiting, err, err2)
			}
		})
	}
	all.Wait()
	if n := room.asked.Load(); n != 1 {
		t.Errorf("%d readings for one page", n)
	}
}

func TestARowWinsOverTheLine(t *testing.T) {
	var room lines
	source := model.Source{Lines: &room, Shelf: model.NewShelf(&rows{})}
	position, soon, token := 3, time.Now(), "x"
	place := waitroom.Place{
		Line:   waitroom.Line{State: waitroom.AllHeld, Waiting: 9},
		Status: waitroom.Waiting, Position: &position, TicketExpiresAt: &soon, PlaceToken: &token, PollAfterMs: 1000,
	}
	if p := source.Position(1, place, nil); p.Status != waitroom.Waiting || p.Receipt != nil || p.Total() != 9 {
		t.Errorf("without a row: %+v", p)
	}
	row := &ent.Enrollment{Number: 4, LectureID: 1}
	p := source.Position(1, place, row)
	if p.Status != waitroom.Enrolled || p.Receipt.Number() != 4 || p.Position != nil || p.TicketExpiresAt != nil || p.PlaceToken != nil || p.Reason != nil {
		t.Errorf("with a row: %+v", p)
	}
	l, err := p.Receipt.Lecture(t.Context())
	if err != nil || l.Title != "t" {
		t.Errorf("the receipt's lecture: %+v, %v", l, err)
	}
	if l, err := p.Lecture(t.Context()); err != nil || l.SeatsLeft() != 3 {
		t.Errorf("the position's lecture: %v", err)
	} else if state, _ := l.LineState(t.Context()); state != waitroom.AllHeld || room.asked.Load() != 0 {
		t.Errorf("the position's line was read again: %v", state)
	}
}
