package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // driver "sqlite"
)

// liteFile is one throwaway SQLite file.
type liteFile struct{ folder string }

func newLiteFile() (*liteFile, error) {
	folder, err := os.MkdirTemp("", "postroom-bench-")
	return &liteFile{folder}, err
}

func (f *liteFile) close(context.Context) error { return os.RemoveAll(f.folder) }

func (f *liteFile) path() string { return filepath.Join(f.folder, "box.db") }

// remove lets the next connection begin with an empty file.
func (f *liteFile) remove() error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(f.path() + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

const liteSettings = "journal_mode=WAL, synchronous=FULL"

func (f *liteFile) connect() (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+f.path()+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_txlock=immediate")
}

func (f *liteFile) execute(ctx context.Context, statements ...string) (err error) {
	db, err := f.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.200s: %w", statement, err)
		}
	}
	return nil
}

// written counts what this process has written: SQLite runs in it.
func (f *liteFile) written(context.Context) (n int64, err error) {
	status, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, errNotApplicable
	}
	for line := range bytes.Lines(status) {
		if found, _ := fmt.Sscanf(string(line), "wchar: %d", &n); found == 1 {
			return n, nil
		}
	}
	return 0, errNotApplicable
}

// hold keeps a read transaction open: the log can't be copied back into the
// file, and grows.
func (f *liteFile) hold(ctx context.Context) (func(), error) {
	db, err := f.connect()
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	var n int
	_, err = conn.ExecContext(ctx, "BEGIN DEFERRED")
	if err == nil {
		err = conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n)
	}
	release := func() {
		_ = conn.Close()
		_ = db.Close()
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

func aboutSQLite(ctx context.Context, _ string) (string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	var version string
	err = db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version)
	return fmt.Sprintf("SQLite %s (%s)", version, liteSettings), err
}
