package postroom_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var writeOptions = flag.Bool("write-options", false, "write the tables of options into the documents")

// tables marks where a document shows the options of a struct.
var tables = regexp.MustCompile(`(?s)<!-- options (\w+)\.(\w+) -->\n.*?<!-- end -->`)

func TestDocumentsShowTheOptionsOfTheCode(t *testing.T) {
	for file, brief := range map[string]bool{"README.md": true, "docs/options.md": false} {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		after := tables.ReplaceAllStringFunc(string(before), func(block string) string {
			found++
			name := tables.FindStringSubmatch(block)
			rows := optionRows(t, name[1], name[2], brief)
			return fmt.Sprintf("<!-- options %s.%s -->\n| option | | default |\n|---|---|---|\n%s<!-- end -->", name[1], name[2], rows)
		})
		switch {
		case found == 0:
			t.Errorf("%s has no table of options", file)
		case after != string(before) && *writeOptions:
			if err := os.WriteFile(file, []byte(after), 0o644); err != nil { //nolint:gosec // a document is for all to read
				t.Fatal(err)
			}
		case after != string(before):
			t.Errorf("%s differs from the comments in the code; run: go test . -run Options -write-options", file)
		}
	}
}

// optionRows makes a row of each field of a struct, out of its comment. A brief
// one has only the first sentence.
func optionRows(t *testing.T, folder, name string, brief bool) string {
	t.Helper()
	var rows strings.Builder
	for _, field := range structOf(t, folder, name).Fields.List {
		name := field.Names[0].Name
		about, dflt := cutDefault(strings.Join(strings.Fields(field.Doc.Text()), " "))
		if about == "" {
			about = "see above"
		}
		about = strings.TrimPrefix(strings.TrimPrefix(about, name+" is "), name+" ")
		if brief {
			about, _, _ = strings.Cut(about, ". ")
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", name, strings.TrimSuffix(about, "."), dflt)
	}
	return rows.String()
}

// defaults begin the part of a comment that states the default.
var defaults = regexp.MustCompile(`(^| )Default:? `)

func cutDefault(about string) (rest, dflt string) {
	at := defaults.FindStringIndex(about)
	if at == nil {
		return about, "–"
	}
	return about[:at[0]], strings.TrimSuffix(about[at[1]:], ".")
}

func structOf(t *testing.T, folder, name string) *ast.StructType {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			gen, _ := decl.(*ast.GenDecl)
			if gen == nil {
				continue
			}
			for _, spec := range gen.Specs {
				ts, _ := spec.(*ast.TypeSpec)
				if ts == nil || ts.Name.Name != name {
					continue
				}
				if s, ok := ts.Type.(*ast.StructType); ok {
					return s
				}
			}
		}
	}
	t.Fatalf("there is no struct %s in %s", name, folder)
	return nil
}
