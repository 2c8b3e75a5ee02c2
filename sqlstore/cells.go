package sqlstore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// timeCell reads a time: as the driver gives it, or as microseconds since 1970
// where the database has no type for it. NULL is the zero time.
type timeCell time.Time

func (c *timeCell) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*c = timeCell{}
	case time.Time:
		*c = timeCell(v.UTC())
	case int64:
		*c = timeCell(time.UnixMicro(v).UTC())
	case []byte:
		var n intCell
		if err := n.Scan(v); err != nil {
			return err
		}
		*c = timeCell(time.UnixMicro(int64(n)).UTC())
	default:
		return fmt.Errorf("can't read a time from %T", v)
	}
	return nil
}

// headersCell reads the headers from their JSON text. NULL is none.
type headersCell map[string]string

func (c *headersCell) Scan(v any) error {
	var text []byte
	switch v := v.(type) {
	case nil:
		*c = nil
		return nil
	case string:
		text = []byte(v)
	case []byte:
		text = v
	default:
		return fmt.Errorf("can't read headers from %T", v)
	}
	return json.Unmarshal(text, (*map[string]string)(c))
}

// headersText gives the JSON text of headers; nil when there are none.
func headersText(h map[string]string) any {
	if len(h) == 0 {
		return nil
	}
	text, err := json.Marshal(h)
	if err != nil {
		panic("sqlstore: headers of strings can't fail to encode: " + err.Error())
	}
	return string(text)
}

// intCell reads a number that may be NULL, which is 0.
type intCell int64

func (c *intCell) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*c = 0
	case int64:
		*c = intCell(v)
	case int32:
		*c = intCell(v)
	case uint64:
		*c = intCell(v) //nolint:gosec // no number of ours needs the highest bit
	case []byte: // as text, by drivers that don't know the type
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return err
		}
		*c = intCell(n)
	case int16:
		*c = intCell(v)
	case float64:
		*c = intCell(v)
	case bool:
		*c = 0
		if v {
			*c = 1
		}
	default:
		return fmt.Errorf("can't read a number from %T", v)
	}
	return nil
}

// textCell reads a text that may be NULL, which is empty.
type textCell string

func (c *textCell) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*c = ""
	case string:
		*c = textCell(v)
	case []byte:
		*c = textCell(v)
	default:
		return fmt.Errorf("can't read a text from %T", v)
	}
	return nil
}

// timeValue is the argument for a time; NULL for the zero time.
func timeValue(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Truncate(time.Microsecond)
}

type (
	countCell int
	stageCell postroom.Stage
	guardCell box.GuardMode
	boolCell  bool
	bytesCell []byte
)

// Drivers that know the type of a column set a cell without an interface value
// in between, which would have to be allocated.

// SetInt sets a number.
func (c *intCell) SetInt(n int64) { *c = intCell(n) }

// SetInt sets a number.
func (c *countCell) SetInt(n int64) { *c = countCell(n) }

// SetInt sets a stage.
func (c *stageCell) SetInt(n int64) { *c = stageCell(n) }

// SetInt sets a mode.
func (c *guardCell) SetInt(n int64) { *c = guardCell(n) }

// SetInt sets a truth, which is any number but 0.
func (c *boolCell) SetInt(n int64) { *c = n != 0 }

// SetText sets a text.
func (c *textCell) SetText(s string) { *c = textCell(s) }

// SetTime sets a time, in UTC.
func (c *timeCell) SetTime(t time.Time) { *c = timeCell(t) }

func (c *countCell) Scan(v any) error { return scanInt(v, func(n int64) { *c = countCell(n) }) }
func (c *stageCell) Scan(v any) error { return scanInt(v, func(n int64) { *c = stageCell(n) }) }
func (c *guardCell) Scan(v any) error { return scanInt(v, func(n int64) { *c = guardCell(n) }) }
func (c *boolCell) Scan(v any) error  { return scanInt(v, func(n int64) { *c = n != 0 }) }

func scanInt(v any, set func(int64)) error {
	var n intCell
	if err := n.Scan(v); err != nil {
		return err
	}
	set(int64(n))
	return nil
}

// Scan copies the bytes: a driver may reuse its buffer. NULL is nil, empty is
// not nil.
func (c *bytesCell) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*c = nil
	case []byte:
		*c = append(make([]byte, 0, len(v)), v...)
	case string:
		*c = []byte(v)
	default:
		return fmt.Errorf("can't read bytes from %T", v)
	}
	return nil
}
