package main

import (
	"database/sql"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"
)

// openSQLServer takes the URL as the driver does: the database is a parameter,
// since the path names an instance.
func openSQLServer(d *database, _ bool) (*sql.DB, error) {
	u, err := parseURL(d.URL)
	if err != nil {
		return nil, err
	}
	if u.Query().Get("database") == "" {
		return nil, usagef("--db %s: the name of the database is missing, as in sqlserver://user@host?database=db", d.URL)
	}
	config, err := msdsn.Parse(d.URL)
	if err != nil {
		return nil, usageError{err}
	}
	if !u.Query().Has("app name") {
		config.AppName = "postroom"
	}
	return sql.OpenDB(mssql.NewConnectorConfig(config)), nil
}
