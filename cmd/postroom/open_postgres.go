package main

import (
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

func openPostgres(d *database, _ bool) (*sql.DB, error) {
	if _, err := parseURL(d.URL); err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(d.URL)
	if err != nil {
		return nil, usageError{err}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "postroom"
	}
	return stdlib.OpenDB(*config), nil
}
