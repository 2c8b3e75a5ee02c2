package tsql_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlserver"
	"github.com/postroom/postroom/tests/tsql"
)

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// fill does what a store does with its names.
func fill(text string) string {
	text = strings.NewReplacer("{{prefix}}", "postroom", "{{wait}}", "5000", "{role}", `"role"`).Replace(text)
	return placeholder.ReplaceAllString(text, `"postroom_$1"`)
}

// statements are those of the dialect by name, filled.
func statements() map[string]string {
	named := map[string]string{}
	for _, part := range strings.Split("\n"+sqlserver.Dialect.Statements, "\n-- name: ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		named[name] = fill(body)
	}
	return named
}

func TestEachStatementIsTransactSQL(t *testing.T) {
	for name, text := range statements() {
		if err := tsql.Check(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// executed finds what a statement runs as text, because it must be a batch of its
// own.
var executed = regexp.MustCompile(`(?s)EXEC\(N'((?:[^']|'')*)'\)`)

func TestEachMigrationIsTransactSQL(t *testing.T) {
	files, err := fs.Glob(sqlserver.Dialect.Migrations, "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	views := 0
	for _, file := range files {
		text, err := fs.ReadFile(sqlserver.Dialect.Migrations, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range strings.Split(fill(string(text)), ";\n") {
			if err := tsql.Check(statement); err != nil {
				t.Errorf("%s: %v in\n%s", file, err, statement)
			}
			for _, inner := range executed.FindAllStringSubmatch(statement, -1) {
				views++
				if err := tsql.Check(strings.ReplaceAll(inner[1], "''", "'")); err != nil {
					t.Errorf("%s: %v in\n%s", file, err, inner[1])
				}
			}
		}
	}
	if views != 1 {
		t.Errorf("found %d views", views)
	}
}

// The script that people run by hand is one batch.
func TestTheSchemaIsTransactSQL(t *testing.T) {
	store, err := sqlstore.Open(nil, sqlserver.Dialect, sqlstore.Options{Schema: "Orders", Prefix: "inbox"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := store.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if err := tsql.Check(text); err != nil {
		t.Error(err)
	}
	if strings.Contains(text, "@p") {
		t.Error("the schema has parameters")
	}
	for _, table := range []string{`"Orders"."inbox_message"`, `"Orders"."inbox_outbox_message"`} {
		if !strings.Contains(text, "CREATE TABLE "+table) {
			t.Errorf("the schema lacks %s", table)
		}
	}
	grants, err := store.Grants("app")
	if err == nil {
		err = tsql.Check(grants)
	}
	if err != nil {
		t.Error(err)
	}
}

// A statement that is broken in any of these ways must not pass.
func TestABrokenStatementIsFound(t *testing.T) {
	named := statements()
	for _, c := range []struct{ name, old, broken string }{
		{"clock", "SELECT", "SELEC"},
		{"clock", "SYSUTCDATETIME())", "SYSUTCDATETIME()"},
		{"claim", "UPDATE w", "UPDTE w"},
		{"claim", "UPDLOCK", "UPDLOK"},
		{"claim", "OUTPUT inserted", "OUTPUT , inserted"},
		{"claim", "FROM \"postroom_work\" w", "FRM \"postroom_work\" w"},
		{"claimed", "ON m.seq = w.seq", "ON"},
		{"claim", "ON c.seq = w.seq", ""},
		{"claim", "ORDER BY", "ORDER"},
		{"claim", "TOP (@p2)", "LIMIT @p2"},
		{"lock_work", "BIGINT '$[0]'", "'$[0]'"},
		{"lock_work", "ORDER BY w.seq", "ORDER BY w.seq FOR UPDATE SKIP LOCKED"},
		{"insert_message", "END TRY", "END"},
		{"insert_message", "INTO @new", "INTO"},
		{"insert_message", "WHILE @tries > 0", "WHILE @tries >"},
		{"insert_message", "NOT EXISTS", "NOT EXIST"},
		{"insert_work", "i.seq,", "i.seq"},
		{"update_work", "SET topic =", "SET topic"},
		{"delete_work", "DELETE w FROM", "DELETE w FORM"},
		{"lookup", "LEFT JOIN", "LEFT JON"},
		{"list_live", "(@p6 = 1", "@p6 = 1"},
		{"pause", "OUTPUT inserted.topic", "RETURNING topic"},
		{"hold_key", "sp_getapplock", "sp_getaplock"},
		{"hold_key", "END;", ";"},
		{"version", "MAX(version)", "MAX(version"},
		{"grants", `TO "role";`, `T "role";`},
	} {
		text, ok := named[c.name]
		if !ok || !strings.Contains(text, c.old) {
			t.Errorf("%s has no %q to break", c.name, c.old)
			continue
		}
		if tsql.Check(strings.Replace(text, c.old, c.broken, 1)) == nil {
			t.Errorf("%s with %q for %q passed", c.name, c.broken, c.old)
		}
	}
}

func TestStatementsTakeFewParameters(t *testing.T) {
	for name, text := range statements() {
		// The server takes 2,100 at most; a batch of any size is one.
		for _, p := range regexp.MustCompile(`@p(\d+)`).FindAllStringSubmatch(text, -1) {
			if len(p[1]) > 2 {
				t.Errorf("%s has %s", name, p[0])
			}
		}
	}
}
