package doctor

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A mysqlGrant is a line of SHOW GRANTS. table is "*" for all of a database,
// database is "*" for all of the server.
type mysqlGrant struct {
	rights          []string
	database, table string
	// on and to are as the server writes them.
	on, to string
	option bool
}

var (
	mysqlGrantLine = regexp.MustCompile(`(?s)^GRANT (.+?) ON (?:TABLE )?((?:\x60[^\x60]*\x60|\*)\.(?:\x60[^\x60]*\x60|\*)) TO (\S+)(.*)$`)
	mysqlRoleLine  = regexp.MustCompile(`^GRANT (.+?) TO (\S+)(.*)$`)
	mysqlColumns   = regexp.MustCompile(`\s*\([^)]*\)`)
)

// parseMySQLGrant reads a line; ok is false for those that grant no rights on
// tables.
func parseMySQLGrant(line string) (g mysqlGrant, ok bool) {
	m := mysqlGrantLine.FindStringSubmatch(line)
	if m == nil {
		return g, false
	}
	database, table, _ := strings.Cut(m[2], ".")
	g = mysqlGrant{database: bare(database), table: bare(table), on: m[2], to: m[3], option: strings.Contains(m[4], "GRANT OPTION")}
	for right := range strings.SplitSeq(mysqlColumns.ReplaceAllString(m[1], ""), ",") {
		g.rights = append(g.rights, strings.ToUpper(strings.TrimSpace(right)))
	}
	return g, true
}

// covers reports whether the grant is about a database, or something in it. The
// name is a pattern where all of a database is granted.
func (g mysqlGrant) covers(database string) bool {
	if g.database == "*" || strings.EqualFold(g.database, database) {
		return true
	}
	if g.table != "*" {
		return false
	}
	var pattern strings.Builder
	escaped := false
	for _, r := range g.database {
		switch {
		case r == '\\' && !escaped:
			escaped = true
			continue
		case r == '%' && !escaped:
			pattern.WriteString(".*")
		case r == '_' && !escaped:
			pattern.WriteByte('.')
		default:
			pattern.WriteString(regexp.QuoteMeta(string(r)))
		}
		escaped = false
	}
	return regexp.MustCompile(`(?is)^` + pattern.String() + `$`).MatchString(database)
}

var (
	// harmless for a whole server: to look.
	mysqlLooking = []string{"USAGE", "PROCESS", "SHOW DATABASES", "REPLICATION CLIENT", "BINLOG MONITOR", "SLAVE MONITOR", "REPLICA MONITOR"}
	// usual for the database of a program that has tables of its own in it.
	mysqlUsual = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE", "SHOW VIEW", "CREATE TEMPORARY TABLES", "LOCK TABLES"}
)

// mysqlGrants compares what the user may do with what the store prints. Reading
// and writing rows of the whole database is let pass: the program's own tables
// are there.
func mysqlGrants(ctx context.Context, p *Patient) (results []result, err error) {
	need, err := p.needed()
	if err != nil {
		return nil, err
	}
	here, err := p.row(ctx, "SELECT "+p.here())
	if err != nil {
		return nil, err
	}
	lines, err := mysqlGrantLines(ctx, p)
	if err != nil {
		return nil, err
	}
	results = judgeMySQLGrants(lines, need, here[0], p)
	lacking, err := mysqlTooLittle(p, lines, need, here[0])
	if results = append(results, lacking...); results == nil {
		results = fine("what is needed on %d tables and views, and none that alters them", len(need))
	}
	return results, err
}

// mysqlGrantLines includes those of active roles. MariaDB shows them by itself,
// MySQL when it is asked for.
func mysqlGrantLines(ctx context.Context, p *Patient) (lines []string, err error) {
	query := "SHOW GRANTS"
	version, err := p.variable(ctx, "version")
	if err != nil {
		return nil, err
	}
	if !isMariaDB(version) {
		role, err := p.row(ctx, "SELECT CURRENT_ROLE()")
		if err != nil {
			return nil, err
		}
		if role[0] != "" && role[0] != "NONE" {
			query += " FOR CURRENT_USER() USING " + role[0]
		}
	}
	rows, err := p.rows(ctx, query)
	for _, row := range rows {
		lines = append(lines, row[0])
	}
	return lines, err
}

func judgeMySQLGrants(lines []string, need map[string][]string, here string, p *Patient) (results []result) {
	for _, line := range lines {
		g, ok := parseMySQLGrant(line)
		if !ok {
			continue
		}
		var more []string
		switch {
		case g.database == "*":
			more = beyond(g.rights, mysqlLooking)
		case !g.covers(here):
			continue
		case g.table == "*":
			more = beyond(g.rights, append([]string{"USAGE"}, mysqlUsual...))
		case need[g.table] != nil:
			more = beyond(g.rights, need[g.table])
		}
		if g.option && more == nil && (g.database == "*" || g.table == "*" || need[g.table] != nil) {
			more = []string{"GRANT OPTION"}
		}
		switch {
		case more == nil:
		case slices.Contains(more, "ALL PRIVILEGES") || g.database == "*":
			results = append(results, result{Warn, fmt.Sprintf("%s on %s, for %s", some(more), g.on, g.to), p.separateUser()})
		default:
			results = append(results, result{Warn, fmt.Sprintf("%s on %s, for %s", some(more), g.on, g.to), fmt.Sprintf("REVOKE %s ON %s FROM %s;", strings.Join(more, ", "), g.on, g.to)})
		}
	}
	return results
}

// some keeps a line readable: an administrator has forty rights.
func some(rights []string) string {
	if len(rights) > 6 {
		return fmt.Sprintf("%s and %d more", strings.Join(rights[:5], ", "), len(rights)-5)
	}
	return strings.Join(rights, ", ")
}

func (p *Patient) separateUser() string {
	return "CREATE USER app IDENTIFIED BY '…'; then run what '" + p.command("schema --dialect "+p.Dialect.Name+" --grants app") + "' prints, and let the program connect as app"
}

// mysqlTooLittle looks for what is missing. A role that is not active here may
// bring it.
func mysqlTooLittle(p *Patient, lines []string, need map[string][]string, here string) (results []result, err error) {
	have := map[string][]string{}
	var everywhere []string
	user, severity := "", Fail
	for _, line := range lines {
		g, ok := parseMySQLGrant(line)
		switch {
		case !ok && mysqlRoleLine.MatchString(line):
			severity = Skip
		case !ok || !g.covers(here):
		case g.table == "*":
			everywhere = append(everywhere, g.rights...)
		default:
			have[g.table] = append(have[g.table], g.rights...)
		}
		user = cmp.Or(g.to, user)
	}
	want, err := p.layout()
	if err != nil || slices.Contains(everywhere, "ALL PRIVILEGES") {
		return nil, err
	}
	for _, name := range sorted(need) {
		missing := beyond(need[name], append(everywhere[:len(everywhere):len(everywhere)], have[name]...))
		if missing != nil && !slices.Contains(have[name], "ALL PRIVILEGES") {
			what := strings.Join(missing, ", ")
			results = append(results, result{severity, what + " on " + want.relations[name] + " is missing", fmt.Sprintf("GRANT %s ON %s TO %s;", what, want.relations[name], user)})
		}
	}
	return results, nil
}
