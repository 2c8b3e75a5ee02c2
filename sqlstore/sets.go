package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A store has two table sets: its own, and beside it one for what leaves, whose
// prefix ends in "_outbox". They are created, granted and checked together.

// Outbox gives the table set for what leaves. A transaction of either store is
// one of both.
func (s *Store) Outbox() (box.Store, error) {
	if s.outbox == nil {
		return nil, fmt.Errorf("%s is an outbox itself", s.name)
	}
	return s.outbox, nil
}

func (s *Store) sets() []*Store {
	if s.outbox == nil {
		return []*Store{s}
	}
	return []*Store{s, s.outbox}
}

// Migrate creates the tables or brings them up to date. It is idempotent, and
// safe when several processes start at once: one does the work, the others wait.
func (s *Store) Migrate(ctx context.Context) error {
	for _, set := range s.sets() {
		if err := set.bringUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Version gives the version of the schema in the database, and the one that this
// program needs.
func (s *Store) Version(ctx context.Context) (have, want int, err error) {
	want = s.latest()
	have = want
	for _, set := range s.sets() {
		found, err := set.found(ctx)
		if err != nil {
			return 0, want, err
		}
		if found < want || set == s {
			have = found
		}
	}
	return have, want, nil
}

// Check tells whether the schema is there and as this program needs it:
// postroom.ErrNoSchema otherwise.
func (s *Store) Check(ctx context.Context) error {
	if err := s.read("check schema", func(q *session) error { return q.accept(ctx) }); err != nil {
		return err
	}
	have, want, err := s.Version(ctx)
	if err == nil && have < want {
		err = fmt.Errorf("check schema in %s: %w: version %d, this program needs %d (call Migrate, or run 'postroom migrate')", s.name, postroom.ErrNoSchema, have, want)
	}
	return err
}

// Schema gives the SQL that creates the tables, for those who run it themselves.
func (s *Store) Schema() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "-- Postroom, %s, prefix %s. Safe to run again.\n\n", s.dialect.Name, s.prefix)
	if s.schema != "" {
		fmt.Fprintf(&b, "%s;\n\n", s.text("create_schema"))
	}
	for i, set := range s.sets() {
		if i > 0 {
			b.WriteString("\n-- The outbox.\n\n")
		}
		if err := set.writeTables(&b); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// Grants gives the SQL that lets a role use the tables but not change them.
func (s *Store) Grants(role string) (string, error) {
	if !schemaPattern.MatchString(role) {
		return "", fmt.Errorf("role %q: allowed are 1 to 63 of A-Z, a-z, 0-9 and _, not beginning with a digit", role)
	}
	if _, ok := s.statements["grants"]; !ok {
		return "", fmt.Errorf("%s has no roles", s.dialect.Name)
	}
	var b strings.Builder
	for i, set := range s.sets() {
		text := set.text("grants")
		if s.schema == "" || i > 0 {
			_, text, _ = strings.Cut(text, "\n\n") // the grant on the schema
		}
		b.WriteString(strings.ReplaceAll(text, "{role}", s.dialect.Quote(role)) + ";\n")
	}
	return b.String(), nil
}
