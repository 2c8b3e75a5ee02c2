package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// A Preparer keeps statements prepared. It pays where a statement takes longer
// to parse than to run, as in an embedded database.
type Preparer interface {
	// Prepare readies statements, which must not be called while this program
	// holds a connection: it may be the only one.
	Prepare(ctx context.Context, texts []string) error
	// Unprepare gives them back.
	Unprepare() error
}

// prepared runs what was prepared as such, and the rest as it is.
type prepared struct {
	db *sql.DB

	mu         sync.RWMutex
	statements map[string]*sql.Stmt
	closed     bool
}

func (p *prepared) find(text string) *sql.Stmt {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.statements[text]
}

func (p *prepared) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if s := p.find(text); s != nil {
		return s.ExecContext(ctx, args...)
	}
	return p.db.ExecContext(ctx, text, args...)
}

func (p *prepared) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s := p.find(text); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return p.db.QueryContext(ctx, text, args...)
}

// preparedTx is the same inside a transaction.
type preparedTx struct {
	*prepared
	tx *sql.Tx
}

func (p preparedTx) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if s := p.find(text); s != nil {
		return p.tx.StmtContext(ctx, s).ExecContext(ctx, args...)
	}
	return p.tx.ExecContext(ctx, text, args...)
}

func (p preparedTx) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s := p.find(text); s != nil {
		return p.tx.StmtContext(ctx, s).QueryContext(ctx, args...)
	}
	return p.tx.QueryContext(ctx, text, args...)
}

// Prepare: see Preparer.
func (d sqlDB) Prepare(ctx context.Context, texts []string) error {
	for _, text := range texts {
		if d.prepared.find(text) != nil {
			continue
		}
		// Without the lock: it may wait for a connection, and others must not.
		s, err := d.db.PrepareContext(ctx, text)
		if err == nil {
			err = d.prepared.keep(text, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep keeps a statement, unless there is one already or no more are kept.
func (p *prepared) keep(text string, s *sql.Stmt) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.statements[text] != nil {
		return s.Close()
	}
	if p.statements == nil {
		p.statements = map[string]*sql.Stmt{}
	}
	p.statements[text] = s
	return nil
}

// Unprepare: see Preparer.
func (d sqlDB) Unprepare() error {
	d.prepared.mu.Lock()
	defer d.prepared.mu.Unlock()
	var errs []error
	for _, s := range d.prepared.statements {
		errs = append(errs, s.Close())
	}
	d.prepared.statements, d.prepared.closed = nil, true
	return errors.Join(errs...)
}
