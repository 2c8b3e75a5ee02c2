package doctor

import (
	"errors"
	"fmt"
	"testing"
)

type numbered int32

func (n numbered) Error() string         { return fmt.Sprintf("mssql: error %d", int32(n)) }
func (n numbered) SQLErrorNumber() int32 { return int32(n) }

// No such server can be had here: what it would answer is judged.
func TestWhatASQLServerSaysIsJudged(t *testing.T) {
	for _, c := range []struct {
		judge func(string) []result
		says  map[string]Severity
	}{
		{judgeCompatibility, map[string]Severity{"150": OK, "130": OK, "120": Fail, "": Fail}},
		{judgeReadOnly, map[string]Severity{"0": OK, "1": Fail}},
		{judgeRowVersions, map[string]Severity{"1": OK, "0": Warn}},
		{judgeDelayedDurability, map[string]Severity{"DISABLED": OK, "ALLOWED": OK, "FORCED": Fail, "": Fail}},
	} {
		for says, want := range c.says {
			if got := c.judge(says); got[0].severity != want || (want != OK && got[0].mend == "") {
				t.Errorf("%q: %+v, want %s and what to do", says, got, want)
			}
		}
	}
	if !sqlserverRefused(fmt.Errorf("version: %w", numbered(229))) || sqlserverRefused(numbered(208)) || sqlserverRefused(errors.New("229")) {
		t.Error("only an error of permission says that the role may not look")
	}
}
