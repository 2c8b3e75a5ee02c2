package main

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/cmd/postroom/doctor"
)

// mysqlPatient is a fresh database with tables, and the URL of a user that has
// exactly the printed grants.
func mysqlPatient(t *testing.T, server string) (admin *sql.DB, app string, names *strings.Replacer) {
	t.Helper()
	db := freshOnMySQL(t, server)
	must(t, "migrate", "--db", db)
	admin = inStore(t, db+"?multiStatements=true").db
	user := "app_" + strings.ToLower(rand.Text())
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"CREATE USER " + user + " IDENTIFIED BY 's3cret'", must(t, "schema", "--db", db, "--grants", user)} {
		if _, err := admin.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	t.Cleanup(func() { dropUser(t, db, user) })
	u.User = url.UserPassword(user, "s3cret")
	return admin, u.String(), strings.NewReplacer("{app}", "`"+user+"`", "{db}", "`"+strings.TrimPrefix(u.Path, "/")+"`")
}

func TestWhatIsWrongWithMariaDBIsSeenAndMended(t *testing.T) {
	// Durable, as the shared server of the tests is not.
	server := ownServer(t, "MARIADB", "--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1", "--log-bin", "--sync-binlog=1", "--binlog-format=MIXED", "--event-scheduler=OFF")
	admin, app, names := mysqlPatient(t, server)
	if got := call(t, "doctor", "--strict", "--db", app); got.status != exitOK {
		t.Fatalf("a user with exactly the printed grants: %s", got.out)
	}
	suffer(t, admin, app, names, []ailment{
		{"innodb_flush_log_at_trx_commit", []string{"SET GLOBAL innodb_flush_log_at_trx_commit = 2"}, "durability.innodb_flush_log_at_trx_commit", doctor.Fail, []string{"2", "SET GLOBAL innodb_flush_log_at_trx_commit = 1;"}, []string{"SET GLOBAL innodb_flush_log_at_trx_commit = 1"}},
		{"sync_binlog", []string{"SET GLOBAL sync_binlog = 0"}, "durability.sync_binlog", doctor.Warn, []string{"0"}, []string{"SET GLOBAL sync_binlog = 1"}},
		{"binlog_format", []string{"SET GLOBAL binlog_format = STATEMENT"}, "server.binlog_format", doctor.Fail, []string{"STATEMENT", "ROW"}, []string{"SET GLOBAL binlog_format = ROW"}},
		{"read_only", []string{"SET GLOBAL read_only = ON"}, "server.writable", doctor.Fail, []string{"read_only is ON", "primary"}, []string{"SET GLOBAL read_only = OFF"}},
		{"isolation", []string{"SET GLOBAL tx_isolation = 'SERIALIZABLE'"}, "server.isolation", doctor.Warn, []string{"SERIALIZABLE"}, []string{"SET GLOBAL tx_isolation = 'REPEATABLE-READ'"}},
		{"max_allowed_packet that holds no payload", []string{"SET GLOBAL max_allowed_packet = 1048576"}, "server.packet", doctor.Warn, []string{"1048576 bytes: payloads up to 786432"}, []string{"SET GLOBAL max_allowed_packet = 16777216"}},
		{"max_allowed_packet that holds no batch", []string{"SET GLOBAL max_allowed_packet = 65536"}, "server.packet", doctor.Fail, []string{"65536"}, []string{"SET GLOBAL max_allowed_packet = 16777216"}},
		{"innodb_lock_wait_timeout", []string{"SET GLOBAL innodb_lock_wait_timeout = 1000"}, "server.lock_wait", doctor.Warn, []string{"1000 s", "URL"}, []string{"SET GLOBAL innodb_lock_wait_timeout = 50"}},
		{"max_user_connections", []string{"GRANT USAGE ON *.* TO {app} WITH MAX_USER_CONNECTIONS 6"}, "server.connections", doctor.Fail, []string{"max_user_connections is 6"}, []string{"GRANT USAGE ON *.* TO {app} WITH MAX_USER_CONNECTIONS 0"}},

		{"another engine", []string{"ALTER TABLE postroom_version ENGINE = MyISAM"}, "durability.engine", doctor.Fail, []string{"`postroom_version` is kept by MyISAM"}, nil},
		{"an index dropped", []string{"DROP INDEX shelf ON postroom_outbox_work"}, "schema.indexes", doctor.Warn, []string{"postroom_outbox_work: index shelf is missing"}, nil},
		{"an index on other columns", []string{"ALTER TABLE postroom_done DROP KEY done_at, ADD KEY done_at (done_at)"}, "schema.indexes", doctor.Warn, []string{"done_at is on (done_at), and should be on (consumer,"}, nil},
		{"the deduplication dropped", []string{"ALTER TABLE postroom_message DROP PRIMARY KEY"}, "schema.indexes", doctor.Fail, []string{"the unique key (consumer, source, id) is missing"}, nil},

		{"a right too many", []string{"GRANT DROP, ALTER ON postroom_message TO {app}"}, "grants.tables", doctor.Warn, []string{"ALTER, DROP on {db}.`postroom_message`"}, nil},
		{"a right on the versions", []string{"GRANT DELETE ON postroom_version TO {app}"}, "grants.tables", doctor.Warn, []string{"DELETE on {db}.`postroom_version`"}, nil},
		{"a right to create", []string{"GRANT SELECT, CREATE ON {db}.* TO {app}"}, "grants.tables", doctor.Warn, []string{"CREATE on {db}.*"}, []string{"REVOKE SELECT, CREATE ON {db}.* FROM {app}"}},
		{"a right to pass on", []string{"GRANT SELECT ON postroom_work TO {app} WITH GRANT OPTION"}, "grants.tables", doctor.Warn, []string{"GRANT OPTION on {db}.`postroom_work`"}, nil},
		{"a right on the whole server", []string{"GRANT FILE ON *.* TO {app}"}, "grants.tables", doctor.Warn, []string{"FILE on *.*", "postroom schema"}, []string{"REVOKE FILE ON *.* FROM {app}"}},
		{"all rights", []string{"GRANT ALL ON {db}.* TO {app}"}, "grants.tables", doctor.Warn, []string{"ALL PRIVILEGES on {db}.*"}, []string{"REVOKE ALL ON {db}.* FROM {app}"}},
		{"a right by way of a role", []string{"CREATE ROLE doctor_test", "GRANT TRIGGER ON {db}.* TO doctor_test", "GRANT doctor_test TO {app}", "SET DEFAULT ROLE doctor_test FOR {app}"}, "grants.tables", doctor.Warn, []string{"TRIGGER on {db}.*", "`doctor_test`"}, []string{"DROP ROLE doctor_test"}},
		{"no right to read", []string{"REVOKE SELECT ON postroom_version FROM {app}"}, "schema.version", doctor.Fail, []string{"the role may not read the tables", "postroom schema"}, []string{"GRANT SELECT ON postroom_version TO {app}"}},
		{"a right too few", []string{"REVOKE DELETE ON postroom_lane FROM {app}"}, "grants.tables", doctor.Fail, []string{"DELETE on `postroom_lane` is missing"}, nil},
	})
	t.Run("rows of the program's own tables are not our business", func(t *testing.T) {
		if _, err := admin.ExecContext(t.Context(), names.Replace("GRANT SELECT, INSERT, UPDATE, DELETE ON {db}.* TO {app}")); err != nil {
			t.Fatal(err)
		}
		examine(t, app).find(t, "grants.tables", doctor.OK)
	})
	t.Run("a transaction that stays open", func(t *testing.T) {
		holdTransaction(t, admin, "INSERT INTO postroom_total (consumer, topic, name, n) VALUES ('c', 't', 'n', 1)")
		var id string
		if err := admin.QueryRowContext(t.Context(), "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx").Scan(&id); err != nil {
			t.Fatal(err)
		}
		impatient := func(p *doctor.Patient) { p.LongTransaction = time.Microsecond }
		examineWith(t, app, impatient).find(t, "vacuum.transactions", doctor.Skip, "PROCESS")
		if _, err := admin.ExecContext(t.Context(), names.Replace("GRANT PROCESS ON *.* TO {app}")); err != nil {
			t.Fatal(err)
		}
		res := examineWith(t, app, impatient)
		res.find(t, "vacuum.transactions", doctor.Warn, "connection "+id, "KILL "+id)
		res.find(t, "grants.tables", doctor.OK)
	})
}

