package doctor

import (
	"context"
	"fmt"
	"strings"
)

// A postgresSetting is a setting of this session, and where it comes from.
type postgresSetting struct {
	name, value, source string
	// role and database are quoted.
	role, database string
}

func (p *Patient) postgresSetting(ctx context.Context, name string) (postgresSetting, error) {
	row, err := p.row(ctx, "SELECT setting, source, quote_ident(current_user), quote_ident(current_database()) FROM pg_settings WHERE name = "+literal(name))
	if err != nil {
		return postgresSetting{}, fmt.Errorf("setting %s: %w", name, err)
	}
	return postgresSetting{name, row[0], row[1], row[2], row[3]}, nil
}

// origin says who set it.
func (s postgresSetting) origin() string {
	switch s.source {
	case "user":
		return "set for role " + s.role
	case "database":
		return "set for database " + s.database
	case "database user":
		return "set for role " + s.role + " in database " + s.database
	case "client", "session":
		return "set by the connection"
	}
	return "from the " + s.source
}

// mend gives the statement that sets it right where it was set wrong.
func (s postgresSetting) mend(value string) string {
	switch s.source {
	case "user":
		return fmt.Sprintf("ALTER ROLE %s RESET %s;", s.role, s.name)
	case "database":
		return fmt.Sprintf("ALTER DATABASE %s RESET %s;", s.database, s.name)
	case "database user":
		return fmt.Sprintf("ALTER ROLE %s IN DATABASE %s RESET %s;", s.role, s.database, s.name)
	case "client", "session":
		return "take " + s.name + " out of the connection's URL and of PGOPTIONS"
	case "command line":
		return "take " + s.name + " off the server's command line, and restart it"
	}
	return fmt.Sprintf("ALTER SYSTEM SET %s = %s; SELECT pg_reload_conf();", s.name, value)
}

// postgresSwitch looks at a setting that must be on.
func postgresSwitch(name string) func(context.Context, *Patient) ([]result, error) {
	return func(ctx context.Context, p *Patient) ([]result, error) {
		s, err := p.postgresSetting(ctx, name)
		if err != nil {
			return nil, err
		}
		if s.value != "on" {
			return []result{{Fail, s.value + ", " + s.origin(), s.mend("on")}}, nil
		}
		return fine("on"), nil
	}
}

// synchronous judges a value of synchronous_commit. Where standbys are waited
// for, one that takes over must have all that was acknowledged.
func synchronous(value, standbys string) Severity {
	switch {
	case value == "off":
		return Fail
	case (value == "local" || value == "remote_write") && standbys != "":
		return Warn
	}
	return OK
}

// postgresSynchronousCommit looks at this session, and at what other roles that
// can write messages have set for theirs.
func postgresSynchronousCommit(ctx context.Context, p *Patient) (results []result, err error) {
	standbys, err := p.row(ctx, "SELECT current_setting('synchronous_standby_names')")
	if err != nil {
		return nil, err
	}
	s, err := p.postgresSetting(ctx, "synchronous_commit")
	if err != nil {
		return nil, err
	}
	if severity := synchronous(s.value, standbys[0]); severity != OK {
		results = append(results, result{severity, s.value + ", " + s.origin(), s.mend("on")})
	}
	rows, err := p.rows(ctx, `SELECT coalesce(quote_ident(r.rolname), 'ALL'), coalesce(quote_ident(d.datname), ''), split_part(c, '=', 2)
FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) AS c
LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase
WHERE starts_with(c, 'synchronous_commit=') AND (s.setdatabase = 0 OR d.datname = current_database())
  AND (s.setrole = 0 OR r.rolname <> current_user
       AND coalesce(has_table_privilege(r.oid, to_regclass(`+literal(p.name("message"))+`)::oid, 'INSERT'), true))
ORDER BY 1, 2`)
	if err != nil {
		return results, err
	}
	for _, row := range rows {
		role, database, value := row[0], row[1], row[2]
		severity := synchronous(value, standbys[0])
		if severity == OK || role == "ALL" && s.source == "database" && len(results) > 0 {
			continue // what this session has was told above
		}
		where, mend := "for role "+role, "ALTER ROLE "+role
		if role == "ALL" {
			where = "for all roles"
		}
		if database != "" {
			where += " in database " + database
			mend += " IN DATABASE " + database
		}
		results = append(results, result{severity, fmt.Sprintf("%s, set %s", value, where), mend + " RESET synchronous_commit;"})
	}
	if results == nil {
		results = fine("%s", s.value)
	}
	return results, nil
}

