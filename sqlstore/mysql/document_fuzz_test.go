package mysql

import (
	"regexp"
	"strings"
	"testing"
)

func TestArgumentsAreWrittenIntoStatements(t *testing.T) {
	rows := batch{{int64(1), "a", nil, true}, {int64(-2), []byte{0xff}, "it's", false}}
	for _, c := range []struct {
		text string
		args []any
		want string
	}{
		{"SELECT $2, $1", []any{"x", int64(7)}, "SELECT 7, _binary'x'"},
		{"SELECT '$[*]', $1", []any{nil}, "SELECT '$[*]', NULL"},
		{"VALUES ($*, f(1), 2) ON", []any{rows}, "VALUES (1,_binary'a',NULL,1, f(1), 2),(-2,FROM_BASE64('/w=='),FROM_BASE64('aXQncw=='),0, f(1), 2) ON"},
		{"VALUES (n + $*) $#", []any{batch{{int64(1)}, {int64(2)}}}, "VALUES (n + 1),(n + 2) 2"},
		{"t($1)", []any{rows}, `t('[[1,"YQ==",null,1],[-2,"/w==","aXQncw==",0]]')`},
	} {
		if got := fill(c.text, c.args); got != c.want {
			t.Errorf("fill %q\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

var safe = regexp.MustCompile(`^(_binary'[ -&(-\[\]-~]*'|FROM_BASE64\('[A-Za-z0-9+/=]*'\))$`)

// No mode or character set of a session may end a text early or read it in
// another way.
func FuzzATextStaysWithinItsQuotes(f *testing.F) {
	for _, s := range []string{"", "plain", "'", `\`, "\x00", "ä", "\xbf'", "$1", "a;b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var b strings.Builder
		quote(&b, s)
		if !safe.MatchString(b.String()) {
			t.Errorf("%q is written as %s", s, b.String())
		}
	})
}
