package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// called is what one call of the program did.
type called struct {
	status   int
	out, err string
}

func call(t *testing.T, args ...string) called {
	t.Helper()
	return callWith(t.Context(), &bytes.Buffer{}, args...)
}

func callWith(ctx context.Context, stderr *bytes.Buffer, args ...string) called {
	var stdout bytes.Buffer
	status := run(ctx, &terminal{out: &stdout, err: stderr}, args)
	return called{status, stdout.String(), stderr.String()}
}

// must calls the program, which must succeed, and gives what it printed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	got := call(t, args...)
	if got.status != exitOK {
		t.Fatalf("%v: exit status %d\n%s%s", args, got.status, got.out, got.err)
	}
	return got.out
}

// golden compares an output with the file that holds the expected one.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("output differs from %s (go test -update accepts it)\n--- want\n%s--- got\n%s", path, want, got)
	}
}

func TestHelpShowsExamplesAndExitStatus(t *testing.T) {
	t.Setenv("POSTROOM_DB", "postgres://app:s3cret@db/shop")
	for name, args := range map[string][]string{
		"help": {"--help"}, "help-schema": {"schema", "--help"}, "help-migrate": {"migrate", "--help"},
		"help-cleanup": {"cleanup", "--help"}, "help-demo": {"demo", "--help"}, "help-stats": {"stats", "--help"},
		"help-outbox-stats": {"outbox", "stats", "--help"}, "help-outbox-list": {"outbox", "list", "--help"},
		"help-doctor": {"doctor", "--help"}, "help-outbox-rewind": {"outbox", "rewind", "--help"},
	} {
		golden(t, name, must(t, args...))
	}
}

func TestWrongUsageExitsWith2AndSaysWhatToDo(t *testing.T) {
	t.Setenv("POSTROOM_DB", "")
	path := "sqlite:" + filepath.Join(t.TempDir(), "box.db")
	must(t, "migrate", "--db", path)
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "expected one of"},
		{[]string{"frobnicate"}, "unexpected argument frobnicate"},
		{[]string{"stats"}, "Give --db or set POSTROOM_DB"},
		{[]string{"stats", "--db", "oracle://app:s3cret@h/shop"}, "use postgres://"},
		{[]string{"stats", "--db", "mysql://app:s3cret@h"}, "name of the database is missing"},
		{[]string{"stats", "--db", "mysql:app"}, "two slashes"},
		{[]string{"stats", "--db", "sqlserver://app:s3cret@h/shop"}, "sqlserver://user@host?database=db"},
		{[]string{"stats", "--db", "sqlserver://app:s3cret@h?database=shop&encrypt=maybe"}, "encrypt"},
		{[]string{"stats", "--db", "mysql://app:s3%cret@h/shop"}, "percent-encode"},
		{[]string{"stats", "--db", "mysql://app:s3cret@h/shop?tls=mine"}, "ssl-ca"},
		{[]string{"stats", "--db", "mysql://app:s3cret@h/shop?parseTime=maybe"}, "maybe"},
		{[]string{"stats", "--db", "mysql://app:s3cret@h/shop?ssl-mode=always"}, "VERIFY_IDENTITY"},
		{[]string{"stats", "--db", "sqlite"}, "use postgres://"},
		{[]string{"stats", "--db", "sqlite:"}, "path of the file is missing"},
		{[]string{"stats", "--db", "postgres://app:s3%cret@h/shop"}, "percent-encode"},
		{[]string{"stats", "--db", "host=h password='s3cret word' user=app"}, "use postgres://"},
		{[]string{"stats", "postgres://app:s3cret@h/shop", "--db", path}, "unexpected argument"},
		{[]string{"stats", "--db", path, "--prefix", "x; drop table"}, "prefix"},
		{[]string{"stats", "--db", path, "--schema", "orders"}, "has no schemas"},
		{[]string{"cleanup", "--db", path}, "--days=N"},
		{[]string{"cleanup", "--db", path, "--days=-1"}, "0 for ever"},
		{[]string{"cleanup", "--db", path, "--days", "1", "--consumer", "A"}, "allowed are a-z"},
		{[]string{"outbox", "rewind", "--db", path}, "what is to be sent again"},
		{[]string{"outbox", "rewind", "--db", path, "--from", "yesterday"}, "--from"},
		{[]string{"outbox", "list", "--db", path, "--limit", "0"}, "--limit"},
		{[]string{"outbox", "list", "--db", path, "--state", "dead", "--overdue", "1m"}, "--overdue"},
		{[]string{"doctor"}, "Give --db or set POSTROOM_DB"},
		{[]string{"doctor", "--db", path, "--connections", "0"}, "--connections"},
		{[]string{"schema"}, "--dialect"},
		{[]string{"schema", "--dialect", "oracle"}, "--dialect"},
		{[]string{"schema", "--dialect", "postgres", "--grants", `a"; drop`}, "role"},
	} {
		got := call(t, c.args...)
		if got.status != exitUsage || !strings.Contains(got.err, c.says) {
			t.Errorf("%q: exit status %d, %q; want %d and %q", c.args, got.status, got.err, exitUsage, c.says)
		}
		if got.out != "" {
			t.Errorf("%q: printed a result: %q", c.args, got.out)
		}
		if strings.Contains(got.err, "s3") || strings.Contains(got.err, "cret word") {
			t.Errorf("%q: the password is in %q", c.args, got.err)
		}
	}
}

func TestPasswordsAreNeverPrinted(t *testing.T) {
	for text, want := range map[string]string{
		"connect to postgres://app:s3cret@db:5432/shop: no":   "connect to postgres://app:xxxxx@db:5432/shop: no",
		"postgres://app:s3@c/ret@db/shop?sslmode=require":     "postgres://app:xxxxx@db/shop?sslmode=require",
		"postgres://db/shop?user=app&password=s3cret&x=1":     "postgres://db/shop?user=app&password=xxxxx&x=1",
		"cannot parse `host=db password=s3cret user=app`: no": "cannot parse `host=db password=xxxxx user=app`: no",
		`host=db password='s3 \'cret' user=app`:               `host=db password=xxxxx user=app`,
		"postgres://db/shop?sslpassword=s3cret":               "postgres://db/shop?sslpassword=xxxxx",
		"mysql://app:s3cret@db/shop?tls=true":                 "mysql://app:xxxxx@db/shop?tls=true",
		"postgres://app@db/shop":                              "postgres://app@db/shop",
		"sqlite:/var/lib/box.db":                              "sqlite:/var/lib/box.db",
	} {
		if got := redact(text); got != want {
			t.Errorf("redact(%q) = %q, want %q", text, got, want)
		}
	}
	// Nobody listens on port 1.
	got := call(t, "stats", "--db", "postgres://app:s3cret@127.0.0.1:1/shop?connect_timeout=1")
	if got.status != exitFailure || strings.Contains(got.err, "s3cret") || !strings.Contains(got.err, "Check the address") {
		t.Errorf("exit status %d, %q", got.status, got.err)
	}
}

func TestVersionNamesTheProgramAndGo(t *testing.T) {
	if got := must(t, "version"); !strings.HasPrefix(got, "postroom ") || !strings.Contains(got, " go1.") {
		t.Errorf("%q", got)
	}
}
