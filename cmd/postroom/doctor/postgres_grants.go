package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// postgresRole looks at what the role can do beyond the tables.
func postgresRole(ctx context.Context, p *Patient) (results []result, err error) {
	row, err := p.row(ctx, `SELECT quote_ident(rolname), rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls FROM pg_roles WHERE rolname = current_user`)
	if err != nil {
		return nil, err
	}
	role := row[0]
	if row[1] == "true" {
		return []result{{Warn, role + " is a superuser", p.separate()}}, nil
	}
	for i, attribute := range []string{"CREATEDB", "CREATEROLE", "REPLICATION", "BYPASSRLS"} {
		if row[i+2] == "true" {
			results = append(results, result{Warn, role + " has " + attribute, "ALTER ROLE " + role + " NO" + attribute + ";"})
		}
	}
	more, err := postgresMemberships(ctx, p, role)
	if err != nil {
		return results, err
	}
	results = append(results, more...)
	more, err = postgresCreate(ctx, p)
	if err != nil {
		return results, err
	}
	if results = append(results, more...); results == nil {
		results = fine("%s can create nothing here", role)
	}
	return results, nil
}

// postgresMemberships looks for superusers that the role can become, and for the
// server's own roles that reach every table or out of the database.
func postgresMemberships(ctx context.Context, p *Patient, role string) (results []result, err error) {
	rows, err := p.rows(ctx, `SELECT quote_ident(rolname) FROM pg_roles WHERE pg_has_role(oid, 'MEMBER') AND (rolsuper OR rolname IN
('pg_write_all_data', 'pg_maintain', 'pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')) ORDER BY 1`)
	for _, row := range rows {
		results = append(results, result{Warn, role + " is a member of " + row[0], "REVOKE " + row[0] + " FROM " + role + ";"})
	}
	return results, err
}

// postgresCreate looks for the right to create things in the schema of the tables
// or in the database, by whichever way the role has it.
func postgresCreate(ctx context.Context, p *Patient) (results []result, err error) {
	rows, err := p.rows(ctx, `WITH place AS (
  SELECT 'SCHEMA ' || quote_ident(n.nspname) AS name, n.nspowner AS owner, coalesce(n.nspacl, acldefault('n', n.nspowner)) AS acl
  FROM pg_namespace n WHERE n.oid = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(`+literal(p.name("version"))+`))
  UNION ALL
  SELECT 'DATABASE ' || quote_ident(d.datname), d.datdba, coalesce(d.datacl, acldefault('d', d.datdba))
  FROM pg_database d WHERE d.datname = current_database())
SELECT p.name, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, a.grantee = p.owner
FROM place p CROSS JOIN aclexplode(p.acl) a
WHERE a.privilege_type = 'CREATE' AND (a.grantee = 0 OR pg_has_role(a.grantee, 'MEMBER')) ORDER BY 1, 2`)
	for _, row := range rows {
		seen := fmt.Sprintf("CREATE on %s, by way of %s", row[0], row[1])
		mend := fmt.Sprintf("REVOKE CREATE ON %s FROM %s;", row[0], row[1])
		if row[2] == "true" {
			seen, mend = fmt.Sprintf("%s is owned by way of %s", row[0], row[1]), p.separate()
		}
		results = append(results, result{Warn, seen, mend})
	}
	return results, err
}

