// Package postgres is the dialect of PostgreSQL 14 and later.
package postgres

import (
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/postroom/postroom/sqlstore"
)

//go:embed statements.sql
var statements string

//go:embed migrations
var files embed.FS

// Dialect speaks PostgreSQL through database/sql, with any driver: arrays are
// passed as literals. Package pgxstore speaks it natively.
var Dialect = &sqlstore.Dialect{
	Name:           "postgres",
	Statements:     statements,
	Migrations:     migrations(),
	Batch:          Literals,
	NumbersInserts: true,
	Classify:       Classify,
	Quote:          func(name string) string { return `"` + name + `"` },
	Schemas:        true,
	Isolation:      sql.LevelReadCommitted,
}

func migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

// Classify reads the SQLSTATE that the drivers give by method.
func Classify(err error) sqlstore.Class {
	if err == nil {
		return sqlstore.Other
	}
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		switch code := coded.SQLState(); {
		case code == "40001" || code == "40P01":
			return sqlstore.Repeat
		case code == "55P03":
			return sqlstore.Busy
		// Data exceptions, constraints, limits of the program.
		case strings.HasPrefix(code, "22") || strings.HasPrefix(code, "23") || strings.HasPrefix(code, "54"):
			return sqlstore.Refused
		case code == "42P01" || code == "42703" || code == "3F000":
			return sqlstore.NoTable
		case code == "26000" || code == "42P05":
			return sqlstore.Unprepared
		// The server ends the session: what was under way has no answer.
		case code == "57P01" || code == "57P02" || code == "57P03" || strings.HasPrefix(code, "08"):
			return sqlstore.Lost
		}
		return sqlstore.Other
	}
	if sqlstore.Broken(err) {
		return sqlstore.Lost
	}
	return sqlstore.Other
}
