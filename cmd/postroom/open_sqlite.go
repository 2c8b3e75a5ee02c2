package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

func openSQLite(d *database, create bool) (*sql.DB, error) {
	dsn, path, err := sqliteDSN(d.URL, create)
	if err != nil {
		return nil, err
	}
	if !create {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("there is no SQLite file %s: check --db, or create it with 'postroom migrate'", path)
		}
	}
	return sql.Open("sqlite", dsn)
}

// sqliteDSN gives the driver's name for a database and the path of its file.
// What the URL itself sets is left as it is. Migrate turns on WAL, which is kept
// in the file.
func sqliteDSN(raw string, create bool) (dsn, path string, err error) {
	scheme, rest, _ := strings.Cut(raw, ":")
	rest, query, _ := strings.Cut(rest, "?")
	path = rest
	if strings.EqualFold(scheme, "file") {
		if path, err = url.PathUnescape(rest); err != nil {
			return "", "", usagef("--db: %w", err)
		}
	} else {
		rest = (&url.URL{Path: strings.TrimPrefix(rest, "//")}).EscapedPath()
		path = strings.TrimPrefix(path, "//")
	}
	if path == "" {
		return "", "", usagef("--db %s: the path of the file is missing, as in sqlite:box.db", raw)
	}
	settings, err := url.ParseQuery(query)
	if err != nil {
		return "", "", usagef("--db: %w", err)
	}
	if !settings.Has("mode") {
		settings.Set("mode", "rw")
		if create {
			settings.Set("mode", "rwc")
		}
	}
	for _, pragma := range []string{"busy_timeout(5000)", "synchronous(FULL)"} {
		name, _, _ := strings.Cut(pragma, "(")
		if !slices.ContainsFunc(settings["_pragma"], func(set string) bool { return strings.HasPrefix(strings.ToLower(set), name) }) {
			settings.Add("_pragma", pragma)
		}
	}
	return "file:" + rest + "?" + settings.Encode(), path, nil
}
