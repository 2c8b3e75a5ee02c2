package demo

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
)

// finished is a database in which each message is done and has its effect.
func finished(t *testing.T, p *Plan) (*inbox.Inbox, *Store) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "demo.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &Store{Store: store, DB: db, Effects: "effect"}
	run(t, s, "CREATE TABLE effect (consumer TEXT, source TEXT, id TEXT, fence BIGINT, process BIGINT)")
	in, err := inbox.New(store, p.Consumer, inbox.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for n := range p.Messages {
		if _, err := in.Box().Take(t.Context(), box.Put{Mode: box.Once, Message: p.message(n)}); err != nil {
			t.Fatal(err)
		}
		r, err := in.Get(t.Context(), source, id(n))
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, "INSERT INTO effect VALUES ($1, $2, $3, $4, 1)", p.Consumer, source, id(n), r.Done.Fence)
	}
	return in, s
}

func run(t *testing.T, s *Store, query string, args ...any) {
	t.Helper()
	if _, err := s.DB.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func TestTheLedgerFindsEachKindOfWrong(t *testing.T) {
	for name, c := range map[string]struct {
		harm string
		says string
	}{
		"nothing":           {"SELECT 1", ""},
		"an effect twice":   {"INSERT INTO effect SELECT * FROM effect WHERE id = 'order-000002'", "1 messages have more than one effect"},
		"an effect missing": {"DELETE FROM effect WHERE id = 'order-000001'", "1 messages have no effect"},
		"one for another":   {"UPDATE effect SET id = 'order-000001' WHERE id = 'order-000000'", "1 messages have more than one effect"},
		"a stale lease":     {"UPDATE effect SET fence = fence - 1 WHERE id = 'order-000001'", "1 effects were made under another lease"},
		"a message lost":    {"DELETE FROM postroom_message WHERE id = 'order-000002'", "2 messages are stored, 3 were sent"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Consumer: "demo", Messages: 3}
			in, store := finished(t, p)
			run(t, store, c.harm)
			var l Ledger
			if err := l.audit(t.Context(), p, in, store); err != nil {
				t.Fatal(err)
			}
			if l.Balanced() != (c.says == "") || !strings.Contains(l.String(), c.says) {
				t.Errorf("want %q in\n%s", c.says, l.String())
			}
		})
	}
}

func TestAMessageThatIsNotDoneUnbalancesTheLedger(t *testing.T) {
	p := &Plan{Consumer: "demo", Messages: 3}
	in, store := finished(t, p)
	if err := in.Replay(t.Context(), source, id(1), inbox.Order{}); err != nil {
		t.Fatal(err)
	}
	var l Ledger
	if err := l.audit(t.Context(), p, in, store); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(l.String(), "1 messages are not done") {
		t.Error(l.String())
	}
}

func TestARunInWhichTooLittleHappenedFails(t *testing.T) {
	o := &Options{Plan: Plan{Duplicates: 0.3, Fail: 0.1}, KillEvery: time.Second}
	quiet := Ledger{Duplicates: 1, Failed: 1, WorkersKilled: 1}
	quiet.tooQuiet(o)
	if quiet.Balanced() || !strings.Contains(quiet.String(), "no lease was lost") {
		t.Error(quiet.String())
	}
	lively := Ledger{Duplicates: 1, Failed: 1, WorkersKilled: 1, LeasesLost: 1}
	lively.tooQuiet(o)
	if !lively.Balanced() {
		t.Error(lively.String())
	}
	asked := Ledger{}
	asked.tooQuiet(&Options{})
	if !asked.Balanced() {
		t.Errorf("what was turned off was missed: %s", asked.String())
	}
}
