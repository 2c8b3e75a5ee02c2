package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// myConns is how many connections each system may open.
const myConns = 100

// myDatabase is one throwaway database on the server.
type myDatabase struct {
	server, dsn, database string
}

func newMyDatabase(ctx context.Context, server string) (*myDatabase, error) {
	config, err := mysql.ParseDSN(server)
	if err != nil {
		return nil, fmt.Errorf("the DSN of MariaDB can't be read: %w", err)
	}
	config.DBName = "bench_" + strings.ToLower(rand.Text())
	d := &myDatabase{server: server, dsn: config.FormatDSN(), database: config.DBName}
	return d, executeMy(ctx, server, "CREATE DATABASE "+d.database)
}

func (d *myDatabase) close(ctx context.Context) error {
	return executeMy(ctx, d.server, "DROP DATABASE "+d.database)
}

func (d *myDatabase) execute(ctx context.Context, statements ...string) error {
	return executeMy(ctx, d.dsn, statements...)
}

func executeMy(ctx context.Context, dsn string, statements ...string) error {
	return onMy(ctx, dsn, func(conn *sql.Conn) error {
		for _, statement := range statements {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%.200s: %w", statement, err)
			}
		}
		return nil
	})
}

// onMy runs fn on one connection.
func onMy(ctx context.Context, dsn string, fn func(conn *sql.Conn) error) (err error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return fn(conn)
}

// pool opens connections with further settings of the driver.
func (d *myDatabase) pool(settings map[string]string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(d.dsn)
	if err != nil {
		return nil, err
	}
	config.Params = settings
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(myConns)
	db.SetMaxIdleConns(myConns)
	return db, nil
}

// written counts what the server wrote ahead of its tables.
func (d *myDatabase) written(ctx context.Context) (n int64, err error) {
	err = onMy(ctx, d.dsn, func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Innodb_os_log_written'").Scan(&n)
	})
	return n, err
}

// hold opens a transaction that sees the database as it is now, so that nothing
// that goes from here on can be purged.
func (d *myDatabase) hold(ctx context.Context) (func(), error) {
	db, err := sql.Open("mysql", d.dsn)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		_, err = conn.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func() {
		_ = conn.Close()
		_ = db.Close()
	}, nil
}

// errForgetful refuses a server for figures; a smoke test makes none.
var errForgetful = errors.New("figures of a server that may lose commits are not comparable")

// aboutMaria gives version and the settings that decide what a commit costs.
func aboutMaria(ctx context.Context, server string) (string, error) {
	if server == "" {
		return "", errors.New("POSTROOM_TEST_MARIADB_DSN is not set: use make bench")
	}
	var (
		version  string
		settings []string
	)
	err := onMy(ctx, server, func(conn *sql.Conn) error {
		for _, name := range []string{"innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_buffer_pool_size", "innodb_log_file_size", "log_bin", "max_connections"} {
			var value string
			if err := conn.QueryRowContext(ctx, "SELECT @@"+name).Scan(&value); err != nil {
				return err
			}
			if name == "innodb_flush_log_at_trx_commit" && value != "1" {
				return fmt.Errorf("%s is %s: %w", name, value, errForgetful)
			}
			settings = append(settings, name+"="+value)
		}
		return conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	})
	return fmt.Sprintf("MariaDB %s (%s), %d connections per system", version, strings.Join(settings, ", "), myConns), err
}
