package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"github.com/google/uuid"
)

// Enrollment is one person's seat at one lecture, or the history of one.
type Enrollment struct{ ent.Schema }

// Annotations of the Enrollment: the bounds that hold whatever a process does.
func (Enrollment) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entsql.Annotation{Table: "enrollments"},
		entsql.Checks(map[string]string{
			"ck_enrollment_user_key": "octet_length(user_key) BETWEEN 1 AND 128",
			"ck_enrollment_number":   "number > 0",
		}),
	}
}

// Fields of the Enrollment.
func (Enrollment) Fields() []ent.Field {
	return []ent.Field{
		field.UUID("id", uuid.UUID{}).Immutable().
			Comment("UUIDv7 of the claim that led to the row: receipts sort by time, and a claim knows its row."),
		field.Int("lecture_id").Immutable(),
		field.String("user_key").Immutable().SchemaType(map[string]string{dialect.Postgres: "text"}).
			Comment("Compared byte for byte (COLLATE \"C\" in the migration, BINARY on SQLite); validated at the edge."),
		field.Int("number").Immutable(),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("cancelled_at").Optional().Nillable(),
	}
}

// Edges of the Enrollment.
func (Enrollment) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("lecture", Lecture.Type).Ref("enrollments").Field("lecture_id").Unique().Required().Immutable(),
	}
}

// Indexes of the Enrollment. The first is the guarantee: one active enrolment a person and lecture.
func (Enrollment) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("lecture_id", "user_key").Unique().StorageKey("uk_enrollment_lecture_user").
			Annotations(entsql.IndexWhere("cancelled_at IS NULL")),
		index.Fields("lecture_id", "number").Unique().StorageKey("uk_enrollment_lecture_number"),
		index.Fields("user_key", "id").StorageKey("ix_enrollment_user").
			Annotations(entsql.DescColumns("id")),
	}
}
