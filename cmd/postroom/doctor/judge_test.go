package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/sqlstore"
	dialect "github.com/postroom/postroom/sqlstore/mysql"
	pg "github.com/postroom/postroom/sqlstore/postgres"
	lite "github.com/postroom/postroom/sqlstore/sqlite"
)

// Servers that can't be had here: what they would answer is judged.
func TestVersionsThatCannotBeUsedFail(t *testing.T) {
	my := &Patient{Dialect: dialect.Dialect}
	for version, want := range map[string]Severity{
		"8.0.36": OK, "8.4.1": OK, "10.6.1-MariaDB": OK, "11.4.2-MariaDB-log": OK,
		"5.7.44": Fail, "10.5.9-MariaDB": Fail, "8.0.11-TiDB-v7.5.0": Fail,
	} {
		if got := judgeMySQLVersion(my, version); got[0].severity != want {
			t.Errorf("%s: %+v, want %s", version, got, want)
		}
	}
	for version, want := range map[string]Severity{
		"3.41.2": Fail, "3.42.0": Fail, "3.45.0": Fail, "3.50.6": Fail, "3.50.7": OK,
		"3.51.2": Fail, "3.51.3": OK, "3.52.0": OK, "4.0.0": OK, "": Fail,
	} {
		if got := judgeSQLiteVersion(version); got[0].severity != want {
			t.Errorf("SQLite %s: %+v, want %s", version, got, want)
		}
	}
	if got := judgePostgresVersion(130015, "13.15"); got[0].severity != Fail {
		t.Errorf("%+v", got)
	}
	if got := judgePostgresVersion(140000, "14.0"); got[0].severity != OK {
		t.Errorf("%+v", got)
	}
}

func TestFileSystemsOfANetworkFail(t *testing.T) {
	for kind, want := range map[string]Severity{"nfs": Fail, "cifs": Fail, "fuse": Warn, "tmpfs": Warn, "ext4": OK, "": Skip} {
		if got := judgeFilesystem(kind); got[0].severity != want {
			t.Errorf("%s: %+v, want %s", kind, got, want)
		}
	}
}

