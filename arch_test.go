package postroom_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows says what each folder may import of ours, outside of its tests; ""
// is the root package. The row of a folder also holds for the folders below
// it that have none, and they may import each other. The root module's
// packages need a row; a folder of another module without one is free.
var arrows = map[string][]string{
	"":              {},
	"box":           {""},
	"inbox":         {"", "box"},
	"outbox":        {"", "box"},
	"sqlstore":      {"", "box"},
	"memstore":      {"", "box"},
	"storetest":     {"", "box", "inbox"},
	"transporttest": {"", "box"},
	"bus":           {"", "box", "inbox"},
	"inboxtest":     {"", "box", "inbox", "memstore"},
	"webhook":       {"", "inbox"},
	"pgxstore":      {"", "box", "sqlstore", "sqlstore/postgres"},
	"transport":     {""},
	"cloudevents":   {""},

	// A dialect knows sqlstore or sqlstore knows it, but none knows another.
	"sqlstore/postgres":  {"", "box", "sqlstore"},
	"sqlstore/sqlite":    {"", "box", "sqlstore"},
	"sqlstore/mysql":     {"", "box", "sqlstore"},
	"sqlstore/sqlserver": {"", "box", "sqlstore"},
}

// longFiles are the Go files that may exceed maxLines, each with its reason.
var longFiles = map[string]string{}

const maxLines = 600

// vagueNames tell a reader nothing about what is in a package.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared"}

// unfinished matches the marks of work that was put off.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestArchitecture(t *testing.T) {
	tree, err := readTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, violation := range rule.check(tree) {
				t.Error(violation)
			}
		})
	}
}

var rules = []struct {
	name  string
	check func(*tree) []string
}{
	{"imports follow the arrows of the layout", checkArrows},
	{"the root module needs the standard library only", checkRootModule},
	{"every module is in the workspace under the path of its folder", checkModules},
	{"the module path is spelt in go.mod and imports only", checkModulePath},
	{"a package's name says what is in it", checkNames},
	{"no file is longer than a reader's patience", checkLength},
	{"nothing is put off in a comment", checkUnfinished},
}

// tree is the repository as the rules see it.
type tree struct {
	fsys    fs.FS
	path    string   // of the root module
	modules []string // folders with a go.mod
	files   []string // Go, SQL, scripts and Makefiles
	parsed  map[string]*ast.File
}

func readTree(fsys fs.FS) (*tree, error) {
	tr := &tree{fsys: fsys, parsed: map[string]*ast.File{}}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && (base == "bin" || base == "testdata" || base == ".git"):
			return fs.SkipDir
		case entry.IsDir():
		case base == "go.mod":
			tr.modules = append(tr.modules, path.Dir(name))
		case path.Ext(base) == ".go":
			file, err := parser.ParseFile(token.NewFileSet(), name, tr.text(name), parser.ParseComments)
			if err != nil {
				return err
			}
			tr.parsed[name] = file
			tr.files = append(tr.files, name)
		case slices.Contains([]string{".sql", ".bash", ".sh"}, path.Ext(base)),
			base == "Makefile", strings.HasPrefix(tr.text(name), "#!"):
			tr.files = append(tr.files, name)
		}
		return nil
	})
	tr.path = tr.modulePath(".")
	return tr, err
}

func (tr *tree) text(name string) string {
	text, _ := fs.ReadFile(tr.fsys, name)
	return string(text)
}

func (tr *tree) modulePath(folder string) string {
	_, rest, _ := strings.Cut("\n"+tr.text(path.Join(folder, "go.mod")), "\nmodule ")
	first, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(first)
}

// moduleOf returns the folder of the module that a file belongs to.
func (tr *tree) moduleOf(name string) string {
	for folder := path.Dir(name); ; folder = path.Dir(folder) {
		if folder == "." || slices.Contains(tr.modules, folder) {
			return folder
		}
	}
}

// ours returns the folder of an imported package of ours.
func (tr *tree) ours(imported string) (folder string, ok bool) {
	if imported == tr.path {
		return "", true
	}
	return strings.CutPrefix(imported, tr.path+"/")
}

