package postroom_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// A rule that never fires looks the same as one that is kept: each is shown a
// sound tree with one violation planted in it.
func TestArchitectureRulesFindPlantedViolations(t *testing.T) {
	const base = "example.org/base"
	sound := map[string]string{
		"go.mod":                      "module " + base + "\n\ngo 1.25\n",
		"go.work":                     "go 1.25.0\n\nuse (\n\t.\n\t./pgxstore\n)\n",
		"doc.go":                      "package base\n",
		"box/box.go":                  "package box\n\nimport _ \"" + base + "\"\n",
		"box/internal/heap/heap.go":   "package heap\n",
		"inbox/inbox.go":              "package inbox\n\nimport (\n\t_ \"time\"\n\n\t_ \"" + base + "/box\"\n)\n",
		"inbox/inbox_test.go":         "package inbox_test\n\nimport _ \"" + base + "/memstore\"\n",
		"memstore/memstore.go":        "package memstore\n",
		"sqlstore/sqlite/sqlite.go":   "package sqlite\n\nimport _ \"" + base + "/sqlstore\"\n",
		"sqlstore/sqlstore.go":        "package sqlstore\n",
		"sqlstore/sqlite/put.sql":     "SELECT 1;\n",
		"pgxstore/go.mod":             "// Adapter.\nmodule " + base + "/pgxstore\n\nrequire example.org/pgx v1.0.0\n",
		"pgxstore/pgxstore.go":        "package pgxstore\n\nimport _ \"example.org/pgx\"\n",
		"scripts/run":                 "#!/bin/sh\nmktemp XXXXXX\n",
		"docs/testdata/not/parsed.go": "not Go",
	}
	for name, planted := range map[string]struct{ file, text, says string }{
		"nothing":                       {"", "", ""},
		"root imports box":              {"key.go", "package base\n\nimport _ \"" + base + "/box\"\n", "key.go imports " + base + "/box"},
		"box imports inbox":             {"box/x.go", "package box\n\nimport _ \"" + base + "/inbox\"\n", "box/x.go imports"},
		"below box imports inbox":       {"box/internal/x/x.go", "package x\n\nimport _ \"" + base + "/inbox\"\n", "may not"},
		"dialect imports dialect":       {"sqlstore/sqlite/x.go", "package sqlite\n\nimport _ \"" + base + "/sqlstore/mysql\"\n", "may not"},
		"adapter imports inbox":         {"pgxstore/x.go", "package pgxstore\n\nimport _ \"" + base + "/inbox\"\n", "may not"},
		"package without a row":         {"queue/queue.go", "package queue\n", "no row"},
		"box imports one without a row": {"box/x.go", "package box\n\nimport _ \"" + base + "/queue\"\n", "may not"},
		"third party in the root":       {"box/x.go", "package box\n\nimport _ \"example.org/pgx\"\n", "imports example.org/pgx"},
		"third party in a root test":    {"box/x_test.go", "package box\n\nimport _ \"example.org/pgx\"\n", "imports example.org/pgx"},
		"requirement":                   {"go.mod", "module " + base + "\n\nrequire x.org/y v1.0.0\n", "requirement"},
		"go.sum":                        {"go.sum", "", "go.sum"},
		"module outside the workspace":  {"bench/go.mod", "module " + base + "/bench\n", "not in go.work"},
		"module under another path":     {"pgxstore/go.mod", "module example.org/pgxstore\n", "want " + base + "/pgxstore"},
		"module path in a string":       {"box/x.go", "package box\n\nconst name = \"" + base + "\"\n", "spells"},
		"module path in a script":       {"scripts/run", "#!/bin/sh\ngo test " + base + "/box\n", "spells"},
		"vague package":                 {"box/x.go", "package util\n", "called util"},
		"vague folder":                  {"box/helpers/x.go", "package x\n", "called helpers"},
		"long file":                     {"box/x.go", "package box\n" + strings.Repeat("\n", 600), "601 lines"},
		"put off in Go":                 {"box/x.go", "package box\n\n// TO" + "DO: later\n", "box/x.go:3"},
		"put off in SQL":                {"box/x.sql", "-- FIX" + "ME\n", "box/x.sql:1"},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(sound)
			if planted.file != "" {
				files[planted.file] = planted.text
			}
			fsys := fstest.MapFS{}
			for name, text := range files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			tree, err := readTree(fsys)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, rule := range rules {
				found = append(found, rule.check(tree)...)
			}
			switch {
			case planted.says == "" && len(found) > 0:
				t.Errorf("a sound tree was blamed: %q", found)
			case planted.says != "" && len(found) != 1:
				t.Errorf("found %q, want one violation", found)
			case planted.says != "" && !strings.Contains(found[0], planted.says):
				t.Errorf("found %q, want %q in it", found[0], planted.says)
			}
		})
	}
}
