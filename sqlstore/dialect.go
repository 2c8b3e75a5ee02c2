package sqlstore

import (
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
)

// A Dialect is what differs between databases: whole statements, migrations,
// and the meaning of errors. The dialect packages give one each.
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
	// BatchBytes bounds what one such statement carries; larger batches go in
	// several. 0: no bound.
	BatchBytes int
	// Singles are statements that take one row at a time all the same.
	Singles map[string]bool
	// Widths are how many messages the statements insert_messages_N take, from the
	// widest down to 1. Nil: there are none.
	Widths []int
	// Fill writes arguments into a statement, where drivers need a round trip more
	// to pass them. Nil: they are passed.
	Fill func(text string, args []any) string
	// Span is how many numbers one row of the statement positions stands for,
	// after a statement "ticket" has taken it. 0: as many as were asked for.
	Span int
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
	// Prepares are the statements that are kept prepared, where the driver can.
	// Nil: none, since a pooler in between may not keep them.
	Prepares []string
	// SingleWriter: one transaction writes at a time, and holding it keeps all
	// other writers out.
	SingleWriter bool
	// Snapshots: a caller's transaction may read a past that its locks are not
	// bound to.
	Snapshots bool
	// Refuse tells why a server, by what it says of its version, can't be used.
	// Nil: any can.
	Refuse func(version string) error
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
	// Unsupported: the server knows no such statement.
	Unsupported
	// Unprepared: what the driver prepared is not in this session, since a pooler
	// gives each transaction another one.
	Unprepared
)

// Broken reports whether an error, which is not one of the server's, tells that
// the connection broke.
func Broken(err error) bool {
	var netErr net.Error
	if errors.As(err, &netErr) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return true
	}
	for _, text := range []string{"bad connection", "invalid connection", "conn closed", "connection reset", "broken pipe", "unexpected EOF"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
