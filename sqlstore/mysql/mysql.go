// Package mysql is the dialect of MariaDB 10.6 and later and of MySQL 8.0 and
// later, with any driver whose errors begin with "Error NNNN".
package mysql

import (
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/postroom/postroom/sqlstore"
)

//go:embed statements.sql
var statements string

//go:embed migrations
var files embed.FS

// Dialect speaks MariaDB and MySQL. A schema is what they call a database.
var Dialect = &sqlstore.Dialect{
	Name:       "mysql",
	Statements: statements,
	Migrations: migrations(),
	Batch:      func(rows [][]any) []any { return []any{batch(rows)} },
	Fill:       fill,
	// A server takes 16 MiB at once by default, some are set to 1 MiB; base64
	// makes four bytes of three.
	BatchBytes: 512 << 10,
	Singles:    map[string]bool{"arrivals": true, "lowest_queued": true},
	// More than any batch takes, so that one row of the sequence serves it.
	Span:      100_000,
	Classify:  Classify,
	Quote:     func(name string) string { return "`" + name + "`" },
	Schemas:   true,
	Snapshots: true,
	Refuse:    refuse,
	Isolation: sql.LevelReadCommitted,
}

func migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

var version = regexp.MustCompile(`^(\d+)\.(\d+)`)

// refuse names what a server lacks that would break a promise in silence.
func refuse(text string) error {
	if strings.Contains(strings.ToLower(text), "tidb") {
		return fmt.Errorf("server is %s: TiDB accepts SKIP LOCKED and does not skip, so that two workers would get the same message; use MariaDB 10.6 or MySQL 8.0 or later", text)
	}
	m := version.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	major, _ := strconv.Atoi(m[1]) // digits by the pattern
	minor, _ := strconv.Atoi(m[2])
	if major < 8 || (major == 10 && minor < 6) {
		return fmt.Errorf("server is %s: it has no SKIP LOCKED; use MariaDB 10.6 or MySQL 8.0 or later", text)
	}
	return nil
}

var numbered = regexp.MustCompile(`^Error (\d+)\b`)

// Classify reads the number that the error of the driver begins with.
func Classify(err error) sqlstore.Class {
	if err == nil {
		return sqlstore.Other
	}
	switch code(err) {
	case 1213, // deadlock
		1020, // changed since the snapshot
		1412, // the table's definition changed
		1615, // prepare again
		3101: // a group of servers did not certify it
		return sqlstore.Repeat
	case 1205, 3572: // not obtained in time; not obtained at once
		return sqlstore.Busy
	case 1049, 1054, 1146: // no database, column, table
		return sqlstore.NoTable
	case 1064: // MySQL has no compound statements outside of procedures
		return sqlstore.Unsupported
	case 1053, 1927, 3169: // the server ends the session
		return sqlstore.Lost
	case 0:
		if sqlstore.Broken(err) {
			return sqlstore.Lost
		}
	}
	return sqlstore.Other
}

// code finds the number of the error of the server in a chain of errors. Only
// an error by itself counts: a text around it may quote anything.
func code(err error) int {
	switch wrapped := err.(type) { //nolint:errorlint // walks the chain itself
	case interface{ Unwrap() []error }:
		for _, e := range wrapped.Unwrap() {
			if n := code(e); n != 0 {
				return n
			}
		}
		return 0
	case interface{ Unwrap() error }:
		if inner := errors.Unwrap(err); inner != nil {
			return code(inner)
		}
	}
	m := numbered.FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // digits by the pattern
	return n
}
