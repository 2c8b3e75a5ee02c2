package sqlstore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	prefixPattern = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)
	schemaPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// tables are the placeholders that statements and migrations may use. Each
// stands for the qualified, quoted name of an object of the set.
var tables = []string{
	"message", "work", "claim", "done", "lane", "audit", "total", "pause", "version",
	"sequence", "record",
}

// names fills schema and prefix into SQL. It is made once, from validated parts.
type names struct{ replace *strings.Replacer }

// checkNames refuses what must not be filled into SQL.
func checkNames(d *Dialect, schema, prefix string) error {
	if !prefixPattern.MatchString(prefix) {
		return fmt.Errorf("prefix %q: allowed are 1 to 40 of a-z, 0-9 and _, not beginning with a digit", prefix)
	}
	if schema != "" && !d.Schemas {
		return fmt.Errorf("schema %q: %s has no schemas, use Prefix instead", schema, d.Name)
	}
	if schema != "" && !schemaPattern.MatchString(schema) {
		return fmt.Errorf("schema %q: allowed are 1 to 63 of A-Z, a-z, 0-9 and _, not beginning with a digit", schema)
	}
	return nil
}

func newNames(d *Dialect, schema, prefix string, wait time.Duration) names {
	qualify := ""
	if schema != "" {
		qualify = d.Quote(schema) + "."
	}
	pairs := []string{
		"{{prefix}}", prefix, "{{schema}}", d.Quote(schema),
		"{{wait}}", strconv.FormatInt(max(wait.Milliseconds(), 1), 10), // 0 would mean no bound
		"{{seconds}}", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10),
	}
	for _, t := range tables {
		pairs = append(pairs, "{{"+t+"}}", qualify+d.Quote(prefix+"_"+t))
	}
	return names{strings.NewReplacer(pairs...)}
}

func (n names) fill(text string) string { return n.replace.Replace(text) }

// parseStatements splits the text of a dialect at its "-- name: x" lines. Each
// statement begins with a comment of its name, so that a database's own views
// of running statements tell which it is.
func parseStatements(text string, n names) (map[string]string, error) {
	statements := map[string]string{}
	for i, part := range strings.Split("\n"+text, "\n-- name: ") {
		if i == 0 {
			continue
		}
		name, body, _ := strings.Cut(part, "\n")
		name = strings.TrimSpace(name)
		if _, twice := statements[name]; twice {
			return nil, fmt.Errorf("statement %q is defined twice", name)
		}
		body = n.fill(strings.TrimSuffix(strings.TrimSpace(body), ";"))
		if strings.Contains(body, "{{") {
			return nil, fmt.Errorf("statement %q has an unknown placeholder", name)
		}
		statements[name] = "/* postroom:" + name + " */ " + body
	}
	return statements, nil
}