func TestALockWaitMattersMoreOnMySQL(t *testing.T) {
	for _, c := range []struct {
		maria   bool
		seconds int
		want    Severity
	}{{true, 50, OK}, {true, 0, Warn}, {true, 121, Warn}, {false, 50, Warn}, {false, 10, OK}} {
		if got := judgeLockWait(c.maria, c.seconds); got[0].severity != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestConnectionsInUseAreCounted(t *testing.T) {
	server := []limit{{"max_connections", "100", "SET %d"}, {"the limit of role app", "-1", ""}}
	if got := judgeConnections(13, 87, server); got[0].severity != OK {
		t.Errorf("%+v", got)
	}
	if got := judgeConnections(13, 88, server); got[0].severity != Warn || got[0].mend != "SET 114" {
		t.Errorf("%+v", got)
	}
	if got := judgeConnections(101, 1, server); got[0].severity != Fail {
		t.Errorf("%+v", got)
	}
}

// MySQL 8 writes its grants another way than MariaDB.
func TestGrantsOfMySQLAreRead(t *testing.T) {
	need := map[string][]string{"postroom_work": {"SELECT", "INSERT", "UPDATE", "DELETE"}}
	p := &Patient{Dialect: dialect.Dialect, Prefix: "postroom"}
	for line, want := range map[string]string{
		"GRANT USAGE ON *.* TO `app`@`%`":                                                          "",
		"GRANT USAGE ON *.* TO `app`@`%` IDENTIFIED BY PASSWORD '*94BDCEBE19083CE2'":               "",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON `shop`.`postroom_work` TO `app`@`%`":              "",
		"GRANT SELECT, DROP ON `shop`.`postroom_work` TO `app`@`%`":                                "REVOKE DROP ON `shop`.`postroom_work` FROM `app`@`%`;",
		"GRANT DROP ON `shop`.`orders` TO `app`@`%`":                                               "",
		"GRANT DROP ON `sh%`.* TO `app`@`%`":                                                       "REVOKE DROP ON `sh%`.* FROM `app`@`%`;",
		"GRANT DROP ON `sho_`.* TO `app`@`%`":                                                      "REVOKE DROP ON `sho_`.* FROM `app`@`%`;",
		"GRANT DROP ON `sho\\_`.* TO `app`@`%`":                                                    "",
		"GRANT DROP ON `other`.* TO `app`@`%`":                                                     "",
		"GRANT SELECT, EXECUTE ON `shop`.* TO `app`@`%`":                                           "",
		"GRANT INDEX, SELECT, CREATE ON `shop`.* TO `app`@`%`":                                     "REVOKE CREATE, INDEX ON `shop`.* FROM `app`@`%`;",
		"GRANT SELECT (`id`, `n`), REFERENCES (`id`) ON `shop`.`postroom_work` TO `app`@`%`":       "REVOKE REFERENCES ON `shop`.`postroom_work` FROM `app`@`%`;",
		"GRANT BACKUP_ADMIN,SYSTEM_VARIABLES_ADMIN ON *.* TO `root`@`localhost` WITH GRANT OPTION": p.separateUser(),
		"GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION":                             "",
		"GRANT `writer`@`%` TO `app`@`%`":                                                          "",
	} {
		got := judgeMySQLGrants([]string{line}, need, "shop", p)
		switch {
		case want == "" && got != nil, want != "" && (len(got) != 1 || got[0].mend != want || got[0].severity != Warn):
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

type coded string

func (c coded) Error() string    { return "code " + string(c) }
func (c coded) SQLState() string { return string(c) }

func TestWhatARoleMayNotSeeIsSkippedAndAllElseFails(t *testing.T) {
	p := &Patient{database: &postgres, tables: true}
	for _, c := range []struct {
		err  error
		want Severity
	}{{fmt.Errorf("look: %w", coded("42501")), Skip}, {coded("XX000"), Fail}, {errors.New("broken"), Fail}, {nil, OK}} {
		got := p.run(t.Context(), check{look: look(fine("fine"), c.err)})
		if last := got[len(got)-1]; last.severity != c.want {
			t.Errorf("%v: %+v, want %s", c.err, got, c.want)
		}
	}
	if !mysqlRefused(fmt.Errorf("look: %w", errors.New("Error 1227 (42000): Access denied"))) || mysqlRefused(errors.New("Error 1064 (42000): syntax")) {
		t.Error("numbers of MySQL's errors are mixed up")
	}
}

func TestALayoutIsReadOffTheSchema(t *testing.T) {
	l := readLayout("-- x\n\nCREATE TABLE IF NOT EXISTS \"s\".\"p_a\" (\n    seq bigint PRIMARY KEY,\n    UNIQUE (x, y)\n); -- a word; on it\n" +
		"CREATE INDEX IF NOT EXISTS p_a_x ON \"s\".\"p_a\" (x) WHERE y = 1;\nCREATE INDEX IF NOT EXISTS p_a_y ON \"s\".\"p_a\" (y);\n" +
		"CREATE TABLE `p_b` (\n    PRIMARY KEY (x),\n    KEY z (y, x)\n) ENGINE = InnoDB;\nDROP INDEX p_a_y;\nCREATE OR REPLACE VIEW \"s\".\"p_v\" AS\nSELECT 1;\n")
	if got := sorted(l.relations); !slices.Equal(got, []string{"p_a", "p_b", "p_v"}) {
		t.Errorf("%v", got)
	}
	var got []string
	for _, i := range l.indexes {
		got = append(got, i.create)
	}
	want := []string{
		`ALTER TABLE "s"."p_a" ADD UNIQUE (x, y);`, `CREATE INDEX IF NOT EXISTS p_a_x ON "s"."p_a" (x) WHERE y = 1;`,
		"ALTER TABLE `p_b` ADD PRIMARY KEY (x);", "ALTER TABLE `p_b` ADD KEY z (y, x);",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// look is a check that sees what it is told to.
func look(results []result, err error) func(context.Context, *Patient) ([]result, error) {
	return func(context.Context, *Patient) ([]result, error) { return results, err }
}

func TestAGroupOfServersThatAllWriteIsSeen(t *testing.T) {
	for name, value := range map[string]string{"wsrep_on": "ON", "group_replication_group_name": "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"} {
		got, err := mysqlCluster(t.Context(), &Patient{variables: map[string]string{name: value}})
		if err != nil || got[0].severity != Warn {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := mysqlCluster(t.Context(), &Patient{variables: map[string]string{"wsrep_on": "OFF"}}); err != nil || got[0].severity != OK {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnOffsetIsBelievedBeyondHalfARoundTrip(t *testing.T) {
	for _, c := range []struct {
		offset, trip time.Duration
		want         Severity
	}{
		{time.Millisecond, time.Millisecond, OK},
		{1100 * time.Millisecond, time.Millisecond, Warn},
		{-1100 * time.Millisecond, time.Millisecond, Warn},
		{time.Second, 10 * time.Millisecond, OK},
		{0, 101 * time.Millisecond, Warn},
	} {
		if got := judgeClock(c.offset, c.trip); got[0].severity != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if got := judgeClock(1020*time.Millisecond, 50*time.Millisecond); got[0].severity != OK {
		t.Errorf("%+v", got)
	}
}

// What the parser does not understand would be missed in silence.
func TestALayoutHasAllThatEachSchemaCreates(t *testing.T) {
	for _, d := range []*sqlstore.Dialect{lite.Dialect, pg.Dialect, dialect.Dialect} {
		store, err := sqlstore.New(nil, d, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := store.Schema()
		if err != nil {
			t.Fatal(err)
		}
		l := readLayout(text)
		indexes := 0
		for _, i := range l.indexes {
			if strings.HasPrefix(i.create, "CREATE") {
				indexes++
			}
		}
		if want := strings.Count(text, "CREATE INDEX") + strings.Count(text, "CREATE UNIQUE INDEX"); indexes != want {
			t.Errorf("%s: %d indexes, want %d", d.Name, indexes, want)
		}
		want := 20
		if d == pg.Dialect {
			want += 2 // claims
		}
		if len(l.relations) != want {
			t.Errorf("%s: %d tables, views and sequences, want %d", d.Name, len(l.relations), want)
		}
	}
}
