package doctor

import (
	"regexp"
	"slices"
	"strings"
)

var granting = regexp.MustCompile(`(?m)^GRANT (.+) ON (?:(SCHEMA|SEQUENCE|TABLE) )?(.+) TO `)

// needed gives for each table, view and sequence what the role of a program must
// be able to do with it, read off what the store prints.
func (p *Patient) needed() (map[string][]string, error) {
	text, err := p.Store.Grants("app")
	if err != nil {
		return nil, err
	}
	rights := map[string][]string{}
	for _, m := range granting.FindAllStringSubmatch(text, -1) {
		if m[2] == "SCHEMA" {
			continue
		}
		for object := range strings.SplitSeq(m[3], ",") {
			for right := range strings.SplitSeq(m[1], ",") {
				name := bare(strings.TrimSpace(object))
				rights[name] = append(rights[name], strings.TrimSpace(right))
			}
		}
	}
	return rights, nil
}

// beyond gives the rights that are not among those needed.
func beyond(have, need []string) (more []string) {
	for _, right := range have {
		if !slices.Contains(need, right) && !slices.Contains(more, right) {
			more = append(more, right)
		}
	}
	slices.Sort(more)
	return more
}

// separate tells how to give a program a role of its own.
func (p *Patient) separate() string {
	return "CREATE ROLE app LOGIN PASSWORD '…'; then run what '" + p.command("schema --dialect "+p.Dialect.Name+" --grants app") + "' prints, and let the program connect as app"
}
