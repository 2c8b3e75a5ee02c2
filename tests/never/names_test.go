package never

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

// evil are ids that some database takes for another one, or for SQL.
var evil = []string{
	"a", "A", "ä", "a\u0308", "Ä", "a ", " a", "a\t", "a\n", "ß", "ss", "ı", "i", "I", "İ", "😀", "👩‍👩‍👧", "\u200b", "\u202e",
	"'; DROP TABLE postroom_message; --", `"`, `\`, `\\`, `{}`, `{a,b}`, `NULL`, `null`, `%s`, `$1`, `?1`, `/* postroom:claim */`, "0", "00", "1e0", "1.0",
	"\x01", "\x7f", "\ufeff", "\ufffd", "\U0010ffff",
	strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("😀", 255), strings.Repeat("😀", 256),
	"", "nul\x00inside", "\xff\xfe", "\xed\xa0\x80",
}

func verdicts(t testing.TB, store box.Store) (all []string) {
	t.Helper()
	in, err := inbox.New(store, consumer, inbox.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	say := func(what string, m postroom.Message) {
		res, err := in.Receive(t.Context(), m)
		var arg *postroom.ArgumentError
		if err != nil && !errors.As(err, &arg) {
			t.Errorf("%s %q: %v", what, m.ID, err)
		}
		all = append(all, fmt.Sprintf("%s %q: %v %v", what, m.ID, res.Outcome, arg))
	}
	for _, name := range evil {
		m := message(name)
		say("new", m)
		say("again", m)
		m = message("one")
		m.Source = name
		say("source", m)
		m = message("in topic " + fmt.Sprintf("%x", name))
		m.Topic, m.Group, m.CorrelationID, m.Headers = name, name, name, map[string]string{"k": name}
		say("topic", m)
	}
	m := message(strings.Repeat("😀", 255))
	m.Source = strings.Repeat("😀", 121)
	say("too long together", m)
	claimed := map[string]bool{}
	for {
		got, err := store.Claim(t.Context(), box.ClaimRequest{Consumer: consumer, Owner: "'; --", Lease: leaseTime, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		for _, m := range got {
			name := fmt.Sprintf("claimed %q %q %q %q", m.Source, m.ID, m.Topic, m.Headers)
			if claimed[name] {
				t.Errorf("%s twice", name)
			}
			claimed[name] = true
			s := box.Settlement{Lease: m.Lease, Verb: box.Ack, Handler: m.ID}
			if _, err := store.Settle(t.Context(), nil, []box.Settlement{s}); err != nil {
				t.Fatal(err)
			}
		}
	}
	all = append(all, fmt.Sprint("claimed ", len(claimed)))
	return all
}

func TestNever19_evil_ids_get_the_same_verdict_on_every_store(t *testing.T) {
	want := verdicts(t, memstore.New(memstore.Options{}))
	onAll(t, func(t *testing.T, w *world) {
		for i, got := range verdicts(t, w.store) {
			if got != want[i] {
				t.Errorf("got %s, in memory %s", got, want[i])
			}
		}
	})
}

func TestNever20_evil_schema_or_prefix_is_refused_at_start(t *testing.T) {
	names := []string{
		"x; drop table y", `x"; DROP SCHEMA public; --`, "x y", "x.y", "1x", "x-y", "é", "x\x00", "{{work}}", "$1", "x'", "--", strings.Repeat("x", 64),
	}
	w := newSQLite(t)
	before := len(w.lot.Trace())
	for _, name := range names {
		for _, d := range []*sqlstore.Dialect{postgres.Dialect, sqlite.Dialect} {
			if _, err := sqlstore.Open(w.db, d, sqlstore.Options{Prefix: name}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
				t.Errorf("%s: prefix %q gave %v", d.Name, name, err)
			}
			if _, err := sqlstore.Open(w.db, d, sqlstore.Options{Schema: name}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
				t.Errorf("%s: schema %q gave %v", d.Name, name, err)
			}
		}
	}
	if len(w.lot.Trace()) != before {
		t.Error("statements were sent for a name that was refused")
	}
}
