package services

import (
	"regexp"
	"testing"
)

// meaningless are the tests that prove nothing on Babelfish, by what their name
// matches, and why. It parses lock hints and ignores them.
var meaningless = []struct{ test, reason string }{}

func skipOnBabelfish(t testing.TB) {
	t.Helper()
	for _, m := range meaningless {
		if regexp.MustCompile(m.test).MatchString(t.Name()) {
			t.Skipf("on Babelfish: %s", m.reason)
		}
	}
}