// postgresGrants compares what the role may do with the tables with what the
// store prints.
func postgresGrants(ctx context.Context, p *Patient) (results []result, err error) {
	need, err := p.needed()
	if err != nil {
		return nil, err
	}
	super, err := p.row(ctx, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
	if err != nil {
		return nil, err
	}
	if super[0] == "true" {
		return skipped("not looked at: a superuser may do everything"), nil
	}
	if results, err = postgresTooMuch(ctx, p, need); err != nil {
		return results, err
	}
	lacking, err := postgresTooLittle(ctx, p, need)
	if results = append(results, lacking...); results == nil {
		results = fine("exactly what is needed on %d tables, views and sequences", len(need))
	}
	return results, err
}

func postgresTooMuch(ctx context.Context, p *Patient, need map[string][]string) (results []result, err error) {
	rows, err := p.rows(ctx, `SELECT c.relname, c.oid::regclass, CASE WHEN c.relkind = 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, a.privilege_type,
       CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, a.grantee = c.relowner, a.is_grantable
FROM pg_class c CROSS JOIN aclexplode(coalesce(c.relacl, acldefault(CASE WHEN c.relkind = 'S' THEN 's'::"char" ELSE 'r'::"char" END, c.relowner))) a
WHERE c.relkind IN ('r', 'p', 'v', 'S') AND (a.grantee = 0 OR pg_has_role(a.grantee, 'MEMBER')) AND `+p.ours()+" ORDER BY c.relname, 5, 4")
	if err != nil {
		return nil, err
	}
	type way struct{ object, kind, grantee string }
	rights, names := map[way][]string{}, map[way]string{}
	var ways []way
	owned := map[string][]string{}
	for _, row := range rows {
		if need[row[0]] == nil {
			continue // of another prefix, or of the program
		}
		if row[5] == "true" {
			if !slices.Contains(owned[row[4]], row[1]) {
				owned[row[4]] = append(owned[row[4]], row[1])
			}
			continue
		}
		w := way{row[1], row[2], row[4]}
		if rights[w] == nil {
			ways = append(ways, w)
			names[w] = row[0]
		}
		rights[w] = append(rights[w], row[3])
		if row[6] == "true" {
			rights[w] = append(rights[w], "GRANT OPTION FOR "+row[3])
		}
	}
	for _, owner := range sorted(owned) {
		results = append(results, result{Warn, fmt.Sprintf("%d tables, views and sequences are owned by way of %s, as %s: it can drop and alter them", len(owned[owner]), owner, owned[owner][0]), p.separate()})
	}
	for _, w := range ways {
		if more := beyond(rights[w], need[names[w]]); more != nil {
			results = append(results, result{Warn, fmt.Sprintf("%s on %s, by way of %s", strings.Join(more, ", "), w.object, w.grantee), revoke(more, w.kind+" "+w.object, w.grantee)})
		}
	}
	return results, nil
}

// revoke takes rights back; the right to pass one on is a statement of its own.
func revoke(rights []string, object, grantee string) string {
	var plain, statements []string
	for _, right := range rights {
		if strings.HasPrefix(right, "GRANT OPTION FOR ") {
			statements = append(statements, fmt.Sprintf("REVOKE %s ON %s FROM %s;", right, object, grantee))
		} else {
			plain = append(plain, right)
		}
	}
	if plain != nil {
		statements = append([]string{fmt.Sprintf("REVOKE %s ON %s FROM %s;", strings.Join(plain, ", "), object, grantee)}, statements...)
	}
	return strings.Join(statements, " ")
}

func postgresTooLittle(ctx context.Context, p *Patient, need map[string][]string) (results []result, err error) {
	rows, err := p.rows(ctx, "SELECT c.relname, c.oid::regclass, c.relkind, quote_ident(current_user) FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'S') AND "+p.ours()+" ORDER BY c.relname")
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		rights := need[row[0]]
		if rights == nil {
			continue
		}
		function, kind := "has_table_privilege", "TABLE"
		if row[2] == "S" {
			function, kind = "has_sequence_privilege", "SEQUENCE"
		}
		var asked []string
		for _, right := range rights {
			asked = append(asked, fmt.Sprintf("CASE WHEN %s(%s, %s) THEN '' ELSE %s END", function, literal(row[1]), literal(right), literal(right)))
		}
		missing, err := p.row(ctx, "SELECT "+strings.Join(asked, ", "))
		if err != nil {
			return results, err
		}
		missing = slices.DeleteFunc(missing, func(right string) bool { return right == "" })
		if len(missing) > 0 {
			what := strings.Join(missing, ", ")
			results = append(results, result{Fail, what + " on " + row[1] + " is missing", fmt.Sprintf("GRANT %s ON %s %s TO %s;", what, kind, row[1], row[3])})
		}
	}
	return results, nil
}
