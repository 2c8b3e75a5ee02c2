package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A database is where systems are measured beside each other.
type database struct {
	name string
	// server is the variable that names the server; none where there is none.
	server string
	// about says version and settings; nil where another one has said it.
	about   func(ctx context.Context, server string) (string, error)
	systems []func(ctx context.Context, server string) (system, error)
	// rows are what is measured.
	rows func(size sizes) []scenario
}

var databases = []database{
	{
		name:   "PostgreSQL",
		server: postgresServer,
		about:  aboutPostgres,
		systems: []func(context.Context, string) (system, error){
			newPostroomPg,
			newBarePg,
			func(ctx context.Context, server string) (system, error) { return newRiver(ctx, server, true) },
			func(ctx context.Context, server string) (system, error) { return newRiver(ctx, server, false) },
		},
		rows: func(size sizes) []scenario { return scenarios(size, onPostgres) },
	},
	{
		name:   "PostgreSQL, outbox",
		server: postgresServer,
		systems: []func(context.Context, string) (system, error){
			newOutboxPg,
			newBareOutboxPg,
			func(ctx context.Context, server string) (system, error) { return newWatermill(ctx, server, true) },
			func(ctx context.Context, server string) (system, error) { return newWatermill(ctx, server, false) },
		},
		rows: outboxRows(times(2, "Watermill"), times(0.75, "bare SQL")),
	},
	{
		name:    "MariaDB",
		server:  "POSTROOM_TEST_MARIADB_DSN",
		about:   aboutMaria,
		systems: []func(context.Context, string) (system, error){newPostroomMy, newBareMy},
		rows:    func(size sizes) []scenario { return scenarios(size, onMaria) },
	},
	{
		name:    "SQLite",
		about:   aboutSQLite,
		systems: []func(context.Context, string) (system, error){newPostroomLite, newBareLite, newGoqite},
		rows:    func(size sizes) []scenario { return scenarios(size, onSQLite) },
	},
	{
		name:    "SQLite, outbox",
		systems: []func(context.Context, string) (system, error){newOutboxLite, newBareOutboxLite},
		rows:    func(size sizes) []scenario { return outboxRows(times(0.75, "bare SQL"))(size.smaller()) },
	},
}

const postgresServer = "POSTROOM_TEST_POSTGRES_DSN"

func aboutPostgres(ctx context.Context, server string) (string, error) {
	if server == "" {
		return "", errors.New(postgresServer + " is not set: use make bench")
	}
	version, settings, err := pgSettings(ctx, server)
	return fmt.Sprintf("PostgreSQL %s (%s), %d connections per system", version, strings.Join(settings, ", "), pgConns), err
}

// attach gives the system that another process made.
func attach(kind, dsn string) (system, error) {
	switch kind {
	case "postroom-pg":
		return &postroomPg{&pgDatabase{dsn: dsn}}, nil
	case "bare-pg":
		return &barePg{&pgDatabase{dsn: dsn}}, nil
	case "river":
		return &riverPg{&pgDatabase{dsn: dsn}, true}, nil
	case "postroom-mariadb":
		return &postroomMy{&myDatabase{dsn: dsn}}, nil
	case "bare-mariadb":
		return &bareMy{&myDatabase{dsn: dsn}}, nil
	case "postroom-sqlite":
		return &postroomLite{&liteFile{dsn}}, nil
	case "bare-sqlite":
		return &bareLite{&liteFile{dsn}}, nil
	case "goqite":
		return &goqiteLite{&liteFile{dsn}}, nil
	}
	return nil, fmt.Errorf("there is no worker %q", kind)
}
