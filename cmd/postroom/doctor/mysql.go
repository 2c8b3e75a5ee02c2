package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mysql is MariaDB too. Variables are read from what the server shows to
// everyone.
var mysql = database{
	clock:     "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
	relations: mysqlRelations,
	indexes:   mysqlIndexes,
	refused:   mysqlRefused,
	checks: []check{
		{
			name: "server.version",
			why:  "Such a server would break a promise in silence, so that the store refuses it.",
			look: mysqlVersion,
		},
		{
			name: "server.writable",
			why:  "Nothing can be received, claimed or settled.",
			look: mysqlWritable,
		},
		{
			name: "server.isolation",
			why:  "The store begins its transactions at READ COMMITTED; yours begin at this level.",
			look: mysqlIsolation,
		},
		{
			name: "server.connections",
			why:  "Workers and callers that get no connection wait, and fail.",
			look: mysqlConnections,
		},
		{
			name: "server.lock_wait",
			why:  "It bounds how long your transaction waits for a key that another one holds.",
			look: mysqlLockWait,
		},
		{
			name: "server.packet",
			why:  "A message or batch that does not fit into a packet is refused, and the connection is lost.",
			look: mysqlPacket,
		},
		{
			name: "server.binlog_format",
			why:  "The server refuses writes at READ COMMITTED with a binary log of statements.",
			look: mysqlBinlogFormat,
		},
		{
			name: "server.cluster",
			why:  "Locks hold on one server only: order within a group, and skipping what is locked, are not kept between several that all write.",
			look: mysqlCluster,
		},
		{
			name: "durability.innodb_flush_log_at_trx_commit",
			why:  "A crash loses the last second: messages that were acknowledged, effects that were done.",
			look: mysqlSetting("innodb_flush_log_at_trx_commit", Fail, "1", "1"),
		},
		{
			name: "durability.innodb_doublewrite",
			why:  "A page that was half written when the machine crashed can't be mended.",
			look: mysqlSetting("innodb_doublewrite", Fail, "ON", "ON", "1", "DETECT_AND_RECOVER"),
		},
		{
			name: "durability.innodb_flush_method",
			why:  "The server never asks the disk to keep what it was given: a crash of the machine can corrupt the database.",
			look: mysqlFlushMethod,
		},
		{
			name: "durability.sync_binlog",
			why:  "After a crash of the machine the binary log may lack what was acknowledged, and with it every replica that takes over.",
			look: mysqlSyncBinlog,
		},
		{
			name:   "durability.engine",
			why:    "Only InnoDB has transactions and survives a crash: elsewhere a message may be half stored or done twice.",
			tables: true, look: mysqlEngine,
		},
		{
			name:   "grants.tables",
			why:    "The program needs what 'postroom schema --grants' prints; a program that is tricked into running foreign SQL can do all that its user can.",
			tables: true, look: mysqlGrants,
		},
		{
			name: "vacuum.transactions",
			why:  "InnoDB keeps all old rows while a transaction might still see them, so claims get slower; and a message that it took in is held until it ends.",
			look: mysqlTransactions,
		},
	},
}

var mysqlNumber = regexp.MustCompile(`^Error (\d+)\b`)

func mysqlRefused(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if m := mysqlNumber.FindStringSubmatch(err.Error()); m != nil {
			return slices.Contains([]string{"1044", "1142", "1143", "1227"}, m[1])
		}
	}
	return false
}

// variable gives a variable of the session, which is the server's where it has no
// other; empty when the server does not have it.
func (p *Patient) variable(ctx context.Context, name string) (string, error) {
	if p.variables == nil {
		rows, err := p.rows(ctx, "SHOW SESSION VARIABLES")
		if err != nil {
			return "", err
		}
		p.variables = map[string]string{}
		for _, row := range rows {
			p.variables[row[0]] = row[1]
		}
	}
	return p.variables[name], nil
}

// here is the database that holds the tables, as a text of SQL.
func (p *Patient) here() string {
	if p.Schema != "" {
		return literal(p.Schema)
	}
	return "DATABASE()"
}

