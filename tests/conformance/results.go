package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/postroom/postroom/storetest"
)

// results are the outcomes of tests by package and name: pass, fail, skip.
type results map[[2]string]string

// module is the path of the root module, which packages of tests begin with.
var module = strings.TrimSuffix(reflect.TypeFor[storetest.Case]().PkgPath(), "/storetest")

// runTests runs all tests of the packages. That some fail shows in the results.
func runTests(root string, packages []string) (results, error) {
	args := []string{"test", "-json", "-count=1", "-timeout=30m"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ran := results{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		switch event.Action {
		case "pass", "fail", "skip":
			pkg := strings.TrimPrefix(strings.TrimPrefix(event.Package, module), "/")
			if pkg == "" {
				pkg = "."
			}
			ran[[2]string{pkg, event.Test}] = event.Action
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return ran, nil
}

func (ran results) of(pkg, name string) string {
	if r, ok := ran[[2]string{pkg, name}]; ok {
		return r
	}
	// What a skipped test would have run is skipped with it.
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name, '/') {
		name = name[:i]
		if ran[[2]string{pkg, name}] == "skip" {
			return "skip"
		}
	}
	return "missing"
}

// confirm fails unless each test that the page names has passed. One that was
// skipped is printed as such: its server can't be had on this machine, or
// POSTROOM_REQUIRE_SERVICES would have made it fail.
func (all *conformance) confirm(ran results) error {
	var errs []error
	for _, r := range all.requirements {
		for _, c := range r.cases {
			for _, s := range stores {
				if got := ran.of(s.pkg, s.prefix+c.Theme+"/"+c.Name); got != "pass" && got != "skip" {
					errs = append(errs, fmt.Errorf("%s: %s on %s: %s", r.id, c.Name, s.name, got))
				}
			}
		}
		for _, t := range r.tests {
			if got := ran.of(t.pkg, t.name); got != "pass" && got != "skip" {
				errs = append(errs, fmt.Errorf("%s: %s in %s: %s", r.id, t.name, t.pkg, got))
			}
		}
	}
	return errors.Join(errs...)
}

// print shows requirement, test and result per store.
func (all *conformance) print(w io.Writer, ran results) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer func() { _ = table.Flush() }()
	for _, r := range all.requirements {
		for _, c := range r.cases {
			for _, s := range stores {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.id, c.Name, s.name, shown(ran.of(s.pkg, s.prefix+c.Theme+"/"+c.Name)))
			}
		}
		for _, t := range r.tests {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.id, t.name, "once, in "+t.pkg, shown(ran.of(t.pkg, t.name)))
		}
		if len(r.cases)+len(r.tests) == 0 {
			_, _ = fmt.Fprintf(table, "%s\t%s\t\t%s\n", r.id, r.reason, r.kind)
		}
	}
}

// shown is a result for people.
func shown(result string) string {
	if result == "skip" {
		return "not run"
	}
	return result
}
