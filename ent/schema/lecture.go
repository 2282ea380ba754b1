// Package schema declares the two tables that decide who has a seat.
package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Lecture has the seats. Its row is the lock under which every seat is taken and given back,
// and every write of it raises seat_version by one.
type Lecture struct{ ent.Schema }

// Annotations of the Lecture: the bounds that hold whatever a process does.
func (Lecture) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entsql.Annotation{Table: "lectures"},
		entsql.Checks(map[string]string{
			"ck_lecture_capacity":          "capacity >= 0",
			"ck_lecture_enrolled_count":    "enrolled_count BETWEEN 0 AND capacity",
			"ck_lecture_admit_per_second":  "admit_per_second >= 0.01 AND admit_per_second <= 10000",
			"ck_lecture_burst":             "burst BETWEEN 1 AND 10000",
			"ck_lecture_ticket_ttl":        "ticket_ttl_seconds BETWEEN 1 AND 3600",
			"ck_lecture_overbook_percent":  "overbook_percent BETWEEN 100 AND 200",
			"ck_lecture_closes_after_open": "opens_at IS NULL OR closes_at IS NULL OR opens_at < closes_at",
		}),
	}
}

// Fields of the Lecture.
func (Lecture) Fields() []ent.Field {
	return []ent.Field{
		field.String("title").SchemaType(map[string]string{dialect.Postgres: "text"}),
		field.String("description").Optional().Nillable().SchemaType(map[string]string{dialect.Postgres: "text"}),
		field.Int("capacity"),
		field.Int("enrolled_count").Default(0).Annotations(entsql.Default("0")).
			Comment("Kept, not counted: moves under the row lock with the enrolment it counts."),
		field.Int("last_number").Default(0).Annotations(entsql.Default("0")).
			Comment("The last receipt number handed out; never reused."),
		field.Int64("seat_version").Default(1).Annotations(entsql.Default("1")).
			Comment("+1 on every write of the row: tells the line which of two readings is newer."),
		field.Int64("line_epoch").Default(0).Annotations(entsql.Default("0")).
			Comment("+1 whenever the line is built anew: what Redis lost can be told from what it never had."),
		field.Time("opens_at").Optional().Nillable(),
		field.Time("closes_at").Optional().Nillable(),
		field.Bool("paused").Default(false).Annotations(entsql.Default("false")),
		field.Float("admit_per_second").Default(10).Annotations(entsql.Default("10")),
		field.Int("burst").Default(10).Annotations(entsql.Default("10")),
		field.Int("ticket_ttl_seconds").Default(120).Annotations(entsql.Default("120")),
		field.Int("overbook_percent").Default(100).Annotations(entsql.Default("100")),
		field.String("message").Optional().Nillable().SchemaType(map[string]string{dialect.Postgres: "text"}),
		field.Time("created_at").Default(time.Now).Immutable().Annotations(entsql.DefaultExpr("CURRENT_TIMESTAMP")),
		field.Time("updated_at").Default(time.Now).UpdateDefault(time.Now).Annotations(entsql.DefaultExpr("CURRENT_TIMESTAMP")),
	}
}

// Edges of the Lecture.
func (Lecture) Edges() []ent.Edge {
	return []ent.Edge{edge.To("enrollments", Enrollment.Type)}
}