// scripts/services starts it without what keeps data over a crash of the machine.
func TestAMariaDBThatIsNotDurableFails(t *testing.T) {
	res := examine(t, freshOnMySQL(t, ownServer(t, "MARIADB", "--innodb-flush-method=nosync")))
	res.find(t, "durability.innodb_flush_log_at_trx_commit", doctor.Fail, "2")
	res.find(t, "durability.innodb_doublewrite", doctor.Fail, "OFF", "[mysqld]")
	res.find(t, "durability.innodb_flush_method", doctor.Fail, "nosync", "restart")
	res.find(t, "durability.sync_binlog", doctor.OK, "no binary log")
	res.find(t, "grants.tables", doctor.Skip)
}

// Where a MySQL is given, no more is known of its settings than that it can be
// looked at.
func TestAMySQLUserWithThePrintedGrantsHasNoneTooMany(t *testing.T) {
	admin, app, names := mysqlPatient(t, service(t, "MYSQL"))
	res := examine(t, app)
	for _, check := range []string{"schema.version", "schema.tables", "schema.indexes", "server.version", "server.writable", "durability.engine", "grants.tables", "clock.offset"} {
		res.find(t, check, doctor.OK)
	}
	if _, err := admin.ExecContext(t.Context(), names.Replace("GRANT DROP ON postroom_message TO {app}")); err != nil {
		t.Fatal(err)
	}
	examine(t, app).find(t, "grants.tables", doctor.Warn, "DROP")
}
