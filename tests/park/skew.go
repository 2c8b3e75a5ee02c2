package park

import (
	"database/sql/driver"
	"regexp"
	"time"
)

// Skew lets the server's clock seem to be ahead of the program's by d, or behind
// it: every time that comes from the server is moved by d, and every time that is
// sent to it is moved back. To the program it is as if its own clock were wrong.
// Call it before Open.
func (l *Lot) Skew(d time.Duration) { l.skew = d }

// Reword lets the server get other words than the program sent. Call it before
// Open.
func (l *Lot) Reword(words func(query string) string) { l.reword = words }

// words is what the server gets.
func (c *conn) words(query string) string {
	if c.lot.reword == nil {
		return query
	}
	return c.lot.reword(query)
}

// stamp is a time within the text of an array.
var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?Z`)

const stampLayout = "2006-01-02 15:04:05.999999Z07:00"

func (c *conn) toServer(args []driver.NamedValue) []driver.NamedValue {
	if c.skew == 0 {
		return args
	}
	moved := make([]driver.NamedValue, len(args))
	for i, a := range args {
		switch v := a.Value.(type) {
		case time.Time:
			a.Value = v.Add(-c.skew)
		case string:
			a.Value = stamp.ReplaceAllStringFunc(v, func(s string) string {
				t, err := time.Parse(stampLayout, s)
				if err != nil {
					return s
				}
				return t.Add(-c.skew).Format(stampLayout)
			})
		}
		moved[i] = a
	}
	return moved
}