func postgresUnlogged(ctx context.Context, p *Patient) (results []result, err error) {
	rows, err := p.rows(ctx, "SELECT c.oid::regclass FROM pg_class c WHERE c.relkind = 'r' AND c.relpersistence <> 'p' AND "+p.ours()+" ORDER BY c.relname")
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		results = append(results, result{Fail, row[0] + " is unlogged", "ALTER TABLE " + row[0] + " SET LOGGED;"})
	}
	if results == nil {
		results = fine("all tables are logged")
	}
	return results, nil
}

func postgresAutovacuum(ctx context.Context, p *Patient) (results []result, err error) {
	for _, name := range []string{"autovacuum", "track_counts"} {
		s, err := p.postgresSetting(ctx, name)
		if err != nil {
			return results, err
		}
		if s.value != "on" {
			results = append(results, result{Warn, name + " is off, " + s.origin(), s.mend("on")})
		}
	}
	rows, err := p.rows(ctx, `SELECT c.oid::regclass, o FROM pg_class c CROSS JOIN unnest(c.reloptions) AS o
WHERE o ILIKE 'autovacuum_enabled=%' AND lower(split_part(o, '=', 2)) NOT IN ('true', 'on', 'yes', '1') AND `+p.ours()+" ORDER BY c.relname")
	if err != nil {
		return results, err
	}
	for _, row := range rows {
		results = append(results, result{Warn, row[0] + " has " + row[1], "ALTER TABLE " + row[0] + " RESET (autovacuum_enabled);"})
	}
	if results == nil {
		results = fine("on")
	}
	return results, nil
}

func postgresTransactions(ctx context.Context, p *Patient) (results []result, err error) {
	rows, err := p.rows(ctx, fmt.Sprintf(`SELECT pid, coalesce(usename, ''), coalesce(application_name, ''), coalesce(state, ''), round(extract(epoch FROM clock_timestamp() - xact_start))
FROM pg_stat_activity WHERE xact_start < clock_timestamp() - %d * interval '1 microsecond' AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY xact_start LIMIT 10`, p.LongTransaction.Microseconds()))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		who := strings.TrimSpace(row[1] + " " + row[2])
		results = append(results, result{
			Warn, fmt.Sprintf("process %s (%s) is in a transaction since %s s, %s", row[0], who, row[4], row[3]),
			"end it in its program, or SELECT pg_terminate_backend(" + row[0] + ");",
		})
	}
	sees, err := p.row(ctx, "SELECT pg_has_role('pg_read_all_stats', 'USAGE')")
	switch {
	case err != nil:
	case sees[0] != "true":
		results = append(results, skipped("transactions of other roles can't be seen by this one: GRANT pg_read_all_stats to a role for looking, and give doctor that one")...)
	case results == nil:
		results = fine("none is open for more than %s", p.LongTransaction)
	}
	return results, err
}

func postgresPreparedTransactions(ctx context.Context, p *Patient) (results []result, err error) {
	rows, err := p.rows(ctx, fmt.Sprintf(`SELECT gid, database, round(extract(epoch FROM clock_timestamp() - prepared)) FROM pg_prepared_xacts
WHERE prepared < clock_timestamp() - %d * interval '1 microsecond' ORDER BY prepared LIMIT 10`, p.LongTransaction.Microseconds()))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		results = append(results, result{
			Warn, fmt.Sprintf("%s in database %s was prepared %s s ago", row[0], row[1], row[2]),
			"in that database: COMMIT PREPARED " + literal(row[0]) + "; or ROLLBACK PREPARED " + literal(row[0]) + ";",
		})
	}
	if results == nil {
		results = fine("none is left over")
	}
	return results, nil
}

func postgresSlots(ctx context.Context, p *Patient) (results []result, err error) {
	rows, err := p.rows(ctx, `SELECT slot_name, slot_type, coalesce(wal_status, ''), coalesce(pg_size_pretty(
         CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END), 'an unknown size')
FROM pg_replication_slots WHERE NOT active ORDER BY slot_name`)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		results = append(results, result{
			Warn, fmt.Sprintf("%s slot %s is not in use and keeps %s of log (%s)", row[1], row[0], row[3], row[2]),
			"start its reader, or SELECT pg_drop_replication_slot(" + literal(row[0]) + ");",
		})
	}
	if results == nil {
		results = fine("none is idle")
	}
	return results, nil
}
