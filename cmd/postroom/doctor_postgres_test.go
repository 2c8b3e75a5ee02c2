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

// postgresPatient is a fresh database with tables of an owner, and the URL of a
// role that has exactly the printed grants.
func postgresPatient(t *testing.T, server string) (admin *sql.DB, app string, names *strings.Replacer) {
	t.Helper()
	db := freshOnPostgres(t, server)
	must(t, "migrate", "--db", db)
	admin = inStore(t, db).db
	role := "app_" + strings.ToLower(rand.Text())
	other := "other_" + strings.ToLower(rand.Text())
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.User = url.User(role)
	for _, s := range []string{"CREATE ROLE " + role + " LOGIN", "CREATE ROLE " + other, must(t, "schema", "--db", db, "--grants", role)} {
		if _, err := admin.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	t.Cleanup(func() { dropRoles(t, db, role, other) })
	return admin, u.String(), strings.NewReplacer("{app}", role, "{other}", other, "{db}", name)
}

var postgresAilments = []ailment{
	{"synchronous_commit of the role", []string{"ALTER ROLE {app} SET synchronous_commit = off"}, "durability.synchronous_commit", doctor.Fail, []string{"off, set for role {app}"}, nil},
	{"synchronous_commit of the database", []string{"ALTER DATABASE {db} SET synchronous_commit = off"}, "durability.synchronous_commit", doctor.Fail, []string{"off, set for database {db}"}, nil},
	{"synchronous_commit of the role in the database", []string{"ALTER ROLE {app} IN DATABASE {db} SET synchronous_commit = off"}, "durability.synchronous_commit", doctor.Fail, []string{"set for role {app} in database {db}"}, nil},
	{"synchronous_commit of the database behind one of the role", []string{"ALTER DATABASE {db} SET synchronous_commit = off", "ALTER ROLE {app} SET synchronous_commit = on"}, "durability.synchronous_commit", doctor.Fail, []string{"off, set for all roles in database {db}"}, nil},
	{"synchronous_commit of another role that writes", []string{"GRANT INSERT ON postroom_message TO {other}", "ALTER ROLE {other} SET synchronous_commit = off"}, "durability.synchronous_commit", doctor.Fail, []string{"off, set for role {other}"}, nil},
	{"an unlogged table", []string{"ALTER TABLE postroom_total SET UNLOGGED"}, "durability.unlogged", doctor.Fail, []string{"postroom_total"}, nil},
	{"read-only transactions", []string{"ALTER ROLE {app} SET default_transaction_read_only = on"}, "server.writable", doctor.Fail, []string{"set for role {app}"}, nil},
	{"another isolation", []string{"ALTER DATABASE {db} SET default_transaction_isolation = 'repeatable read'"}, "server.isolation", doctor.Warn, []string{"repeatable read"}, nil},
	{"a limit of connections", []string{"ALTER ROLE {app} CONNECTION LIMIT 5"}, "server.connections", doctor.Fail, []string{"the limit of role {app} is 5"}, nil},

	{"an index dropped", []string{"DROP INDEX postroom_work_ready"}, "schema.indexes", doctor.Warn, []string{"postroom_work_ready is missing", "CREATE INDEX"}, nil},
	{"an index that is invalid", []string{"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'postroom_outbox_work_next'::regclass"}, "schema.indexes", doctor.Warn, []string{"postroom_outbox_work_next is invalid"}, nil},
	{"an index on other columns", []string{"DROP INDEX postroom_lane_vacant", "CREATE INDEX postroom_lane_vacant ON postroom_lane (grp)"}, "schema.indexes", doctor.Warn, []string{"postroom_lane_vacant is on (grp), and should be on (consumer, grp)"}, nil},
	{"an index left over", []string{"CREATE INDEX postroom_work_ready_ccnew ON postroom_work (seq)", "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'postroom_work_ready_ccnew'::regclass"}, "schema.indexes", doctor.Warn, []string{"postroom_work_ready_ccnew is invalid and of no use"}, nil},
	{"the deduplication dropped", []string{"ALTER TABLE postroom_message DROP CONSTRAINT postroom_message_consumer_source_id_key"}, "schema.indexes", doctor.Fail, []string{"the unique key (consumer, source, id) is missing"}, nil},
	{"the deduplication for some rows only", []string{"ALTER TABLE postroom_message DROP CONSTRAINT postroom_message_consumer_source_id_key", "CREATE UNIQUE INDEX partly ON postroom_message (consumer, source, id) WHERE seq > 5"}, "schema.indexes", doctor.Fail, []string{"the unique key"}, nil},

	{"a right too many", []string{"GRANT TRUNCATE, TRIGGER ON postroom_message TO {app}"}, "grants.tables", doctor.Warn, []string{"TRIGGER, TRUNCATE on postroom_message, by way of {app}"}, nil},
	{"a right on the versions", []string{"GRANT INSERT ON postroom_version TO PUBLIC"}, "grants.tables", doctor.Warn, []string{"INSERT on postroom_version, by way of PUBLIC"}, nil},
	{"a right on the sequence", []string{"GRANT UPDATE ON SEQUENCE postroom_outbox_sequence TO {app}"}, "grants.tables", doctor.Warn, []string{"UPDATE on postroom_outbox_sequence"}, nil},
	{"a right to pass on", []string{"GRANT SELECT ON postroom_work TO {app} WITH GRANT OPTION"}, "grants.tables", doctor.Warn, []string{"GRANT OPTION FOR SELECT on postroom_work"}, nil},
	{"a right by way of a group", []string{"GRANT {other} TO {app}", "GRANT TRUNCATE ON postroom_done TO {other}"}, "grants.tables", doctor.Warn, []string{"by way of {other}"}, nil},
	{"a right too few", []string{"REVOKE UPDATE, DELETE ON postroom_lane FROM {app}"}, "grants.tables", doctor.Fail, []string{"UPDATE, DELETE on postroom_lane is missing"}, nil},
	{"a sequence that can't be used", []string{"REVOKE USAGE ON SEQUENCE postroom_sequence FROM {app}"}, "grants.tables", doctor.Fail, []string{"USAGE on postroom_sequence is missing"}, nil},
	{"an owner", []string{"ALTER TABLE postroom_audit OWNER TO {app}"}, "grants.tables", doctor.Warn, []string{"owned by way of {app}, as postroom_audit", "postroom schema"}, []string{"ALTER TABLE postroom_audit OWNER TO CURRENT_USER", "REVOKE ALL ON postroom_audit FROM {app}", "GRANT SELECT, INSERT, UPDATE, DELETE ON postroom_audit TO {app}"}},
	{"the right to create in the schema", []string{"GRANT CREATE ON SCHEMA public TO {app}"}, "grants.role", doctor.Warn, []string{"CREATE on SCHEMA public, by way of {app}"}, nil},
	{"everybody's right to create in the schema", []string{"GRANT CREATE ON SCHEMA public TO PUBLIC"}, "grants.role", doctor.Warn, []string{"by way of PUBLIC"}, nil},
	{"the right to create in the database", []string{"GRANT CREATE ON DATABASE {db} TO {app}"}, "grants.role", doctor.Warn, []string{"CREATE on DATABASE {db}"}, nil},
	{"the right to create databases", []string{"ALTER ROLE {app} CREATEDB CREATEROLE"}, "grants.role", doctor.Warn, []string{"CREATEROLE"}, nil},
	{"a role of the server's", []string{"GRANT pg_write_all_data TO {app}"}, "grants.role", doctor.Warn, []string{"pg_write_all_data"}, nil},
	{"a superuser to become", []string{"ALTER ROLE {other} SUPERUSER", "GRANT {other} TO {app}"}, "grants.role", doctor.Warn, []string{"{app} is a member of {other}"}, []string{"REVOKE {other} FROM {app}", "ALTER ROLE {other} NOSUPERUSER"}},
	{"no right to read", []string{"REVOKE ALL ON postroom_version FROM {app}"}, "schema.version", doctor.Fail, []string{"inbox: the role may not read the tables", "postroom schema"}, []string{"GRANT SELECT ON postroom_version TO {app}"}},
	{"no way into the schema", []string{"REVOKE ALL ON SCHEMA public FROM PUBLIC"}, "schema.version", doctor.Fail, []string{"no tables"}, []string{"GRANT USAGE ON SCHEMA public TO PUBLIC"}},
	{"a superuser", []string{"ALTER ROLE {app} SUPERUSER"}, "grants.role", doctor.Warn, []string{"superuser"}, []string{"ALTER ROLE {app} NOSUPERUSER"}},

	{"autovacuum off for a table", []string{"ALTER TABLE postroom_work SET (autovacuum_enabled = off)"}, "vacuum.autovacuum", doctor.Warn, []string{"postroom_work has autovacuum_enabled=off"}, nil},
}

func TestWhatIsWrongWithPostgreSQLIsSeenAndMended(t *testing.T) {
	for _, server := range []string{"POSTGRES", "POSTGRES18"} {
		t.Run(server, func(t *testing.T) {
			admin, app, names := postgresPatient(t, service(t, server))
			if got := call(t, "doctor", "--strict", "--db", app); got.status != exitOK {
				t.Fatalf("a role with exactly the printed grants: %s", got.out)
			}
			suffer(t, admin, app, names, postgresAilments)
		})
	}
}

func TestASettingOfThePostgreSQLConnectionIsSeen(t *testing.T) {
	db := freshPostgres(t)
	must(t, "migrate", "--db", db)
	examine(t, db+"&options=-csynchronous_commit%3Doff").find(t, "durability.synchronous_commit", doctor.Fail, "set by the connection", "PGOPTIONS")
	examine(t, db+"&options=-csynchronous_commit%3Dlocal").find(t, "durability.synchronous_commit", doctor.OK)
}

func TestAPostgreSQLTransactionThatStaysOpenIsSeen(t *testing.T) {
	admin, app, _ := postgresPatient(t, service(t, "POSTGRES"))
	holdTransaction(t, admin, "")
	var pid string
	if err := admin.QueryRowContext(t.Context(), "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	db := strings.Replace(app, app[strings.Index(app, "//")+2:strings.Index(app, "@")], "postgres", 1)
	impatient := func(p *doctor.Patient) { p.LongTransaction = time.Microsecond }
	examineWith(t, db, impatient).find(t, "vacuum.transactions", doctor.Warn, "idle in transaction", "pg_terminate_backend("+pid+")")
	examineWith(t, app, impatient).find(t, "vacuum.transactions", doctor.Skip, "pg_read_all_stats")
}

func TestWhatIsWrongWithAWholePostgreSQLServerIsSeenAndMended(t *testing.T) {
	server := ownServer(t, "POSTGRES", "-c", "max_prepared_transactions=2")
	admin, app, names := postgresPatient(t, server)
	suffer(t, admin, app, names, []ailment{
		{"fsync", []string{"ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"}, "durability.fsync", doctor.Fail, []string{"off, from the configuration file"}, nil},
		{"full_page_writes", []string{"ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()"}, "durability.full_page_writes", doctor.Fail, []string{"off"}, nil},
		{"synchronous_commit", []string{"ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()"}, "durability.synchronous_commit", doctor.Fail, []string{"off, from the configuration file"}, nil},
		{"standbys that are not waited for", []string{"ALTER ROLE {app} SET synchronous_commit = local", "SET synchronous_commit = local", "ALTER SYSTEM SET synchronous_standby_names = 'x'", "SELECT pg_reload_conf()"}, "durability.synchronous_commit", doctor.Warn, []string{"local"}, []string{"SET synchronous_commit = local", "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()", "ALTER ROLE {app} RESET synchronous_commit"}},
		{"autovacuum", []string{"ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()"}, "vacuum.autovacuum", doctor.Warn, []string{"autovacuum is off"}, nil},
		{"a slot that nobody reads", []string{"SELECT pg_create_physical_replication_slot('left_over', true)"}, "vacuum.replication_slots", doctor.Warn, []string{"left_over", "pg_drop_replication_slot('left_over')"}, []string{"SELECT pg_drop_replication_slot('left_over')"}},
	})
	if _, err := admin.ExecContext(t.Context(), "BEGIN; SELECT 1; PREPARE TRANSACTION 'left over'"); err != nil {
		t.Fatal(err)
	}
	res := examineWith(t, app, func(p *doctor.Patient) { p.LongTransaction = time.Microsecond })
	res.find(t, "vacuum.prepared_transactions", doctor.Warn, "left over", "ROLLBACK PREPARED 'left over';")
	if _, err := admin.ExecContext(t.Context(), "ROLLBACK PREPARED 'left over'"); err != nil {
		t.Error(err)
	}
}

func TestAPoolerThatLosesPreparedStatementsIsSeen(t *testing.T) {
	pooler := service(t, "PGBOUNCER")
	fresh, err := url.Parse(freshPostgres(t))
	if err != nil {
		t.Fatal(err)
	}
	must(t, "migrate", "--db", fresh.String())
	u, err := url.Parse(pooler)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = fresh.Path
	res := examine(t, u.String())
	res.find(t, "server.prepared", doctor.Warn, "PgBouncer", "max_prepared_statements", "default_query_exec_mode=cache_describe")
	if len(res.bad("")) != 2 { // and the superuser
		t.Errorf("%s", res.text())
	}
	examine(t, u.String()+"&default_query_exec_mode=cache_describe").find(t, "server.prepared", doctor.OK, "pooler")
	examine(t, fresh.String()).find(t, "server.prepared", doctor.OK)
}
