package registrar_test

import (
	"context"
	"testing"
	"time"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/google/uuid"

	"seatline/ent"
	"seatline/internal/registrar"
)

// Whatever a process does, the database itself refuses what breaks a guarantee.
func TestTheDatabaseHoldsTheBounds(t *testing.T) {
	onBoth(t, func(t *testing.T, b backend) {
		d := newDesk(t, b, registrar.Options{})
		ctx := context.Background()
		id := d.lecture(2)
		d.line.admit(id, "kim")
		d.enroll(id, "kim", registrar.Enrolled)
		at := time.Now()
		enroll := func(user string, number, lecture int) func() error {
			return func() error {
				return d.client.Enrollment.Create().SetID(uuid.New()).
					SetLectureID(lecture).SetUserKey(user).SetNumber(number).Exec(ctx)
			}
		}
		update := func(set func(*ent.LectureUpdateOne)) func() error {
			return func() error {
				u := d.client.Lecture.UpdateOneID(id)
				set(u)
				return u.Exec(ctx)
			}
		}
		for name, c := range map[string]struct {
			write   func() error
			refused func(error) bool
		}{
			"a second active row":    {enroll("kim", 2, id), sqlgraph.IsUniqueConstraintError},
			"a number given twice":   {enroll("lee", 1, id), sqlgraph.IsUniqueConstraintError},
			"a lecture that is not":  {enroll("lee", 2, id+100), sqlgraph.IsForeignKeyConstraintError},
			"number zero":            {enroll("lee", 0, id), sqlgraph.IsCheckConstraintError},
			"nobody":                 {enroll("", 2, id), sqlgraph.IsCheckConstraintError},
			"a key too long":         {enroll(string(make129()), 2, id), sqlgraph.IsCheckConstraintError},
			"count above capacity":   {update(func(u *ent.LectureUpdateOne) { u.SetEnrolledCount(3) }), sqlgraph.IsCheckConstraintError},
			"count below zero":       {update(func(u *ent.LectureUpdateOne) { u.SetEnrolledCount(-1) }), sqlgraph.IsCheckConstraintError},
			"capacity below count":   {update(func(u *ent.LectureUpdateOne) { u.SetCapacity(0) }), sqlgraph.IsCheckConstraintError},
			"capacity below zero":    {update(func(u *ent.LectureUpdateOne) { u.SetEnrolledCount(-2).SetCapacity(-1) }), sqlgraph.IsCheckConstraintError},
			"rate too low":           {update(func(u *ent.LectureUpdateOne) { u.SetAdmitPerSecond(0) }), sqlgraph.IsCheckConstraintError},
			"rate too high":          {update(func(u *ent.LectureUpdateOne) { u.SetAdmitPerSecond(10_001) }), sqlgraph.IsCheckConstraintError},
			"burst too low":          {update(func(u *ent.LectureUpdateOne) { u.SetBurst(0) }), sqlgraph.IsCheckConstraintError},
			"burst too high":         {update(func(u *ent.LectureUpdateOne) { u.SetBurst(10_001) }), sqlgraph.IsCheckConstraintError},
			"ticket too short":       {update(func(u *ent.LectureUpdateOne) { u.SetTicketTTLSeconds(0) }), sqlgraph.IsCheckConstraintError},
			"ticket too long":        {update(func(u *ent.LectureUpdateOne) { u.SetTicketTTLSeconds(3601) }), sqlgraph.IsCheckConstraintError},
			"overbooking too low":    {update(func(u *ent.LectureUpdateOne) { u.SetOverbookPercent(99) }), sqlgraph.IsCheckConstraintError},
			"overbooking too high":   {update(func(u *ent.LectureUpdateOne) { u.SetOverbookPercent(201) }), sqlgraph.IsCheckConstraintError},
			"closing at the opening": {update(func(u *ent.LectureUpdateOne) { u.SetOpensAt(at).SetClosesAt(at) }), sqlgraph.IsCheckConstraintError},
		} {
			if err := c.write(); err == nil || !c.refused(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		// What looks alike is not: another person, and the same one cancelled.
		if err := enroll("Kim", 2, id)(); err != nil {
			t.Error(err)
		}
		if err := d.client.Enrollment.Create().SetID(uuid.New()).SetLectureID(id).SetUserKey("kim").
			SetNumber(3).SetCancelledAt(at).Exec(ctx); err != nil {
			t.Error(err)
		}
	})
}

// make129 is one byte more than a user key may have, in letters of two bytes.
func make129() []byte {
	key := []byte("x")
	for len(key) < 129 {
		key = append(key, "é"...)
	}
	return key
}
