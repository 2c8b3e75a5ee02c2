// Package sqlite is the dialect of SQLite 3.42 and later, with any driver.
package sqlite

import (
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/postroom/postroom/sqlstore"
)

//go:embed statements.sql
var statements string

//go:embed migrations
var files embed.FS

// Dialect speaks SQLite. One transaction writes at a time; several processes may
// use one file.
var Dialect = &sqlstore.Dialect{
	Name:         "sqlite",
	Statements:   statements,
	Migrations:   migrations(),
	Value:        value,
	Classify:     Classify,
	Quote:        func(name string) string { return `"` + name + `"` },
	SingleWriter: true,
	Isolation:    sql.LevelDefault,
}

func migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

// value stores times as microseconds since 1970 and booleans as numbers, which
// is what the statements compare with.
func value(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UnixMicro()
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	default:
		return v
	}
}

const (
	busy         = 5
	locked       = 6
	tooBig       = 18
	constraint   = 19
	mismatch     = 20
	busySnapshot = 517
)

// Classify reads the result code where the driver gives it by method, else the
// text of the error.
func Classify(err error) sqlstore.Class {
	if err == nil {
		return sqlstore.Other
	}
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		switch code := coded.Code(); {
		case code == busySnapshot:
			return sqlstore.Repeat
		case code&0xff == busy || code&0xff == locked:
			return sqlstore.Busy
		case code&0xff == tooBig || code&0xff == constraint || code&0xff == mismatch:
			return sqlstore.Refused
		}
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "no such table") || strings.Contains(text, "no such column"):
		return sqlstore.NoTable
	case strings.Contains(text, "database is locked") || strings.Contains(text, "SQLITE_BUSY"):
		return sqlstore.Busy
	}
	return sqlstore.Other
}
