package services

import (
	"regexp"
	"testing"
)

// meaningless are the tests that prove nothing on Babelfish, by what their name
// matches, and why. The first that matches counts. The suite asks for its store
// theme by theme.
var meaningless = []struct{ test, reason string }{
	// It parses lock hints and ignores them: READPAST skips nothing, UPDLOCK locks
	// nothing, and a select that should lock a row only reads it.
	{`^TestSQLServer/race$`, "lock hints are ignored, so that what races proves nothing"},
	{`^TestIBX126_runtime_role_has_DML_only_sqlserver/(race|stats)$`, "as in TestSQLServer"},
	{`^TestNever03_(reap|worker)|^TestNever07_|^TestNever11_(replay|late)|^TestNever16_(claimer|settler|held|producer|poison|many)|^TestNever23_`, "lock hints are ignored: who skips whom, and who waits, is what this test is about"},
	{`^TestNever04_(second|wait|crossed)|^TestNever21_`, "a wait for a key or a row is another one there, and ends by another error than 1222"},
	{`^TestNever05_real|^TestNever09_worker|^TestNever01_worker|^TestNever1[247]_worker|^TestNever18_`, "lock hints are ignored, so that what workers claim, renew and settle side by side proves nothing"},
	{`^Test(TwoRelays|SeveralRelays|AnOpen|ASenderThatHangs)`, "lock hints are ignored, so that relays do not exclude each other"},

	// What it has not, or has otherwise.
	{`^TestSQLServer/stats$|^TestModel/|^TestNever10_|^TestAnOverdue`, "it has no sys.allocation_units, from which sizes come"},
	{`^TestSQLServer_with_row_versions`, "it has no READ_COMMITTED_SNAPSHOT: it always reads versions"},
	{`^TestNever04_repeatable_read`, "it has no REPEATABLE READ"},
	{`^TestSQLServer_a_callers_settings_stay_his`, "SET in a batch with parameters outlives the batch there"},
	{`^TestIBX114_|^TestIBX115_`, "a table that is missing is no error 208 there, and names of indexes are changed"},
}

func skipOnBabelfish(t testing.TB) {
	t.Helper()
	for _, m := range meaningless {
		if regexp.MustCompile(m.test).MatchString(t.Name()) {
			t.Skipf("on Babelfish: %s", m.reason)
		}
	}
}
