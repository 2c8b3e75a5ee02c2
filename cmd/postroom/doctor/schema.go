package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// An index is an index that a database has, or that the schema asks for.
type index struct {
	table, name string
	columns     []string
	unique      bool
	// partial: it is not about all rows.
	partial bool
	// broken says what is wrong with it.
	broken string
	// create is the statement that makes it, or makes it anew; drop takes it away.
	create, drop string
}

// A layout is what the schema asks for. It is read off the SQL that the store
// prints, so that it can't differ from what Migrate does.
type layout struct {
	// relations are tables, views and sequences with their quoted names.
	relations map[string]string
	indexes   []index
}

var (
	creates  = regexp.MustCompile(`(?s)^CREATE (?:OR REPLACE )?(TABLE|VIEW|SEQUENCE|INDEX|UNIQUE INDEX) (?:IF NOT EXISTS )?(\S+)(.*)$`)
	onTable  = regexp.MustCompile(`(?s)^\s*ON (\S+) \(([^)]*)\)`)
	inline   = regexp.MustCompile(`(?m)^\s+(?:(PRIMARY KEY|UNIQUE)|(?:(UNIQUE) )?KEY (\w+)) \(([^)]*)\)`)
	drops    = regexp.MustCompile(`^DROP INDEX (?:IF EXISTS )?(\S+)`)
	comments = regexp.MustCompile(`(?m)[ \t]*--.*$`)
)

// bare takes schema and quotes off a name.
func bare(name string) string {
	name = name[strings.LastIndexByte(name, '.')+1:]
	return strings.Trim(name, "\"`[]")
}

func readLayout(schema string) layout {
	l := layout{relations: map[string]string{}}
	for statement := range strings.SplitSeq(comments.ReplaceAllString(schema, ""), ";\n") {
		statement = strings.TrimSpace(statement)
		if m := drops.FindStringSubmatch(statement); m != nil {
			l.indexes = slices.DeleteFunc(l.indexes, func(i index) bool { return i.name == bare(m[1]) })
			continue
		}
		m := creates.FindStringSubmatch(statement)
		if m == nil {
			continue
		}
		kind, name, rest := m[1], m[2], m[3]
		switch kind {
		case "INDEX", "UNIQUE INDEX":
			if on := onTable.FindStringSubmatch(rest); on != nil {
				l.indexes = append(l.indexes, index{
					table: bare(on[1]), name: bare(name), columns: columns(on[2]), unique: kind == "UNIQUE INDEX",
					partial: strings.Contains(rest, " WHERE "), create: statement + ";",
				})
			}
		case "TABLE":
			l.relations[bare(name)] = name
			for _, key := range inline.FindAllStringSubmatch(rest, -1) {
				unique := cmp.Or(key[1], key[2])
				l.indexes = append(l.indexes, index{
					table: bare(name), name: key[3], columns: columns(key[4]), unique: unique != "",
					create: fmt.Sprintf("ALTER TABLE %s ADD %s (%s);", name, strings.TrimSpace(cmp.Or(key[1], key[2]+" KEY "+key[3])), key[4]),
				})
			}
		default:
			l.relations[bare(name)] = name
		}
	}
	return l
}

func columns(list string) []string {
	parts := strings.Split(list, ",")
	for i, part := range parts {
		parts[i] = bare(strings.TrimSpace(part))
	}
	return parts
}

func (p *Patient) layout() (layout, error) {
	text, err := p.Store.Schema()
	return readLayout(text), err
}

func lookAtRelations(ctx context.Context, p *Patient) (results []result, err error) {
	want, err := p.layout()
	if err != nil || p.database.relations == nil {
		return skipped("not looked at on %s", p.Dialect.Name), err
	}
	have, err := p.database.relations(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, name := range sorted(want.relations) {
		if !have[name] {
			results = append(results, result{
				Fail, want.relations[name] + " is missing, or hidden from this role",
				p.command("schema --dialect "+p.Dialect.Name) + " prints what creates it; it can be run again without harm",
			})
		}
	}
	if results == nil {
		results = fine("all %d are there", len(want.relations))
	}
	return results, nil
}

func lookAtIndexes(ctx context.Context, p *Patient) (results []result, err error) {
	want, err := p.layout()
	if err != nil || p.database.indexes == nil {
		return skipped("not looked at on %s", p.Dialect.Name), err
	}
	have, err := p.database.indexes(ctx, p)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, w := range want.indexes {
		i := slices.IndexFunc(have, w.isServedBy)
		if i >= 0 {
			wanted[have[i].name] = true
		}
		severity := Warn
		if w.unique {
			severity = Fail
		}
		switch {
		case i < 0 && w.unique:
			results = append(results, result{severity, fmt.Sprintf("%s: the unique key (%s) is missing", w.table, strings.Join(w.columns, ", ")), w.create})
		case i < 0:
			results = append(results, result{severity, fmt.Sprintf("%s: index %s is missing", w.table, w.name), w.create})
		case !slices.Equal(have[i].columns, w.columns):
			results = append(results, result{severity, fmt.Sprintf("%s: index %s is on (%s), and should be on (%s)", w.table, w.name,
				strings.Join(have[i].columns, ", "), strings.Join(w.columns, ", ")), have[i].drop + " " + w.create})
		case have[i].broken != "":
			results = append(results, result{severity, fmt.Sprintf("%s: index %s is %s", w.table, have[i].name, have[i].broken), have[i].create})
		}
	}
	for _, h := range have {
		if h.broken != "" && !wanted[h.name] && want.relations[h.table] != "" {
			results = append(results, result{Warn, fmt.Sprintf("%s: index %s is %s and of no use, but written all the same", h.table, h.name, h.broken), h.drop})
		}
	}
	if results == nil {
		results = fine("all %d are there", len(want.indexes))
	}
	return results, nil
}

// isServedBy: a key that must be unique is one whatever its name; else the name
// decides.
func (w index) isServedBy(h index) bool {
	if h.table != w.table {
		return false
	}
	if w.unique {
		return h.unique && !h.partial && slices.Equal(h.columns, w.columns)
	}
	return h.name == w.name
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
