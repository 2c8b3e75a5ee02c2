package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// A tableFill is what fills a table.
type tableFill struct {
	table      string
	statements []string
}

// manyRows is from where on it pays to make the indexes after the rows: to keep
// up those of River's table takes several times as long.
const manyRows = 100_000

// load fills tables with n rows each, at the same time.
func (d *pgDatabase) load(ctx context.Context, n int, fills ...tableFill) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range fills {
		group.Go(func() error {
			conn, err := pgx.Connect(ctx, d.dsn)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(ctx) }()
			all := f.statements
			if n >= manyRows {
				drop, remake, err := indexes(ctx, conn, f.table)
				if err != nil {
					return err
				}
				all = append(append(drop, f.statements...), remake...)
			}
			for _, statement := range append([]string{"SET synchronous_commit = off", "SET maintenance_work_mem = '512MB'"}, all...) {
				if _, err := conn.Exec(ctx, statement); err != nil {
					return fmt.Errorf("%.200s: %w", statement, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// indexes gives the statements that drop the indexes of a table, and those that
// make them again.
func indexes(ctx context.Context, conn *pgx.Conn, table string) (drop, remake []string, err error) {
	found, err := conn.Query(ctx, `
		SELECT CASE WHEN c.oid IS NULL THEN format('DROP INDEX %s', i.indexrelid::regclass)
		            ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', i.indrelid::regclass, c.conname) END,
		       CASE WHEN c.oid IS NULL THEN pg_get_indexdef(i.indexrelid)
		            ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', i.indrelid::regclass, c.conname, pg_get_constraintdef(c.oid)) END
		FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.conrelid = i.indrelid
		WHERE i.indrelid = $1::text::regclass`, table)
	if err != nil {
		return nil, nil, err
	}
	var dropping, making string
	_, err = pgx.ForEachRow(found, []any{&dropping, &making}, func() error {
		drop, remake = append(drop, dropping), append(remake, making)
		return nil
	})
	return drop, remake, err
}
