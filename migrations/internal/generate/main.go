// Command generate writes the next migration: what turns a database that has
// all earlier ones into one that fits the ent schema. It needs an empty
// development database, which it leaves empty:
//
//	go run ./migrations/internal/generate -name add_something -dev postgres://…
//
// A schema that has not changed writes no file. Read what it writes before it
// is committed: it knows no COLLATE.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	atlas "ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql driver "pgx"

	"seatline/ent/migrate"
)

func main() {
	name := flag.String("name", "", "what the migration does, in snake_case")
	dev := flag.String("dev", os.Getenv("DEV_DATABASE_URL"), "URL of an empty PostgreSQL database (DEV_DATABASE_URL)")
	dir := flag.String("dir", "migrations", "where the migrations are")
	flag.Parse()
	if err := run(context.Background(), *name, *dev, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func run(ctx context.Context, name, dev, dir string) (err error) {
	if !snakeCase.MatchString(name) {
		return errors.New("-name must be given, in snake_case")
	}
	if dev == "" {
		return errors.New("-dev or DEV_DATABASE_URL must be given")
	}
	db, err := sql.Open("pgx", dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// The planner insists on a checksum file. Migrations here are finished by
	// hand and held by the drift test, so it gets one in a folder of its own.
	work, err := os.MkdirTemp("", "migrations-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := copySQL(work, dir); err != nil {
		return err
	}
	migrations, err := sqltool.NewGooseDir(work)
	if err != nil {
		return err
	}
	sum, err := migrations.Checksum()
	if err != nil {
		return err
	}
	if err := atlas.WriteSumFile(migrations, sum); err != nil {
		return err
	}
	err = migrate.NewSchema(entsql.OpenDB(dialect.Postgres, db)).NamedDiff(ctx, name,
		schema.WithDir(migrations),
		schema.WithFormatter(sqltool.GooseFormatter),
		schema.WithMigrationMode(schema.ModeReplay),
		schema.WithDropColumn(true),
		schema.WithDropIndex(true),
	)
	if err != nil {
		return err
	}
	return copySQL(dir, work)
}

// copySQL copies the migrations that to does not have yet.
func copySQL(to, from string) error {
	names, err := filepath.Glob(filepath.Join(from, "*.sql"))
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := os.OpenFile(filepath.Join(to, filepath.Base(name)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = file.Write(text)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}
