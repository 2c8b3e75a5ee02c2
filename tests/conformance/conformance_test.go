package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestThePageIsUpToDateAndWithoutGaps(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	all, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.requirements) != 130 {
		t.Errorf("%d requirements, want 130", len(all.requirements))
	}
	if err := all.gaps(); err != nil {
		t.Error(err)
	}
	have, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != all.render() {
		t.Errorf("%s is out of date: run make conformance, or only go run ./tests/conformance -names", page)
	}
}

func TestNamesOfTestsCarryRequirements(t *testing.T) {
	for name, want := range map[string][]string{
		"TestIBX040_lease_must_be_positive":          {"IBX-040"},
		"TestIBX048_059_066_nil_is_refused":          {"IBX-048", "IBX-059", "IBX-066"},
		"TestIBX043_and_130_owner_is_required":       {"IBX-043", "IBX-130"},
		"TestIBX002_to_005_AlreadyProcessed":         {"IBX-002", "IBX-003", "IBX-004", "IBX-005"},
		"TestIBX114_IBX116_many_migrate_at_once":     {"IBX-114", "IBX-116"},
		"TestNothingOfTheKind":                       nil,
		"TestIBX021_1000_topics_are_not_a_number_12": {"IBX-021"},
	} {
		if got := namedIn(name); !slices.Equal(got, want) {
			t.Errorf("%s names %v, want %v", name, got, want)
		}
	}
	file := "func TestReceive(t *testing.T) {\n\t{\"IBX-016 source is required\", x},\n\tt.Errorf(\"IBX-078: twice\")\n}\n"
	got := scanFile("inbox", file)
	if len(got) != 1 || got[0].name != "TestReceive/IBX-016_source_is_required" || !slices.Equal(got[0].requirements, []string{"IBX-016"}) {
		t.Errorf("found %+v", got)
	}
}

func TestAGapFails(t *testing.T) {
	all := &conformance{requirements: []*requirement{{id: "IBX-999", summary: "nothing proves it"}}}
	if all.gaps() == nil {
		t.Error("a requirement without a test passed")
	}
	all.requirements[0].kind = "open"
	if err := all.gaps(); err != nil {
		t.Error(err)
	}
	all.requirements[0].tests = []test{{name: "TestIBX999"}}
	if all.gaps() == nil {
		t.Error("an open requirement with a test passed")
	}
	absent := results{{"p", "TestStore/theme"}: "skip", {"p", "TestStore"}: "pass"}
	if got := absent.of("p", "TestStore/theme/case"); got != "skip" {
		t.Errorf("the case of a skipped theme is %s", got)
	}
	if got := absent.of("p", "TestStore/other/case"); got != "missing" {
		t.Errorf("a case that did not run is %s", got)
	}
	if all.confirm(results{}) == nil {
		t.Error("a test that did not run passed")
	}
	if all.confirm(results{{"", "TestIBX999"}: "fail"}) == nil {
		t.Error("a test that failed passed")
	}
}
