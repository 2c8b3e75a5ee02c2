package park

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"time"
)

// Open opens a pool of a registered driver whose sessions stop in the lot.
func (l *Lot) Open(t testing.TB, name, dsn string) *sql.DB {
	t.Helper()
	plain, err := sql.Open(name, dsn)
	if err != nil {
		t.Fatal(err)
	}
	d := plain.Driver()
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(&connector{lot: l, driver: d, dsn: dsn})
	t.Cleanup(func() {
		l.Clear()
		_ = db.Close()
	})
	return db
}

// Clear lets everybody go, so that a test that failed still ends.
func (l *Lot) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.spots {
		s.done = true
		s.Release()
	}
}

type connector struct {
	lot    *Lot
	driver driver.Driver
	dsn    string
}

func (c *connector) Driver() driver.Driver { return c.driver }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, lot: c.lot, skew: c.lot.skew}, nil
}

func (c *connector) open(ctx context.Context) (driver.Conn, error) {
	if d, ok := c.driver.(driver.DriverContext); ok {
		inner, err := d.OpenConnector(c.dsn)
		if err != nil {
			return nil, err
		}
		return inner.Connect(ctx)
	}
	return c.driver.Open(c.dsn)
}

// conn passes on what drivers of today can do; it is not for older ones.
type conn struct {
	driver.Conn
	lot    *Lot
	skew   time.Duration
	ran    string // in this transaction
	broken bool
}

func (c *conn) around(name string, do func() error) error {
	if c.broken {
		return driver.ErrBadConn
	}
	if name == Begin {
		c.ran = ""
	}
	err := c.lot.around(name, c.ran, do)
	c.ran += name + "\n"
	if errors.Is(err, ErrLost) {
		c.broken = true
	}
	return err
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	err = c.around(nameOf(query), func() (err error) {
		if e, ok := c.Conn.(driver.ExecerContext); ok {
			res, err = e.ExecContext(ctx, c.words(query), c.toServer(args))
			return err
		}
		return c.prepared(ctx, query, func(s driver.Stmt) (err error) {
			res, err = s.(driver.StmtExecContext).ExecContext(ctx, c.toServer(args))
			return err
		})
	})
	return res, err
}

// QueryContext reads all rows at once: by then the server has done its part.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	read := &rows{}
	err := c.around(nameOf(query), func() error {
		if q, ok := c.Conn.(driver.QueryerContext); ok {
			inner, err := q.QueryContext(ctx, c.words(query), c.toServer(args))
			return read.all(inner, err, c.skew)
		}
		return c.prepared(ctx, query, func(s driver.Stmt) error {
			inner, err := s.(driver.StmtQueryContext).QueryContext(ctx, c.toServer(args))
			return read.all(inner, err, c.skew)
		})
	})
	if err != nil {
		return nil, err
	}
	return read, nil
}

// prepared is for a driver that runs nothing without it.
func (c *conn) prepared(ctx context.Context, query string, do func(s driver.Stmt) error) error {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, c.words(query))
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (t driver.Tx, err error) {
	err = c.around(Begin, func() (err error) {
		t, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
		return err
	})
	return &tx{c, t}, err
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, c.words(query))
	if err != nil {
		return nil, err
	}
	return &stmt{s, c, nameOf(query)}, nil
}

// stmt is a prepared statement, which parks where it runs.
type stmt struct {
	driver.Stmt
	conn *conn
	name string
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	err = s.conn.around(s.name, func() (err error) {
		res, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, s.conn.toServer(args))
		return err
	})
	return res, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	read := &rows{}
	err := s.conn.around(s.name, func() error {
		inner, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, s.conn.toServer(args))
		return read.all(inner, err, s.conn.skew)
	})
	if err != nil {
		return nil, err
	}
	return read, nil
}

func (s *stmt) CheckNamedValue(v *driver.NamedValue) error { return s.conn.CheckNamedValue(v) }

func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok && !c.broken {
		return p.Ping(ctx)
	}
	return nil
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *conn) ResetSession(ctx context.Context) error {
	if c.broken {
		return driver.ErrBadConn
	}
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	if v, ok := c.Conn.(driver.Validator); ok && !v.IsValid() {
		return false
	}
	return !c.broken
}

type tx struct {
	conn  *conn
	inner driver.Tx
}

func (t *tx) Commit() error { return t.conn.around(Commit, t.inner.Commit) }

func (t *tx) Rollback() error {
	if t.conn.broken {
		return nil // it goes with its connection
	}
	return t.conn.around(Rollback, t.inner.Rollback)
}

// rows are rows that were read to the end.
type rows struct {
	columns []string
	values  [][]driver.Value
}

func (r *rows) all(inner driver.Rows, err error, skew time.Duration) error {
	if err != nil {
		return err
	}
	r.columns = inner.Columns()
	for {
		row := make([]driver.Value, len(r.columns))
		err := inner.Next(row)
		if errors.Is(err, io.EOF) {
			return inner.Close()
		}
		if err != nil {
			return errors.Join(err, inner.Close())
		}
		for i, v := range row {
			switch v := v.(type) {
			case []byte:
				row[i] = append([]byte{}, v...) // the driver may use it again
			case time.Time:
				row[i] = v.Add(skew)
			}
		}
		r.values = append(r.values, row)
	}
}

func (r *rows) Columns() []string { return r.columns }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if len(r.values) == 0 {
		return io.EOF
	}
	copy(dest, r.values[0])
	r.values = r.values[1:]
	return nil
}
