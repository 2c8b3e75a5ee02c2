package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/mysql"
)

// postroomMy is Postroom on MariaDB, with the driver's defaults.
type postroomMy struct{ *myDatabase }

func newPostroomMy(ctx context.Context, server string) (system, error) {
	d, err := newMyDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	return &postroomMy{d}, migrateMy(ctx, d)
}

func migrateMy(ctx context.Context, d *myDatabase) (err error) {
	db, err := d.pool(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	store, err := sqlstore.Open(db, mysql.Dialect, sqlstore.Options{})
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE bench_effect (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARBINARY(255) NOT NULL)")
	return err
}

func (p *postroomMy) name() string { return ours }

func (p *postroomMy) beside(ctx context.Context) (system, error) { return newPostroomMy(ctx, p.server) }

func (p *postroomMy) child() (kind, dsn string) { return "postroom-mariadb", p.dsn }

func (p *postroomMy) reset(ctx context.Context) error { return resetMy(ctx, p.myDatabase) }

func resetMy(ctx context.Context, d *myDatabase) error {
	var all []string
	for _, table := range []string{"postroom_message", "postroom_work", "postroom_done", "postroom_lane", "postroom_total", "bench_effect"} {
		all = append(all, "TRUNCATE "+table)
	}
	return d.execute(ctx, all...)
}

func (p *postroomMy) fill(ctx context.Context, kind rows, n int) error {
	return fillMy(ctx, p.myDatabase, kind, n)
}

//go:embed fill_my.sql
var fillMyText string

// fillMy lets the server write the rows, numbered from the next ticket of the
// sequence on, of which each stands for 100,000.
func fillMy(ctx context.Context, d *myDatabase, kind rows, n int) error {
	statements, err := named(fillMyText)
	if err != nil {
		return err
	}
	group, names := "''", []string{"message"}
	switch kind {
	case ready:
		names = append(names, "ready")
	case grouped:
		group, names = fmt.Sprintf("CONCAT('g', seq %% %d)", groups), append(names, "arrived")
	case finished:
		names = append(names, "finished")
	case scheduled:
		names = append(names, "scheduled")
	case queued:
		group, names = "'one'", append(names, "queued", "head", "lane")
	}
	return onMy(ctx, d.dsn, func(conn *sql.Conn) error {
		taken, err := conn.ExecContext(ctx, statements["ticket"])
		if err != nil {
			return err
		}
		ticket, err := taken.LastInsertId()
		if err != nil {
			return err
		}
		fillIn := strings.NewReplacer("{{n}}", fmt.Sprint(n), "{{first}}", fmt.Sprint(ticket*100_000), "{{group}}", group,
			"{{next}}", fmt.Sprint(ticket+int64(n)/100_000+1))
		for _, name := range append(names, "sequence", "analyze") {
			if _, err := conn.ExecContext(ctx, fillIn.Replace(statements[name])); err != nil {
				return fmt.Errorf("fill %d: %s: %w", n, name, err)
			}
		}
		return nil
	})
}

func (p *postroomMy) open(context.Context) (session, error) {
	db, err := p.pool(nil)
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(db, mysql.Dialect, sqlstore.Options{})
	if err != nil {
		return nil, err
	}
	return newPostroomSession(store, sqlHandler, func() {
		_ = store.Close()
		_ = db.Close()
	})
}
