package stores_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/sqlite"
	"github.com/postroom/postroom/tests/stores"
)

// A lite is a store on a file.
type lite struct {
	*testing.T
	file  string
	db    *sql.DB
	store *sqlstore.Store
}

func newLite(t *testing.T, pragma string) *lite {
	t.Helper()
	file := "file:" + filepath.Join(t.TempDir(), "box.db")
	db := stores.Connect(t, "sqlite", file+"?_pragma="+pragma)
	store, err := sqlstore.Open(db, sqlite.Dialect, sqlstore.Options{})
	if err == nil {
		err = store.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return &lite{t, file, db, store}
}

func (l *lite) put(tx postroom.Tx, mode box.Mode, due time.Time, ids ...string) string {
	l.Helper()
	var puts []box.Put
	for _, id := range ids {
		puts = append(puts, box.Put{Mode: mode, Message: postroom.Message{Consumer: "c", Source: "s", ID: id, Topic: "t", Payload: []byte("x"), DueAt: due}})
	}
	results, err := l.store.Put(l.Context(), tx, puts)
	if err != nil {
		l.Fatal(err)
	}
	text := ""
	for _, r := range results {
		text += fmt.Sprint(r.Outcome, " ")
	}
	return text
}

func (l *lite) exec(statement string) {
	l.Helper()
	if _, err := l.db.ExecContext(l.Context(), statement); err != nil {
		l.Fatal(err)
	}
}

func (l *lite) count(query string) (n int) {
	l.Helper()
	if err := l.db.QueryRowContext(l.Context(), query).Scan(&n); err != nil {
		l.Fatal(err)
	}
	return n
}

// SQLite gives rows in whatever order unless it is told.
func TestSQLite_a_batch_with_known_messages_does_not_count_on_an_order(t *testing.T) {
	l := newLite(t, "reverse_unordered_selects(1)")
	l.put(nil, box.Queue, time.Time{}, "a")
	if got := l.put(nil, box.Queue, time.Time{}, "b", "a", "c", "d"); got != "accepted duplicate accepted accepted " {
		t.Error(got)
	}
	if n := l.count(`SELECT count(*) FROM postroom_work`); n != 4 {
		t.Errorf("%d of 4 messages are to be worked on", n)
	}
}

// A message that was only looked up takes its turn before those behind it.
func TestSQLite_a_batch_with_known_messages_keeps_its_order(t *testing.T) {
	l := newLite(t, "busy_timeout(0)")
	l.put(nil, box.Check, time.Time{}, "a")
	l.put(nil, box.Queue, time.Time{}, "a", "b")
	claimed, err := l.store.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Hour, Limit: 1})
	if err != nil || len(claimed) != 1 || claimed[0].ID != "a" {
		t.Errorf("claimed %v, %v", claimed, err)
	}
}

// Tables that were copied by hand may be ahead of the sequence.
func TestSQLite_a_number_is_never_given_twice(t *testing.T) {
	l := newLite(t, "busy_timeout(0)")
	l.put(nil, box.Once, time.Time{}, "done")
	l.exec(`UPDATE postroom_sequence SET n = 0`)
	if got := l.put(nil, box.Queue, time.Time{}, "done"); got != "duplicate " {
		t.Errorf("%s: it is done", got)
	}
	l.exec(`UPDATE postroom_sequence SET n = 0`)
	if got := l.put(nil, box.Queue, time.Time{}, "b", "done", "c"); got != "accepted duplicate accepted " {
		t.Error(got)
	}
	if n := l.count(`SELECT count(*) FROM postroom_work w JOIN postroom_done d ON d.seq = w.seq`); n > 0 {
		t.Errorf("%d messages are done and not done", n)
	}
}

// A transaction may wait for the writer before it: what fell due meanwhile is due.
func TestSQLite_times_are_read_after_the_lock(t *testing.T) {
	l := newLite(t, "busy_timeout(10000)")
	writer, err := stores.Connect(t, "sqlite", l.file).BeginTx(t.Context(), nil)
	if err == nil {
		_, err = writer.ExecContext(t.Context(), `UPDATE postroom_sequence SET n = n`)
	}
	if err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(50 * time.Millisecond)
	time.AfterFunc(2*time.Until(due), func() { _ = writer.Commit() })
	tx, err := l.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l.put(sqlstore.Tx(tx), box.Queue, due, "a")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := l.count(`SELECT stage FROM postroom_work`); n != int(postroom.StageReady) {
		t.Errorf("its stage is %d, it was due before it was stored", n)
	}
}
