package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMigrateShowsTheVersionsAndChecksWithoutChanging(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db string) {
		if got := call(t, "migrate", "--db", db, "--check"); got.status != exitFailure {
			t.Errorf("check of an empty database: exit status %d, %s", got.status, got.out)
		}
		if got := call(t, "stats", "--db", db); got.status != exitFailure || !strings.Contains(got.err, "postroom migrate") {
			t.Errorf("stats without tables: exit status %d, %s", got.status, got.err)
		}
		if got := must(t, "migrate", "--db", db); !strings.HasSuffix(got, ": version 0 → 1\n") {
			t.Errorf("migrate: %q", got)
		}
		if got := must(t, "migrate", "--db", db); !strings.HasSuffix(got, ": up to date, version 1\n") {
			t.Errorf("migrate again: %q", got)
		}
		var res migrateResult
		if err := json.Unmarshal([]byte(must(t, "migrate", "--db", db, "--dry-run", "--json")), &res); err != nil {
			t.Fatal(err)
		}
		if !res.UpToDate || res.From != 1 || res.To != 1 {
			t.Errorf("%+v", res)
		}
		if got := must(t, "migrate", "--db", db, "--prefix", "other"); !strings.Contains(got, "0 → 1") {
			t.Errorf("a second table set: %q", got)
		}
	})
}

func TestACheckOfAMissingSQLiteFileDoesNotCreateIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "typo.db")
	for _, args := range [][]string{{"migrate", "--check"}, {"stats"}, {"cleanup", "--days", "1"}} {
		got := call(t, append(args, "--db", "file:"+path)...)
		if got.status != exitFailure || !strings.Contains(got.err, "there is no SQLite file "+path) {
			t.Errorf("%v: exit status %d, %s", args, got.status, got.err)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}

func TestSchemaPrintsSQLWithoutConnecting(t *testing.T) {
	t.Setenv("POSTROOM_DB", "")
	golden(t, "grants", must(t, "schema", "--dialect", "postgres", "--schema", "orders", "--grants", "app"))
	if a, b := must(t, "schema", "--dialect", "sqlite"), must(t, "schema", "--db", "sqlite:/nowhere/box.db"); a != b || !strings.Contains(a, "CREATE TABLE") {
		t.Error("--dialect and --db give different SQL")
	}
	got := must(t, "schema", "--db", "postgres://app:s3cret@nowhere/shop", "--schema", "orders", "--prefix", "mail")
	if !strings.Contains(got, `"orders"."mail_message"`) || strings.Contains(got, "s3cret") {
		t.Errorf("%s", got)
	}
}

// What is printed must be what Migrate does: a database that someone else
// prepared with it is up to date.
func TestThePrintedSchemaIsUpToDateAndEnoughForTheGrantedRole(t *testing.T) {
	db := freshPostgres(t)
	d := database{URL: db, tableSet: tableSet{Prefix: "postroom"}}
	store, err := d.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer store.close()
	for range 2 {
		if _, err := store.db.ExecContext(t.Context(), must(t, "schema", "--db", db)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "migrate", "--db", db, "--check")
	if _, err := store.db.ExecContext(t.Context(), "BEGIN; CREATE ROLE postroom_cli_test; "+must(t, "schema", "--db", db, "--grants", "postroom_cli_test")+
		"; SET LOCAL ROLE postroom_cli_test; INSERT INTO postroom_total VALUES ('c', 't', 'n', 1); SELECT nextval('postroom_sequence'), version FROM postroom_version; ROLLBACK"); err != nil {
		t.Error(err)
	}
}
