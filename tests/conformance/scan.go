package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A test whose name carries requirements: TestIBX040_lease_must_be_positive, or
// a subtest "IBX-016 source is required".
type test struct {
	pkg, name    string
	requirements []string
}

var (
	function = regexp.MustCompile(`^func (Test\w*)\(`)
	subtest  = regexp.MustCompile(`(?:t\.Run\(|\{)"([^"]*IBX-\d{3}[^"]*)"`)
	dashed   = regexp.MustCompile(`IBX-(\d{3})`)
)

// scan finds the tests outside of the suite.
func scan(root string) ([]test, error) {
	var tests []test
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "conformance") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		tests = append(tests, scanFile(filepath.ToSlash(dir), string(text))...)
		return nil
	})
	slices.SortFunc(tests, func(a, b test) int { return strings.Compare(a.pkg+"."+a.name, b.pkg+"."+b.name) })
	return tests, err
}

func scanFile(pkg, text string) []test {
	var tests []test
	in := ""
	for line := range strings.Lines(text) {
		if m := function.FindStringSubmatch(line); m != nil {
			in = m[1]
			if ids := namedIn(in); ids != nil {
				tests = append(tests, test{pkg, in, ids})
			}
		}
		if m := subtest.FindStringSubmatch(line); m != nil && in != "" {
			var ids []string
			for _, id := range dashed.FindAllStringSubmatch(m[1], -1) {
				ids = append(ids, "IBX-"+id[1])
			}
			tests = append(tests, test{pkg, in + "/" + strings.ReplaceAll(m[1], " ", "_"), ids})
		}
	}
	return tests
}

// namedIn gives the requirements in the name of a test function: the numbers
// right after TestIBX, as in 040, 048_059_066, 043_and_130, 002_to_005 and
// 114_IBX116.
func namedIn(name string) []string {
	rest, ok := strings.CutPrefix(name, "TestIBX")
	if !ok {
		return nil
	}
	var ids []string
	last, through := 0, false
	for part := range strings.SplitSeq(rest, "_") {
		if part == "and" || part == "to" {
			through = part == "to"
			continue
		}
		digits := strings.TrimPrefix(part, "IBX")
		n, err := strconv.Atoi(digits)
		if err != nil || len(digits) != 3 {
			return ids
		}
		first := n
		if through {
			first = last + 1
		}
		for i := first; i <= n; i++ {
			ids = append(ids, fmt.Sprintf("IBX-%03d", i))
		}
		last, through = n, false
	}
	return ids
}
