package storetest

import (
	"regexp"
	"testing"
)

// A report reads the requirements out of the names of the cases.
func TestCaseNamesCarryTheirRequirements(t *testing.T) {
	regular := regexp.MustCompile(`^(IBX-\d{3}|NEVER-\d{2}|TABLE|LANE|OPS|EXPIRY|P[1-5])(\+(IBX-\d{3}|NEVER-\d{2}|TABLE|LANE|OPS|EXPIRY|P[1-5]))*_[a-zA-Z0-9_]+$`)
	seen := map[string]bool{}
	for _, c := range Requirements() {
		if !regular.MatchString(c.Name) {
			t.Errorf("%s/%s is not <ID>[+<ID>…]_<words>", c.Theme, c.Name)
		}
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
	}
	for _, row := range transitions {
		for name := range row.cells {
			if !isState(name) {
				t.Errorf("the row %q has a cell for %q, which is no state", row.operation, name)
			}
		}
	}
}

func isState(name string) bool {
	for _, s := range states {
		if s.name == name {
			return true
		}
	}
	return false
}
