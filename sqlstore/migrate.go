package sqlstore

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/postroom/postroom"
)

// A migration is one step of the schema.
type migration struct {
	version int
	name    string
	text    string
}

// migrations gives the steps in order, filled in for this table set.
func (s *Store) migrations() ([]migration, error) {
	entries, err := fs.ReadDir(s.dialect.Migrations, ".")
	if err != nil {
		return nil, err
	}
	var list []migration
	for _, e := range entries {
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(list)+1 {
			return nil, fmt.Errorf("migration %s is out of order", e.Name())
		}
		text, err := fs.ReadFile(s.dialect.Migrations, e.Name())
		if err != nil {
			return nil, err
		}
		list = append(list, migration{version, name, s.names.fill(string(text))})
	}
	return list, nil
}

func (s *Store) latest() int {
	list, err := s.migrations()
	if err != nil {
		panic("sqlstore: " + err.Error()) // the files are embedded
	}
	return len(list)
}

// writeTables writes the SQL that creates the tables of this set.
func (s *Store) writeTables(b *strings.Builder) error {
	list, err := s.migrations()
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%s;\n", s.text("create_version"))
	for _, m := range list {
		fmt.Fprintf(b, "\n-- %04d %s\n%s\n%s;\n", m.version, m.name, strings.TrimSpace(m.text),
			strings.NewReplacer("$1", strconv.Itoa(m.version), "@p1", strconv.Itoa(m.version), "?1", strconv.Itoa(m.version), "?", strconv.Itoa(m.version)).Replace(s.text("insert_version")))
	}
	return nil
}

// text is a statement without the comment of its name.
func (s *Store) text(name string) string {
	_, body, _ := strings.Cut(s.statements[name], "*/ ")
	return body
}

// found gives the version of this set in the database.
func (s *Store) found(ctx context.Context) (have int, err error) {
	err = s.read("read schema version", func(q *session) (err error) {
		have, err = s.version(ctx, q)
		return err
	})
	return have, err
}

func (s *Store) version(ctx context.Context, q *session) (int, error) {
	var version int
	err := q.query(ctx, "version", func(r Rows) error { return r.Scan((*countCell)(&version)) })
	return version, err
}

// bringUp migrates this set.
func (s *Store) bringUp(ctx context.Context) error {
	list, err := s.migrations()
	if err != nil {
		return s.explain("migrate", err)
	}
	// A role that may not create tables can still ask for what is there.
	if have, err := s.found(ctx); err == nil && have >= len(list) {
		return nil
	}
	if err := s.setUp(ctx); err != nil {
		return s.explain("migrate", err)
	}
	// A single writer may find itself busy in the middle here: before the tables
	// are there, it has no way to take its lock first.
	return s.patiently(ctx, func() error { return s.migrate(ctx, list) })
}

func (s *Store) migrate(ctx context.Context, list []migration) error {
	return s.write(ctx, "migrate", func(q *session) error {
		unlock, err := q.lockMigrations(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if err := q.createSchema(ctx); err != nil {
			return err
		}
		if err := q.exec(ctx, "create_version"); err != nil {
			return err
		}
		have, err := s.version(ctx, q)
		if err != nil {
			return err
		}
		for _, m := range list[min(have, len(list)):] {
			if err := q.run(ctx, m); err != nil {
				return err
			}
		}
		return nil
	})
}

// lockMigrations lets one program migrate at a time. A lock that does not go with
// the transaction is given back by unlock.
func (q *session) lockMigrations(ctx context.Context) (unlock func(), err error) {
	switch {
	case !q.has("lock_migrations"):
		return func() {}, nil
	case !q.has("unlock_migrations"):
		return func() {}, q.exec(ctx, "lock_migrations")
	}
	var got bool
	err = q.query(ctx, "lock_migrations", func(r Rows) error { return r.Scan((*boolCell)(&got)) })
	if err == nil && !got {
		err = fmt.Errorf("another program migrates: %w", postroom.ErrInProgress)
	}
	return func() { _ = q.exec(context.WithoutCancel(ctx), "unlock_migrations") }, err
}

// createSchema does nothing where the schema is there, so that a role that may
// not create one can still migrate.
func (q *session) createSchema(ctx context.Context) error {
	if q.store.schema == "" {
		return nil
	}
	there, err := q.groups(ctx, "has_schema", q.store.schema)
	if err != nil || len(there) > 0 {
		return err
	}
	return q.exec(ctx, "create_schema")
}

// setUp runs what can't run in a transaction.
func (s *Store) setUp(ctx context.Context) error {
	q := &session{store: s, conn: s.db}
	if !q.has("set_up") {
		return nil
	}
	return s.patiently(ctx, func() error {
		return q.query(ctx, "set_up", func(Rows) error { return nil })
	})
}

// run runs one migration. Its statements are separated by a semicolon at the end
// of a line.
func (q *session) run(ctx context.Context, m migration) error {
	for _, statement := range strings.Split(m.text, ";\n") {
		if blank(statement) {
			continue
		}
		if err := q.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("migration %04d %s: %w", m.version, m.name, err)
		}
	}
	return q.exec(ctx, "insert_version", int64(m.version))
}

// blank reports whether a statement is nothing but comments.
func blank(statement string) bool {
	for line := range strings.Lines(statement) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			return false
		}
	}
	return true
}
