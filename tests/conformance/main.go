// Command conformance tells which requirement is proved by which test on which
// store. It runs the tests, fails on a gap, and writes docs/conformance.md.
//
// With -names it only brings the page up to date with the names of tests, which
// make test then runs anyway.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	names := flag.Bool("names", false, "write the page without running the tests")
	flag.Parse()
	if err := run(*names); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(names bool) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	all, err := load(root)
	if err != nil {
		return err
	}
	if !names {
		ran, err := runTests(root, all.packages())
		if err != nil {
			return err
		}
		all.print(os.Stdout, ran)
		if err := all.confirm(ran); err != nil {
			return err
		}
	}
	if err := all.gaps(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, page), []byte(all.render()), 0o644)
}

// page is what the command writes.
const page = "docs/conformance.md"

// findRoot goes up to the folder of go.work.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.work above the working directory")
		}
		dir = parent
	}
}
