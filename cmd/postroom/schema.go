package main

import (
	"strings"

	"github.com/postroom/postroom/sqlstore"
)

type schemaCommand struct {
	URL      string `name:"db" env:"POSTROOM_DB" placeholder:"URL" help:"A URL of the kind of database that the SQL is for. It is not opened."`
	Dialect  string `enum:",${dialects}" default:"" placeholder:"NAME" help:"The kind of database instead: ${dialects}."`
	Grants   string `placeholder:"ROLE" help:"Print the statements that let a role read and write the tables, but not change them."`
	tableSet `embed:""`
}

// Help gives the examples.
func (*schemaCommand) Help() string {
	return `Examples:

  postroom schema --dialect postgres --schema orders > tables.sql
  postroom schema --dialect postgres --schema orders --grants app >> tables.sql

The SQL can be run again without harm. A program whose role has no more than the
grants runs as usual; only the migration needs a role that owns the tables.`
}

// Run prints SQL.
func (c *schemaCommand) Run(term *terminal) error {
	dialect, err := c.dialect()
	if err != nil {
		return err
	}
	// No pool: what is printed comes from the program alone.
	store, err := sqlstore.New(nil, dialect, sqlstore.Options{Schema: c.Schema, Prefix: c.Prefix})
	if err != nil {
		return usageError{err}
	}
	text, err := "", error(nil)
	if c.Grants == "" {
		text, err = store.Schema()
	} else if text, err = store.Grants(c.Grants); err != nil {
		err = usageError{err}
	}
	if err != nil {
		return err
	}
	return term.print(text)
}

func (c *schemaCommand) dialect() (*sqlstore.Dialect, error) {
	if c.Dialect == "" && c.URL == "" {
		return nil, usagef("which database? Give --dialect (%s), or --db", strings.Join(dialectNames(), ", "))
	}
	for _, k := range kinds {
		if k.dialect.Name == c.Dialect {
			return k.dialect, nil
		}
	}
	k, err := kindOf(c.URL)
	if err != nil {
		return nil, err
	}
	return k.dialect, nil
}
