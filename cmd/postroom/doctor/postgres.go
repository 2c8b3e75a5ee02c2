package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// postgres has its queries without parameters and with texts as results, so that
// they need no prepared statement.
var postgres = database{
	clock:     `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,
	relations: postgresRelations,
	indexes:   postgresIndexes,
	refused:   func(err error) bool { return sqlState(err) == "42501" },
	checks: []check{
		{
			name: "server.version",
			why:  "Older versions lack what the statements need, and are not tested.",
			look: postgresVersion,
		},
		{
			name: "server.writable",
			why:  "Nothing can be received, claimed or settled.",
			look: postgresWritable,
		},
		{
			name: "server.isolation",
			why:  "The store begins its transactions at READ COMMITTED; yours begin at this level, and get ErrRetry where others would go on.",
			look: postgresIsolation,
		},
		{
			name: "server.connections",
			why:  "Workers and callers that get no connection wait, and fail.",
			look: postgresConnections,
		},
		{
			name: "server.prepared",
			why:  "Programs that prepare statements fail now and then: database/sql with pgx does so by default, pgxstore notices and does not.",
			look: postgresPrepared,
		},
		{
			name: "durability.fsync",
			why:  "A crash of the machine can corrupt the database and lose acknowledged messages.",
			look: postgresSwitch("fsync"),
		},
		{
			name: "durability.full_page_writes",
			why:  "A page that was half written when the machine crashed can't be mended.",
			look: postgresSwitch("full_page_writes"),
		},
		{
			name: "durability.synchronous_commit",
			why:  "A crash loses the last moments: messages that were acknowledged, effects that were done.",
			look: postgresSynchronousCommit,
		},
		{
			name:   "durability.unlogged",
			why:    "An unlogged table is emptied after a crash, and is empty on a replica.",
			tables: true, look: postgresUnlogged,
		},
		{
			name:   "grants.role",
			why:    "A program that is tricked into running foreign SQL can do all that its role can.",
			tables: true, look: postgresRole,
		},
		{
			name:   "grants.tables",
			why:    "The program needs what 'postroom schema --grants' prints, and nothing else on these tables.",
			tables: true, look: postgresGrants,
		},
		{
			name:   "vacuum.autovacuum",
			why:    "The table of work changes with every message: without vacuum it grows, and claims get slower and slower.",
			tables: true, look: postgresAutovacuum,
		},
		{
			name: "vacuum.transactions",
			why:  "Vacuum can't remove what an open transaction might still see, so claims get slower; and a message that it took in is held until it ends.",
			look: postgresTransactions,
		},
		{
			name: "vacuum.prepared_transactions",
			why:  "A prepared transaction that nobody ends holds its locks and holds back vacuum, over restarts too.",
			look: postgresPreparedTransactions,
		},
		{
			name: "vacuum.replication_slots",
			why:  "A slot that nobody reads keeps the log until the disk is full, and may hold back vacuum.",
			look: postgresSlots,
		},
	},
}

func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// name gives the quoted name of one of the tables, as a text for to_regclass.
func (p *Patient) name(table string) string {
	name := p.Dialect.Quote(p.Prefix + "_" + table)
	if p.Schema != "" {
		name = p.Dialect.Quote(p.Schema) + "." + name
	}
	return name
}

// ours is the part of a query on pg_class c that selects what lies beside the
// table of versions and has its prefix.
func (p *Patient) ours() string {
	return "c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(" + literal(p.name("version")) + "))" +
		" AND starts_with(c.relname::text, " + literal(p.Prefix+"_") + ")"
}

func postgresRelations(ctx context.Context, p *Patient) (map[string]bool, error) {
	rows, err := p.rows(ctx, "SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'S') AND "+p.ours())
	there := map[string]bool{}
	for _, row := range rows {
		there[row[0]] = true
	}
	return there, err
}

func postgresIndexes(ctx context.Context, p *Patient) ([]index, error) {
	rows, err := p.rows(ctx, `SELECT c.relname, i.relname, x.indisunique, x.indpred IS NOT NULL, x.indisvalid AND x.indisready,
       (SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(x.indkey) WITH ORDINALITY AS k (attnum, n)
        JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum WHERE k.n <= x.indnkeyatts),
       x.indexrelid::regclass
FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid WHERE `+p.ours())
	var found []index
	for _, row := range rows {
		i := index{table: row[0], name: row[1], unique: row[2] == "true", partial: row[3] == "true", columns: strings.Split(row[5], ","), drop: "DROP INDEX CONCURRENTLY " + row[6] + ";"}
		if row[4] != "true" {
			i.broken, i.create = "invalid", "REINDEX INDEX CONCURRENTLY "+row[6]+";"
		}
		found = append(found, i)
	}
	return found, err
}

// postgresOldest is 14.
const postgresOldest = 140000

func postgresVersion(ctx context.Context, p *Patient) ([]result, error) {
	row, err := p.row(ctx, "SELECT current_setting('server_version_num'), current_setting('server_version')")
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(row[0])
	return judgePostgresVersion(number, row[1]), err
}

func judgePostgresVersion(number int, text string) []result {
	if number < postgresOldest {
		return []result{{Fail, "PostgreSQL " + text, "upgrade to PostgreSQL 14 or later"}}
	}
	return fine("PostgreSQL %s", text)
}

func postgresWritable(ctx context.Context, p *Patient) ([]result, error) {
	row, err := p.row(ctx, "SELECT pg_is_in_recovery()")
	if err != nil {
		return nil, err
	}
	if row[0] == "true" {
		return []result{{Fail, "the server is a standby", "connect to the primary: give all hosts in the URL, with target_session_attrs=read-write"}}, nil
	}
	s, err := p.postgresSetting(ctx, "default_transaction_read_only")
	if err != nil {
		return nil, err
	}
	if s.value != "off" {
		return []result{{Fail, "transactions are read-only, " + s.origin(), s.mend("off")}}, nil
	}
	return fine("the server takes writes"), nil
}

func postgresIsolation(ctx context.Context, p *Patient) ([]result, error) {
	s, err := p.postgresSetting(ctx, "default_transaction_isolation")
	if err != nil {
		return nil, err
	}
	if s.value != "read committed" {
		return []result{{Warn, s.value + ", " + s.origin(), s.mend("'read committed'")}}, nil
	}
	return fine("%s", s.value), nil
}

func postgresConnections(ctx context.Context, p *Patient) ([]result, error) {
	row, err := p.row(ctx, `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
         - coalesce(current_setting('reserved_connections', true)::int, 0),
       (SELECT sum(numbackends) FROM pg_stat_database), r.rolconnlimit, d.datconnlimit, quote_ident(r.rolname), quote_ident(d.datname)
FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()`)
	if err != nil {
		return nil, err
	}
	limits := []limit{
		{"max_connections, less what is reserved", row[0], "ALTER SYSTEM SET max_connections = %d; then restart the server, or use PgBouncer"},
		{"the limit of role " + row[4], row[2], "ALTER ROLE " + row[4] + " CONNECTION LIMIT %d;"},
		{"the limit of database " + row[5], row[3], "ALTER DATABASE " + row[5] + " CONNECTION LIMIT %d;"},
	}
	used, err := strconv.Atoi(row[1])
	return judgeConnections(p.Connections, used, limits), err
}

// A limit is a number of connections. mend has a place for a better one.
type limit struct{ name, value, mend string }

// judgeConnections compares limits, of which those below 1 are none, with the
// need.
func judgeConnections(need, used int, limits []limit) (results []result) {
	for i, l := range limits {
		n, err := strconv.Atoi(l.value)
		mend := l.mend
		if strings.Contains(mend, "%d") {
			mend = fmt.Sprintf(mend, used+2*need)
		}
		switch {
		case err != nil || n < 1:
		case n < need:
			results = append(results, result{Fail, fmt.Sprintf("%d connections are needed, and %s is %d", need, l.name, n), mend})
		// The first limit is the server's, which all connections count for.
		case i == 0 && n-used < need:
			results = append(results, result{Warn, fmt.Sprintf("%d connections are needed, %s is %d, and %d are in use", need, l.name, n, used), mend})
		}
	}
	if results == nil {
		results = fine("%d are needed, %s is %s, %d are in use", need, limits[0].name, limits[0].value, used)
	}
	return results
}

// postgresPrepared uses a prepared statement while other connections are at work.
// A pooler between us that hands out servers by transaction mixes them up.
func postgresPrepared(ctx context.Context, p *Patient) ([]result, error) {
	err := prepareAndMix(ctx, p)
	switch code := sqlState(err); code {
	case "":
		return fine("prepared statements work"), err
	case "26000", "42P05", "08P01":
		if p.Unprepared {
			return fine("there is a pooler in transaction mode; the URL says to prepare nothing"), nil
		}
		return []result{{
			Warn, fmt.Sprintf("a prepared statement was lost (%v): there is a pooler in transaction mode, as PgBouncer, that does not keep them", err),
			"set max_prepared_statements = 200 in PgBouncer 1.21 or later, or add default_query_exec_mode=cache_describe to the URL of the program (lib/pq: binary_parameters=yes)",
		}}, nil
	}
	return nil, err
}

func prepareAndMix(ctx context.Context, p *Patient) error {
	one, err := p.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = one.Close() }()
	other, err := p.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	statement, err := one.PrepareContext(ctx, "SELECT $1::int")
	if err != nil {
		return err
	}
	defer func() { _ = statement.Close() }()
	for i := range 3 {
		tx, err := other.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		var n int
		err = statement.QueryRowContext(ctx, i).Scan(&n)
		_ = tx.Rollback() // nothing was done in it
		if err != nil {
			return err
		}
	}
	return nil
}
