// Package sqlserver is the dialect of SQL Server 2019 and later and of Azure SQL,
// with any driver that takes parameters named @p1, @p2 … by their order and whose
// errors tell their number by a method SQLErrorNumber, as those of
// github.com/microsoft/go-mssqldb do.
//
// Its races were not run on a real server: see docs/stores.md.
package sqlserver

import (
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/postroom/postroom/sqlstore"
)

//go:embed statements.sql
var statements string

//go:embed migrations
var files embed.FS

// Dialect speaks SQL Server.
var Dialect = &sqlstore.Dialect{
	Name:       "sqlserver",
	Statements: statements,
	Migrations: migrations(),
	Batch:      document,
	BatchBytes: 1 << 20,
	Singles:    map[string]bool{"arrivals": true, "lowest_queued": true, "exists_work": true},
	Value:      value,
	Classify:   Classify,
	Quote:      func(name string) string { return `"` + name + `"` },
	Schemas:    true,
	Refuse:     refuse,
	Isolation:  sql.LevelReadCommitted,
}

func migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

// value stores times as microseconds since 1970, booleans as numbers and texts
// as bytes, which no collation touches.
func value(v any) any {
	switch v := v.(type) {
	case nil:
		return sql.NullInt64{} // a time: NULL has a type here
	case time.Time:
		return v.UnixMicro()
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case string:
		return []byte(v)
	default:
		return v
	}
}

// refuse tells what to do about a database that is kept like one of an older
// server.
func refuse(says string) error {
	if says == "" {
		return nil
	}
	return fmt.Errorf("database has %s and so no OPENJSON: use ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = 150", says)
}

// migrating is what lock_migrations throws.
const migrating = 51222

// Classify reads the number that the error of the driver gives by method.
func Classify(err error) sqlstore.Class {
	if err == nil {
		return sqlstore.Other
	}
	var numbered interface{ SQLErrorNumber() int32 }
	if !errors.As(err, &numbered) {
		if sqlstore.Broken(err) {
			return sqlstore.Lost
		}
		return sqlstore.Other
	}
	switch numbered.SQLErrorNumber() {
	case 1205, // deadlock
		3960, 3961, // changed since the snapshot
		3930, 3998, // the transaction can only be rolled back
		2601, 2627, // another one has just stored the same key
		601: // moved while it was read without a lock
		return sqlstore.Repeat
	case 1222, migrating: // not obtained in time
		return sqlstore.Busy
	case 207, 208, 2760: // no column, table, schema
		return sqlstore.NoTable
	case 242, 245, 511, 515, 547, 1946, 2628, 8114, 8115, 8152, 13609: // conversion, size, constraint, JSON
		return sqlstore.Refused
	case 596, 6005, 6006, 976, 983, // the server ends the session, or is no longer the one to ask
		40197, 40501, 40613: // Azure moves the database
		return sqlstore.Lost
	}
	return sqlstore.Other
}
