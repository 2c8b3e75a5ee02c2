package pgxstore

import (
	"database/sql"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rows gives the store's cells their values straight from the binary protocol.
// Half of the time of reading a claim went into pgx finding out, cell by cell,
// how to feed a sql.Scanner.
type rows struct {
	pgx.Rows
	// texts are those of the row before: many columns seldom change.
	texts []string
}

func newRows(r pgx.Rows) *rows { return &rows{Rows: r} }

func (r *rows) Close() error {
	r.Rows.Close()
	return r.Err()
}

// What a cell can be told without an interface value in between.
type (
	intSetter  interface{ SetInt(n int64) }
	textSetter interface{ SetText(s string) }
	timeSetter interface{ SetTime(t time.Time) }
)

func (r *rows) Scan(dest ...any) error {
	values, fields := r.RawValues(), r.FieldDescriptions()
	if len(dest) != len(values) {
		return r.Rows.Scan(dest...)
	}
	if r.texts == nil {
		r.texts = make([]string, len(values))
	}
	for i, d := range dest {
		if !r.set(d, &fields[i], values[i], i) {
			return r.Rows.Scan(dest...)
		}
	}
	return nil
}

// sinceY2K is where PostgreSQL's times begin, in microseconds.
const sinceY2K = 946_684_800_000_000

// set is false for what it leaves to pgx.
func (r *rows) set(cell any, f *pgconn.FieldDescription, b []byte, i int) bool {
	if b == nil {
		c, ok := cell.(sql.Scanner)
		return ok && c.Scan(nil) == nil
	}
	if f.DataTypeOID == pgtype.TextOID { // the same in either format
		c, ok := cell.(textSetter)
		if ok && r.texts[i] != string(b) {
			r.texts[i] = string(b)
		}
		if ok {
			c.SetText(r.texts[i])
		}
		return ok
	}
	if f.Format != pgtype.BinaryFormatCode {
		return false
	}
	switch f.DataTypeOID {
	case pgtype.ByteaOID:
		c, ok := cell.(sql.Scanner)
		return ok && c.Scan(b) == nil
	case pgtype.TimestamptzOID:
		c, ok := cell.(timeSetter)
		if ok {
			c.SetTime(time.UnixMicro(number(b) + sinceY2K).UTC())
		}
		return ok
	case pgtype.Int8OID, pgtype.Int4OID, pgtype.Int2OID, pgtype.BoolOID:
		c, ok := cell.(intSetter)
		if ok {
			c.SetInt(number(b))
		}
		return ok
	}
	return false
}

// number reads a number of any width.
func number(b []byte) int64 {
	switch len(b) {
	case 8:
		return int64(binary.BigEndian.Uint64(b)) //nolint:gosec // the same bits
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b))) //nolint:gosec // the same bits
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b))) //nolint:gosec // the same bits
	default:
		return int64(b[0])
	}
}
