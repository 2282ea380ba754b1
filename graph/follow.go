package graph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"seatline/graph/model"
	"seatline/internal/lecture"
	"seatline/internal/waitroom"
)

const (
	// firstWithin bounds how long a subscription waits for its first event.
	firstWithin = 5 * time.Second
	// followPause is how long a broken reading rests before it is tried again.
	followPause = time.Second
)

// A follower tells one subscription where its person stands, until the story
// is over: enrolled, or the lecture closed.
type follower struct {
	r      *Resolver
	id     int
	user   string
	watch  context.Context // what the room's channel lives by
	stop   context.CancelFunc
	places <-chan waitroom.Place
	first  *model.QueuePosition // read, not told yet
	status waitroom.Status      // the last told
	over   bool
}

// follow watches from before it reads, so nothing that happens in between is
// missed. What is wrong from the start is an error here, not an event.
func (r *Resolver) follow(ctx context.Context, id int, user string) (*follower, error) {
	f := &follower{r: r, id: id, user: user}
	f.watch, f.stop = context.WithCancel(ctx)
	err := f.begin(ctx)
	if err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

func (f *follower) begin(ctx context.Context) (err error) {
	if f.places, err = f.r.room.Watch(f.watch, f.id, f.user); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, firstWithin, lecture.ErrUnavailable)
	defer cancel()
	place, ok, err := f.place(ctx)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("the room ended a watch at once: %w", lecture.ErrUnavailable)
	}
	f.first, err = f.compose(ctx, place, true)
	return err
}

// next is the next event; io.EOF after the last.
func (f *follower) next(ctx context.Context) (*model.QueuePosition, error) {
	if p := f.first; p != nil {
		f.first = nil
		return f.told(p), nil
	}
	if f.over {
		return nil, io.EOF
	}
	p, err := f.wait(ctx)
	if err != nil {
		f.stop()
		return nil, err
	}
	return f.told(p), nil
}

func (f *follower) told(p *model.QueuePosition) *model.QueuePosition {
	f.status = p.Status
	if waitroom.Over(p.Status, p.Line.State) {
		f.over = true
		f.stop()
	}
	return p
}

// wait waits for the next place and makes an event of it. A store that is away
// is waited for: the state it was to tell must not get lost.
func (f *follower) wait(ctx context.Context) (*model.QueuePosition, error) {
	for {
		place, ok, err := f.place(ctx)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			if err := f.again(ctx); err != nil {
				return nil, err
			}
			continue
		}
		return f.composeLatest(ctx, place)
	}
}

// composeLatest makes an event of place or, where that cannot be had at the
// moment, of whatever place is the latest when it can.
func (f *follower) composeLatest(ctx context.Context, place waitroom.Place) (*model.QueuePosition, error) {
	for {
		p, err := f.compose(ctx, place, f.needsRow(place))
		if err == nil || !errors.Is(err, lecture.ErrUnavailable) {
			return p, err
		}
		pause := time.NewTimer(followPause)
		select {
		case newer, ok := <-f.places:
			if ok {
				place = newer
			} else {
				f.places = nil // the story goes on with this place, then with a new watch
			}
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, context.Cause(ctx)
		}
		pause.Stop()
	}
}

// needsRow: the database is asked where it may contradict the line, which is
// when somebody became enrolled, or something else after not being in line.
func (f *follower) needsRow(place waitroom.Place) bool {
	return place.Status == waitroom.Enrolled ||
		place.Status != f.status && (f.status == waitroom.NotQueued || f.status == waitroom.Enrolled)
}

func (f *follower) compose(ctx context.Context, place waitroom.Place, withRow bool) (*model.QueuePosition, error) {
	if !withRow {
		return f.r.source.Position(f.id, place, nil), nil
	}
	given := &place
	return f.r.standing(ctx, f.id, f.user, func(ctx context.Context, id int, user string) (waitroom.Place, error) {
		if p := given; p != nil {
			given = nil
			return *p, nil
		}
		return f.r.room.Place(ctx, id, user)
	})
}

// place is the room's next word, and whether there was one.
func (f *follower) place(ctx context.Context) (waitroom.Place, bool, error) {
	if f.places == nil {
		return waitroom.Place{}, false, nil
	}
	select {
	case p, ok := <-f.places:
		return p, ok, nil
	case <-ctx.Done():
		return waitroom.Place{}, false, context.Cause(ctx)
	}
}

// again watches anew. The room ends a watch when it takes the story to be over;
// where the database says otherwise, it goes on.
func (f *follower) again(ctx context.Context) error {
	for {
		pause := time.NewTimer(followPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
		places, err := f.r.room.Watch(f.watch, f.id, f.user)
		if err == nil {
			f.places = places
			return nil
		}
		if !errors.Is(err, lecture.ErrUnavailable) {
			return err
		}
	}
}
