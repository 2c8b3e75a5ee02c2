package main

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

//go:embed bare_my.sql
var bareMyText string

// bareMy makes the row changes of Postroom on MariaDB by hand, with prepared
// statements.
type bareMy struct{ *myDatabase }

func newBareMy(ctx context.Context, server string) (system, error) {
	d, err := newMyDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	return &bareMy{d}, errors.Join(migrateMy(ctx, d), d.execute(ctx, bareMySequence))
}

const bareMySequence = "CREATE SEQUENCE IF NOT EXISTS bench_sequence START WITH 1000000000"

func (b *bareMy) name() string { return "bare SQL" }

func (b *bareMy) beside(ctx context.Context) (system, error) { return newBareMy(ctx, b.server) }

func (b *bareMy) share(with system) system { return &bareMy{with.(*postroomMy).myDatabase} }

func (b *bareMy) child() (kind, dsn string) { return "bare-mariadb", b.dsn }

func (b *bareMy) reset(ctx context.Context) error { return resetMy(ctx, b.myDatabase) }

func (b *bareMy) fill(ctx context.Context, kind rows, n int) error {
	return fillMy(ctx, b.myDatabase, kind, n)
}

func (b *bareMy) open(ctx context.Context) (session, error) {
	texts, err := named(bareMyText)
	if err != nil {
		return nil, err
	}
	row := "(?, 'bench', 'bench', ?, '', 'bench', ?, '', '', '', ?, 1)"
	texts["messages"] = strings.Replace(texts["messages"], "{{rows}}", row+strings.Repeat(","+row, batch-1), 1)
	if err := b.execute(ctx, bareMySequence); err != nil { // it may share a database
		return nil, err
	}
	db, err := b.pool(map[string]string{"tx_isolation": "'READ-COMMITTED'"})
	if err != nil {
		return nil, err
	}
	s := &bareMySession{db: db, prepared: map[string]*sql.Stmt{}, wake: make(chan struct{}, 1)}
	for name, text := range texts {
		if s.prepared[name], err = db.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return s, nil
}

type bareMySession struct {
	db       *sql.DB
	prepared map[string]*sql.Stmt
	heads    bool
	wake     chan struct{}
}

func (s *bareMySession) close() { _ = s.db.Close() }

// A bareMyTx runs prepared statements in a transaction.
type bareMyTx struct {
	*sql.Tx
	prepared map[string]*sql.Stmt
}

func (t bareMyTx) exec(ctx context.Context, name string, args ...any) (changed int64, err error) {
	done, err := t.StmtContext(ctx, t.prepared[name]).ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func (t bareMyTx) query(ctx context.Context, name string, args ...any) (*sql.Rows, error) {
	return t.StmtContext(ctx, t.prepared[name]).QueryContext(ctx, args...)
}

// write runs fn in a transaction, again if the server gave it up for a deadlock.
func (s *bareMySession) write(ctx context.Context, fn func(tx bareMyTx) error) error {
	for {
		err := s.writeOnce(ctx, fn)
		var known *mysql.MySQLError
		if !errors.As(err, &known) || known.Number != deadlock {
			return err
		}
	}
}

const deadlock = 1213

func (s *bareMySession) writeOnce(ctx context.Context, fn func(tx bareMyTx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := fn(bareMyTx{tx, s.prepared}); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *bareMySession) receive(ctx context.Context, m message) error {
	err := s.write(ctx, func(tx bareMyTx) error {
		now := time.Now().UnixMicro()
		changed, err := tx.exec(ctx, "message", m.id, m.payload, now)
		if err != nil || changed == 0 {
			return err
		}
		_, err = tx.exec(ctx, "work", now)
		return err
	})
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return err
}

func (s *bareMySession) receiveAll(ctx context.Context, ms []message) error {
	return s.write(ctx, func(tx bareMyTx) error {
		var first int64
		if err := tx.StmtContext(ctx, s.prepared["number"]).QueryRowContext(ctx).Scan(&first); err != nil {
			return err
		}
		now := time.Now().UnixMicro()
		args := make([]any, 0, 4*len(ms))
		for i, m := range ms {
			args = append(args, first+int64(i), m.id, m.payload, now)
		}
		if _, err := tx.exec(ctx, "messages", args...); err != nil {
			return err
		}
		_, err := tx.exec(ctx, "works", first, first+int64(len(ms))-1)
		return err
	})
}

func (s *bareMySession) work(ctx context.Context, w work) error {
	done, err := s.prepared["lanes"].ExecContext(ctx)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	s.heads = n > 0
	return errors.Join(err, bareLoops(ctx, s, s.wake, bareMyLoops, w))
}

const bareMyLoops = 2

func (s *bareMySession) claim(ctx context.Context, owner string, limit int, lease time.Duration) (claimed []bareMessage, err error) {
	err = s.write(ctx, func(tx bareMyTx) error {
		var found *sql.Rows
		var err error
		if s.heads {
			var free []string
			found, err = tx.query(ctx, "free", limit)
			if free, err = collect(found, err, func(rows *sql.Rows) (group string, err error) { return group, rows.Scan(&group) }); err != nil || len(free) == 0 {
				return err
			}
			text, _ := json.Marshal(free) // of texts
			found, err = tx.query(ctx, "claim_heads", string(text))
		} else {
			found, err = tx.query(ctx, "claim", limit)
		}
		claimed, err = collect(found, err, func(rows *sql.Rows) (m bareMessage, err error) {
			return m, rows.Scan(&m.seq, &m.id, &m.payload)
		})
		if err != nil || len(claimed) == 0 {
			return err
		}
		seqs := make([]int64, len(claimed))
		for i, m := range claimed {
			seqs[i] = m.seq
		}
		_, err = tx.exec(ctx, "lease", list(seqs), owner, time.Now().Add(lease).UnixMicro())
		if err == nil && s.heads {
			_, err = tx.exec(ctx, "hold", list(seqs))
		}
		return err
	})
	return claimed, err
}

func (s *bareMySession) settle(ctx context.Context, owner string, seqs []int64) error {
	return s.write(ctx, func(tx bareMyTx) error { return s.end(ctx, tx, owner, seqs) })
}

func (s *bareMySession) insertAndSettle(ctx context.Context, owner string, m bareMessage) error {
	return s.write(ctx, func(tx bareMyTx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO bench_effect (id) VALUES (?)", m.id); err != nil {
			return err
		}
		return s.end(ctx, tx, owner, []int64{m.seq})
	})
}

func (s *bareMySession) end(ctx context.Context, tx bareMyTx, owner string, seqs []int64) error {
	if s.heads {
		if _, err := tx.exec(ctx, "vacate", list(seqs)); err != nil {
			return err
		}
	}
	now := time.Now().UnixMicro()
	if _, err := tx.exec(ctx, "done", now, now, list(seqs), owner); err != nil {
		return err
	}
	_, err := tx.exec(ctx, "settle", list(seqs), owner)
	return err
}

func (s *bareMySession) reap(ctx context.Context) error {
	return s.write(ctx, func(tx bareMyTx) error {
		_, err := tx.exec(ctx, "reap", time.Now().UnixMicro())
		return err
	})
}