func mysqlRelations(ctx context.Context, p *Patient) (map[string]bool, error) {
	rows, err := p.rows(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = "+p.here())
	there := map[string]bool{}
	for _, row := range rows {
		there[row[0]] = true
	}
	return there, err
}

func mysqlIndexes(ctx context.Context, p *Patient) (found []index, err error) {
	rows, err := p.rows(ctx, `SELECT table_name, index_name, MAX(non_unique), GROUP_CONCAT(column_name ORDER BY seq_in_index)
FROM information_schema.statistics WHERE table_schema = `+p.here()+" GROUP BY table_name, index_name")
	for _, row := range rows {
		found = append(found, index{table: row[0], name: row[1], unique: row[2] == "0", columns: strings.Split(row[3], ","), drop: fmt.Sprintf("DROP INDEX `%s` ON `%s`;", row[1], row[0])})
	}
	return found, err
}

func mysqlVersion(ctx context.Context, p *Patient) ([]result, error) {
	row, err := p.row(ctx, "SELECT VERSION()")
	if err != nil {
		return nil, err
	}
	return judgeMySQLVersion(p, row[0]), nil
}

func judgeMySQLVersion(p *Patient, version string) []result {
	if p.Dialect.Refuse != nil {
		if err := p.Dialect.Refuse(version); err != nil {
			return []result{{Fail, err.Error(), "move to MariaDB 10.6 or later, or MySQL 8.0 or later"}}
		}
	}
	if isMariaDB(version) {
		return fine("MariaDB %s", version)
	}
	return fine("MySQL %s", version)
}

func isMariaDB(version string) bool { return strings.Contains(strings.ToLower(version), "mariadb") }

func mysqlWritable(ctx context.Context, p *Patient) (results []result, err error) {
	for _, name := range []string{"read_only", "super_read_only", "innodb_read_only", "transaction_read_only", "tx_read_only"} {
		value, err := p.variable(ctx, name)
		if err != nil {
			return nil, err
		}
		switch strings.ToUpper(value) {
		case "", "OFF", "0":
			continue
		}
		mend := "connect to the primary; if this is it, SET GLOBAL " + name + " = OFF;"
		if name == "innodb_read_only" {
			mend = "connect to the primary; if this is it, start the server without innodb_read_only"
		}
		results = append(results, result{Fail, name + " is " + value, mend})
	}
	if results == nil {
		results = fine("the server takes writes")
	}
	return results, nil
}

// mysqlIsolation: MySQL 8 calls it transaction_isolation, MariaDB before 11.1
// tx_isolation.
func mysqlIsolation(ctx context.Context, p *Patient) ([]result, error) {
	name := "transaction_isolation"
	value, err := p.variable(ctx, name)
	if err == nil && value == "" {
		name = "tx_isolation"
		value, err = p.variable(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	if value == "REPEATABLE-READ" || value == "READ-COMMITTED" {
		return fine("%s", value), nil
	}
	return []result{{
		Warn, value + ": it locks what is only read, or reads what is not committed",
		fmt.Sprintf("SET GLOBAL %s = 'READ-COMMITTED'; or add %s=%%27READ-COMMITTED%%27 to the URL", name, name),
	}}, nil
}

func mysqlConnections(ctx context.Context, p *Patient) ([]result, error) {
	most, err := p.variable(ctx, "max_connections")
	if err != nil {
		return nil, err
	}
	perUser, err := p.variable(ctx, "max_user_connections")
	if err != nil {
		return nil, err
	}
	row, err := p.row(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")
	if err != nil {
		return nil, err
	}
	used, err := strconv.Atoi(row[1])
	return judgeConnections(p.Connections, used, []limit{
		{"max_connections", most, "SET GLOBAL max_connections = %d; and the same in the server's configuration"},
		{"max_user_connections", perUser, "SET GLOBAL max_user_connections = 0; or ALTER USER … WITH MAX_USER_CONNECTIONS %d;"},
	}), err
}

func mysqlLockWait(ctx context.Context, p *Patient) ([]result, error) {
	version, err := p.variable(ctx, "version")
	if err != nil {
		return nil, err
	}
	value, err := p.variable(ctx, "innodb_lock_wait_timeout")
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi(value)
	return judgeLockWait(isMariaDB(version), seconds), err
}

// judgeLockWait: on MariaDB the store bounds each wait itself, and the variable
// matters only for what your own statements wait for.
func judgeLockWait(maria bool, seconds int) []result {
	seen := fmt.Sprintf("innodb_lock_wait_timeout is %d s", seconds)
	const mend = "add innodb_lock_wait_timeout=5 to the URL of the program"
	switch {
	case seconds < 1:
		return []result{{Warn, seen + ": nothing ever waits for a lock", mend}}
	case !maria && seconds > 10:
		return []result{{Warn, seen + ": MySQL has no bound of its own for one statement, so that this one holds instead of Options.Wait", mend}}
	case seconds > 120:
		return []result{{Warn, seen + ": a connection may hang for that long", mend}}
	}
	return fine("%s", seen)
}

const (
	// leastPacket is what the suite passes with; goodPacket holds the largest
	// payload that is allowed by default, in base64.
	leastPacket = 1 << 20
	goodPacket  = 2 << 20
)

func mysqlPacket(ctx context.Context, p *Patient) ([]result, error) {
	value, err := p.variable(ctx, "max_allowed_packet")
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(value)
	seen := fmt.Sprintf("max_allowed_packet is %d bytes: payloads up to %d", n, n/4*3)
	const mend = "SET GLOBAL max_allowed_packet = 16777216; and the same in the server's configuration"
	switch {
	case n < leastPacket:
		return []result{{Fail, seen, mend}}, err
	case n < goodPacket:
		return []result{{Warn, seen + ", which is less than the 1 MiB of inbox.Options.MaxPayload", mend}}, err
	}
	return fine("%s", seen), err
}

// mysqlSetting looks at a variable that must have one of some values.
func mysqlSetting(name string, severity Severity, right string, good ...string) func(context.Context, *Patient) ([]result, error) {
	return func(ctx context.Context, p *Patient) ([]result, error) {
		value, err := p.variable(ctx, name)
		if err != nil || value == "" {
			return nil, err
		}
		if slices.Contains(good, strings.ToUpper(value)) {
			return fine("%s", value), nil
		}
		return []result{{severity, value, fmt.Sprintf("set %s = %s in the [mysqld] section of the server's configuration; where the server can change it while it runs: SET GLOBAL %s = %s;", name, right, name, right)}}, nil
	}
}

func mysqlFlushMethod(ctx context.Context, p *Patient) ([]result, error) {
	value, err := p.variable(ctx, "innodb_flush_method")
	if err != nil {
		return nil, err
	}
	switch strings.ToLower(value) {
	case "nosync", "littlesync":
		return []result{{Fail, value, "take innodb_flush_method out of the server's configuration, and restart it"}}, nil
	case "":
		return fine("the server's default"), nil
	}
	return fine("%s", value), nil
}

// hasBinlog: without a binary log there is nothing to sync or to format.
func hasBinlog(ctx context.Context, p *Patient) (bool, error) {
	value, err := p.variable(ctx, "log_bin")
	return value == "ON" || value == "1", err
}

func mysqlSyncBinlog(ctx context.Context, p *Patient) ([]result, error) {
	if on, err := hasBinlog(ctx, p); err != nil || !on {
		return fine("there is no binary log"), err
	}
	return mysqlSetting("sync_binlog", Warn, "1", "1")(ctx, p)
}

func mysqlBinlogFormat(ctx context.Context, p *Patient) ([]result, error) {
	if on, err := hasBinlog(ctx, p); err != nil || !on {
		return fine("there is no binary log"), err
	}
	return mysqlSetting("binlog_format", Fail, "ROW", "ROW", "MIXED")(ctx, p)
}

func mysqlCluster(ctx context.Context, p *Patient) ([]result, error) {
	for name, system := range map[string]string{"wsrep_on": "Galera", "group_replication_group_name": "Group Replication"} {
		value, err := p.variable(ctx, name)
		if err != nil {
			return nil, err
		}
		if value != "" && value != "OFF" && value != "0" {
			return []result{{Warn, "the server is one of a group (" + system + ")", "let all programs of these tables write to one server of the group: single-primary mode, or a URL of that server"}}, nil
		}
	}
	return fine("one server"), nil
}

func mysqlEngine(ctx context.Context, p *Patient) (results []result, err error) {
	want, err := p.layout()
	if err != nil {
		return nil, err
	}
	rows, err := p.rows(ctx, "SELECT table_name, engine FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_schema = "+p.here()+" ORDER BY table_name")
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if name := want.relations[row[0]]; name != "" && !strings.EqualFold(row[1], "InnoDB") {
			results = append(results, result{Fail, name + " is kept by " + row[1], "ALTER TABLE " + name + " ENGINE = InnoDB;"})
		}
	}
	if results == nil {
		results = fine("all tables are kept by InnoDB")
	}
	return results, nil
}

func mysqlTransactions(ctx context.Context, p *Patient) (results []result, err error) {
	rows, err := p.rows(ctx, fmt.Sprintf(`SELECT trx_mysql_thread_id, trx_rows_locked, TIMESTAMPDIFF(SECOND, trx_started, NOW())
FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID()
  AND TIMESTAMPDIFF(MICROSECOND, trx_started, NOW(6)) > %d ORDER BY trx_started LIMIT 10`, p.LongTransaction.Microseconds()))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row[0] == "0" {
			results = append(results, result{Warn, fmt.Sprintf("an XA transaction without a connection has been open for %s s", row[2]), "XA RECOVER; then XA COMMIT or XA ROLLBACK it"})
			continue
		}
		results = append(results, result{
			Warn, fmt.Sprintf("connection %s has been in a transaction for %s s, and locks %s rows", row[0], row[2], row[1]),
			"end it in its program, or KILL " + row[0] + ";",
		})
	}
	if results == nil {
		results = fine("none is open for more than %s", p.LongTransaction)
	}
	return results, nil
}
