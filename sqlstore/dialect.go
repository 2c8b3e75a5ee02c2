package sqlstore

import (
	"database/sql"
	"io/fs"
)

// A Dialect is what differs between databases: whole statements, migrations,
// and the meaning of errors. The dialect packages postgres and sqlite give one.
type Dialect struct {
	// Name is the dialect's name in messages: "postgres".
	Name string
	// Statements is the text of the named statements.
	Statements string
	// Migrations holds files named NNNN_words.sql, in order.
	Migrations fs.FS
	// Batch turns rows of values into the arguments of one statement over all of
	// them. Nil: statements take one row at a time.
	Batch func(rows [][]any) []any
	// NumbersInserts: insert_message takes the numbers of messages itself, in
	// the order of its rows.
	NumbersInserts bool
	// Value turns a single value into an argument. Nil: as it is.
	Value func(v any) any
	// Classify says what an error of the driver means.
	Classify func(err error) Class
	// Quote quotes a validated identifier.
	Quote func(name string) string
	// Schemas: tables can live in a schema.
	Schemas bool
	// SingleWriter: one transaction writes at a time, and holding it keeps all
	// other writers out.
	SingleWriter bool
	// Isolation is what our own transactions begin with.
	Isolation sql.IsolationLevel
}

// A Class is what an error of the database means for the operation.
type Class uint8

// The classes of errors.
const (
	// Other: the server refused the statement, or this is not a database error.
	Other Class = iota
	// Lost: the connection broke; what was under way may have taken effect.
	Lost
	// Repeat: the transaction was given up (deadlock, serialization failure);
	// the same again may succeed.
	Repeat
	// Busy: a lock was not obtained in time.
	Busy
	// Refused: the database does not like a value that it was given.
	Refused
	// NoTable: a table or column does not exist.
	NoTable
)
