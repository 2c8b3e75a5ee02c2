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
type rows struct{ pgx.Rows }

func newRows(r pgx.Rows) *rows { return &rows{r} }

func (r *rows) Close() error {
	r.Rows.Close()
	return r.Err()
}

func (r *rows) Scan(dest ...any) error {
	values, fields := r.RawValues(), r.FieldDescriptions()
	if len(dest) != len(values) {
		return r.Rows.Scan(dest...)
	}
	for i, d := range dest {
		cell, ok := d.(sql.Scanner)
		if !ok {
			return r.Rows.Scan(dest...)
		}
		v, ok := decode(&fields[i], values[i])
		if !ok {
			return r.Rows.Scan(dest...)
		}
		if err := cell.Scan(v); err != nil {
			return err
		}
	}
	return nil
}

// sinceY2K is where PostgreSQL's times begin, in microseconds.
const sinceY2K = 946_684_800_000_000

// decode reads a value of the types that the tables have.
func decode(f *pgconn.FieldDescription, b []byte) (v any, ok bool) {
	switch oid := f.DataTypeOID; {
	case b == nil:
		return nil, true
	case oid == pgtype.TextOID: // the same in either format
		return string(b), true
	case f.Format != pgtype.BinaryFormatCode:
		return nil, false
	case oid == pgtype.ByteaOID:
		return b, true
	case oid == pgtype.Int8OID && len(b) == 8:
		return int64(binary.BigEndian.Uint64(b)), true //nolint:gosec // the same bits
	case oid == pgtype.Int4OID && len(b) == 4:
		return int64(int32(binary.BigEndian.Uint32(b))), true //nolint:gosec // the same bits
	case oid == pgtype.Int2OID && len(b) == 2:
		return int64(int16(binary.BigEndian.Uint16(b))), true //nolint:gosec // the same bits
	case oid == pgtype.BoolOID && len(b) == 1:
		return b[0] != 0, true
	case oid == pgtype.TimestamptzOID && len(b) == 8:
		return time.UnixMicro(int64(binary.BigEndian.Uint64(b)) + sinceY2K).UTC(), true //nolint:gosec // the same bits
	}
	return nil, false
}