// rowOf returns the key in arrows that holds for a folder.
func rowOf(folder string) (row string, ok bool) {
	for row = folder; row != "." && row != ""; row = path.Dir(row) {
		if _, ok := arrows[row]; ok {
			return row, true
		}
	}
	return "", folder == "" || folder == "."
}

func imports(file *ast.File) []string {
	var paths []string
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, imported)
	}
	return paths
}

func checkArrows(tr *tree) (bad []string) {
	for name, file := range tr.parsed {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		from, known := rowOf(path.Dir(name))
		if !known {
			if tr.moduleOf(name) == "." {
				bad = append(bad, fmt.Sprintf("%s: its folder has no row in arrows; add one with what it may import", name))
			}
			continue
		}
		for _, imported := range imports(file) {
			folder, ok := tr.ours(imported)
			if !ok {
				continue
			}
			to, known := rowOf(folder)
			below := from == "sqlstore" && path.Dir(to) == "sqlstore"
			if !known || to != from && !below && !slices.Contains(arrows[from], to) {
				bad = append(bad, fmt.Sprintf("%s imports %s, which %q may not", name, imported, from))
			}
		}
	}
	return bad
}

func checkRootModule(tr *tree) (bad []string) {
	if strings.Contains(tr.text("go.mod"), "require") {
		bad = append(bad, "go.mod has a requirement")
	}
	if _, err := fs.Stat(tr.fsys, "go.sum"); err == nil {
		bad = append(bad, "go.sum is there, so something is required")
	}
	for name, file := range tr.parsed {
		if tr.moduleOf(name) != "." {
			continue
		}
		for _, imported := range imports(file) {
			first, _, _ := strings.Cut(imported, "/")
			if _, ours := tr.ours(imported); !ours && strings.Contains(first, ".") {
				bad = append(bad, fmt.Sprintf("%s imports %s", name, imported))
			}
		}
	}
	return bad
}

func checkModules(tr *tree) (bad []string) {
	used := strings.Fields(tr.text("go.work"))
	for _, folder := range tr.modules {
		if got, want := tr.modulePath(folder), path.Join(tr.path, folder); got != want {
			bad = append(bad, fmt.Sprintf("%s/go.mod names %s, want %s", folder, got, want))
		}
		// The linters' requirements must not mix with ours.
		if folder != "." && folder != "tools" && !slices.Contains(used, "./"+folder) {
			bad = append(bad, folder+" is not in go.work, so make does not see it")
		}
	}
	return bad
}

func checkModulePath(tr *tree) (bad []string) {
	for _, name := range tr.files {
		text := tr.text(name)
		if file := tr.parsed[name]; file != nil {
			for _, spec := range file.Imports {
				text = strings.Replace(text, spec.Path.Value, "", 1)
			}
		}
		if strings.Contains(text, tr.path) {
			bad = append(bad, name+" spells the module path")
		}
	}
	return bad
}

func checkNames(tr *tree) (bad []string) {
	for name, file := range tr.parsed {
		for _, word := range []string{file.Name.Name, path.Base(path.Dir(name))} {
			if slices.Contains(vagueNames, strings.TrimSuffix(word, "_test")) {
				bad = append(bad, fmt.Sprintf("%s is in a package called %s", name, word))
			}
		}
	}
	return bad
}

func checkLength(tr *tree) (bad []string) {
	for name := range tr.parsed {
		if n := strings.Count(tr.text(name), "\n"); n > maxLines && longFiles[name] == "" {
			bad = append(bad, fmt.Sprintf("%s has %d lines, more than %d: split it, or give the reason in longFiles", name, n, maxLines))
		}
	}
	return bad
}

func checkUnfinished(tr *tree) (bad []string) {
	for _, name := range tr.files {
		for i, line := range strings.Split(tr.text(name), "\n") {
			if mark := unfinished.FindString(line); mark != "" {
				bad = append(bad, fmt.Sprintf("%s:%d: %s: do it now, or open an issue", name, i+1, mark))
			}
		}
	}
	return bad
}
