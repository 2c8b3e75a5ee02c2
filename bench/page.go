package main

import (
	"fmt"
	"os"
	"strings"
)

// What lies between these lines of a page is the bench's.
const (
	pageBegin = "<!-- bench: begin -->\n"
	pageEnd   = "<!-- bench: end -->"
)

func writeIf(path, text string) error {
	if path == "" {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func insertIf(path, text string) error {
	if path == "" {
		return nil
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(page), pageBegin)
	_, after, ok2 := strings.Cut(rest, pageEnd)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s: the markers %q and %q are not there", path, strings.TrimSpace(pageBegin), pageEnd)
	}
	return os.WriteFile(path, []byte(before+pageBegin+text+pageEnd+after), 0o644)
}
