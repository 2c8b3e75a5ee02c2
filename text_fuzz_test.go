package postroom_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom"
)

func FuzzErrorText(f *testing.F) {
	f.Add("")
	f.Add("no such host")
	f.Add("a\x00b\xffc")
	f.Add(strings.Repeat("é", 1001))
	f.Add("x" + strings.Repeat("🎺", 500))
	f.Fuzz(func(t *testing.T, s string) {
		got := postroom.ErrorText(s)
		if !utf8.ValidString(got) || strings.Contains(got, "\x00") || len(got) > 2000 {
			t.Fatalf("%q became %q of %d bytes", s, got, len(got))
		}
		if again := postroom.ErrorText(got); again != got {
			t.Errorf("%q became %q, and that %q", s, got, again)
		}
		if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
			if !strings.HasPrefix(s, got) {
				t.Errorf("%q is not the beginning of %q", got, s)
			}
			if len(got) < len(s) && len(got) <= 2000-utf8.UTFMax {
				t.Errorf("cut at %d bytes, more would fit", len(got))
			}
		}
	})
}

func FuzzDefaultBackoff(f *testing.F) {
	for _, n := range []int{-1 << 63, -1, 0, 1, 5, 6, 7, 62, 63, 64, 1<<63 - 2} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, attempt int) {
		d := postroom.DefaultBackoff(attempt)
		if d < time.Second || d > postroom.MaxBackoff {
			t.Fatalf("attempt %d waits for %v", attempt, d)
		}
		if next := postroom.DefaultBackoff(attempt + 1); attempt+1 > attempt && next < d {
			t.Errorf("attempt %d waits for %v, the next one for %v", attempt, d, next)
		}
	})
}

func FuzzNameID(f *testing.F) {
	f.Add("ab", "c", "a", "bc")
	f.Add("", "", "", "x")
	f.Add("\x00", "\xff", "\x00", "\xff")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, two := postroom.NameID(a, b), postroom.NameID(c, d)
		checkUUID(t, one, '5')
		if (one == two) != (a == c && b == d) {
			t.Errorf("(%q, %q) is %s and (%q, %q) is %s", a, b, one, c, d, two)
		}
		checkUUID(t, postroom.NameID(a), '5')
		earlier, later := postroom.NewID(), postroom.NewID()
		checkUUID(t, later, '7')
		if later <= earlier {
			t.Errorf("%s came after %s", later, earlier)
		}
	})
}

// checkUUID expects the form of a UUID and its version.
func checkUUID(t *testing.T, id string, version byte) {
	t.Helper()
	if len(id) != 36 || id[14] != version || !strings.ContainsRune("89ab", rune(id[19])) {
		t.Fatalf("%q is no UUID of version %c", id, version)
	}
	for i := range len(id) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (id[i] == '-') || !strings.ContainsRune("0123456789abcdef-", rune(id[i])) {
			t.Fatalf("%q has %q at %d", id, id[i], i)
		}
	}
}
