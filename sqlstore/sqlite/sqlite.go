// Package sqlite is the dialect of SQLite 3.42 and later, with any driver.
package sqlite

import (
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
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
	Statements:   statements + inserts(),
	Migrations:   migrations(),
	Batch:        list,
	Singles:      singles,
	Widths:       widths,
	Prepares:     append(prepares, insertNames()...),
	Value:        value,
	Classify:     Classify,
	Quote:        func(name string) string { return `"` + name + `"` },
	SingleWriter: true,
	Isolation:    sql.LevelDefault,
}

// singles are the statements whose rows have more than the number of a message.
// To take them out of JSON would cost more than to run a prepared statement for
// each row.
var singles = map[string]bool{
	"lookup": true, "insert_work": true, "update_work": true, "insert_done": true,
	"update_content": true, "adopt_hash": true, "vacate_lanes": true, "lane_heads": true, "arrive": true,
	"insert_lanes": true, "lock_lanes": true, "arrivals": true, "lower_hint": true, "lowest_queued": true,
	"delete_lanes": true, "extend": true, "insert_audit": true, "count": true,
}

// widths let any number of messages be inserted with few statements that are kept
// prepared. Wider ones bring nothing more, and old builds bind 999 values at most.
var widths = []int{32, 16, 8, 4, 2, 1}

// inserts are the statements insert_messages_N. Their parameters have no numbers:
// drivers look up a number by its text.
func inserts() string {
	const row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)"
	var text strings.Builder
	for _, n := range widths {
		fmt.Fprintf(&text, `
-- name: insert_messages_%d
INSERT INTO {{message}} (first_seen, seq, consumer, source, id, grp, topic, payload, headers, hash, hash_alg,
                         digest, due_at, expires_at, occurred_at, correlation_id, causation_id, revision)
VALUES %s%s
ON CONFLICT (consumer, source, id) DO NOTHING;
`, n, strings.Repeat(row+", ", n-1), row)
	}
	return text.String()
}

func insertNames() []string {
	names := make([]string, len(widths))
	for i, n := range widths {
		names[i] = "insert_messages_" + strconv.Itoa(n)
	}
	return names
}

// prepares are the statements of the hot path, besides inserts.
var prepares = []string{
	"stored", "insert_work_span", "begin", "clock", "positions", "lookup", "lock_work", "exists_work", "insert_work", "update_work", "delete_work",
	"ack", "ack_span", "delete_work_span", "changes", "insert_done", "peek", "claim", "lease", "lease_span", "enqueue", "arrive", "arrivals", "lock_lanes", "insert_lanes",
	"lanes", "vacate", "ready_following", "next_heads", "lowest_queued", "set_heads_by_number", "vacate_lanes", "lane_heads", "extend",
}

// list turns rows of one number each into a JSON array.
func list(rows [][]any) []any {
	text := []byte{'['}
	for i, row := range rows {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, row[0].(int64), 10)
	}
	return []any{string(append(text, ']'))}
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
