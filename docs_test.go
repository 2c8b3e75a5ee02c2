package postroom_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// Pictures are left out: the bench draws them.
	links    = regexp.MustCompile(`(?:^|[^!])\[[^\]]+\]\(([^)\s]+)\)`)
	code     = regexp.MustCompile("(?s)```.*?```")
	headings = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names that a document's headings are linked by.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, h := range headings.FindAllStringSubmatch(text, -1) {
		found[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return found
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git":
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for _, link := range links.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(link[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := fs.Stat(root, target); err != nil {
				t.Errorf("%s links to %s, which is not there", name, link[1])
				continue
			}
			if there, _ := fs.ReadFile(root, target); anchor != "" && !anchors(string(there))[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", name, link[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
