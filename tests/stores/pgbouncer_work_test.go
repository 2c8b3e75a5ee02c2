package stores_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// Several programs receive, each message twice, and work, all at once and through
// fewer sessions than they have handlers. Each effect is there once, and groups
// keep their order.
func TestNever13_PgBouncer_in_transaction_mode_serves_several_workers(t *testing.T) {
	const programs, senders, each, groups = 3, 12, 30, 4
	for name, open := range waysThroughPgBouncer {
		t.Run(name, func(t *testing.T) {
			direct, through := services.FreshBouncedDatabase(t)
			admin := stores.Connect(t, "pgx", direct)
			execAll(t, admin, "CREATE TABLE effect (n bigserial, id text)")
			var (
				inboxes [programs]*inbox.Inbox
				said    lines
			)
			for i := range inboxes {
				store, err := open(t, through)
				stores.Ready(t, store, err, admin, sqlstore.Options{}, stores.PostgresShift)
				if inboxes[i], err = inbox.New(store, "orders", inbox.Options{Logger: slog.New(&said)}); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = inboxes[i].Close() })
				work(t, inboxes[i], insertsEffect(store))
			}
			var sending sync.WaitGroup
			for s := range senders {
				sending.Go(func() {
					for i := range each {
						m := postroom.Message{Source: "s", ID: fmt.Sprintf("%d-%03d", s, i), Topic: "t", Payload: []byte("x")}
						if s < groups {
							m.Group = fmt.Sprint("g", s)
						}
						for again := range 2 {
							if _, err := inboxes[(s+again)%programs].Receive(t.Context(), m); err != nil {
								t.Errorf("receive %s: %v", m.ID, err)
							}
						}
					}
				})
			}
			sending.Wait()
			var effects, distinct, disordered int
			await(t, "all effects are there", func() bool {
				row := admin.QueryRow(`SELECT count(*), count(DISTINCT id) FROM effect`)
				if err := row.Scan(&effects, &distinct); err != nil {
					t.Fatal(err)
				}
				return t.Failed() || distinct == senders*each
			})
			row := admin.QueryRow(`SELECT count(*) FROM effect a JOIN effect b ON a.n < b.n AND a.id > b.id
				AND split_part(a.id, '-', 1) = split_part(b.id, '-', 1) WHERE split_part(a.id, '-', 1)::int < $1`, groups)
			if err := row.Scan(&disordered); err != nil || effects != distinct || disordered > 0 {
				t.Errorf("%d effects of %d messages, %d out of order, %v", effects, distinct, disordered, err)
			}
			leftNothing(t, stores.Connect(t, "postgres", through+"&binary_parameters=yes"))
			if bad := said.find(slog.LevelWarn, ""); len(bad) > 0 {
				t.Errorf("logged at WARN or above: %q", bad)
			}
			want := 0
			if strings.HasPrefix(name, "pgxstore") {
				want = programs
			}
			if polls := said.find(slog.LevelInfo, "pooler (such as PgBouncer)"); len(polls) != want {
				t.Errorf("%d workers said why they poll, want %d: %q", len(polls), want, polls)
			}
		})
	}
}

// insertsEffect is a transactional handler for either kind of store.
func insertsEffect(store stores.Store) postroom.Handler {
	const insert = "INSERT INTO effect (id) VALUES ('%s')"
	if _, native := store.(*pgxstore.Store); native {
		return pgxstore.Handler(func(ctx context.Context, tx pgx.Tx, m *postroom.Message) error {
			_, err := tx.Exec(ctx, fmt.Sprintf(insert, m.ID))
			return err
		})
	}
	return sqlstore.Handler(func(ctx context.Context, tx *sql.Tx, m *postroom.Message) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf(insert, m.ID))
		return err
	})
}

// work runs a worker until the test ends.
func work(t *testing.T, in *inbox.Inbox, h postroom.Handler) {
	t.Helper()
	mux := inbox.NewMux()
	if err := mux.Handle("t", h); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	worker := inbox.NewWorker(in, mux, inbox.WorkerOptions{Concurrency: 6, Poll: 10 * time.Millisecond, MaxPoll: 50 * time.Millisecond})
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	running.Go(func() {
		if err := worker.Run(ctx); err != nil {
			t.Errorf("worker: %v", err)
		}
	})
}

// A driver that prepares statements is told what to set, by the first error.
func TestNever13_PgBouncer_in_transaction_mode_with_a_driver_that_prepares_says_what_to_set(t *testing.T) {
	for driver, want := range map[string]string{"pgx": "default_query_exec_mode=cache_describe", "postgres": "binary_parameters=yes"} {
		t.Run(driver, func(t *testing.T) {
			direct, through := services.FreshBouncedDatabase(t)
			store, err := openSQL(t, "pgx", direct)
			stores.Ready(t, store, err, stores.Connect(t, "pgx", direct), sqlstore.Options{}, stores.PostgresShift)
			twoSessions(t, stores.Connect(t, "pgx", through))
			if store, err = openSQL(t, driver, through); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if _, err = store.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Minute, Limit: 1}); err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one that says %s", err, want)
			}
		})
	}
}

// left tells what a session holds that outlasts a transaction, but for settings
// which PgBouncer itself keeps in step.
const left = `
	SELECT 'setting ' || name || '=' || setting FROM pg_settings WHERE source = 'session' AND setting <> ''
		AND name NOT LIKE 'transaction_%' AND name NOT IN ('client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings', 'application_name')
	UNION ALL SELECT 'prepared statement ' || name FROM pg_prepared_statements
	UNION ALL SELECT 'cursor ' || name FROM pg_cursors WHERE name <> ''
	UNION ALL SELECT 'listens to ' || c FROM pg_listening_channels() c
	UNION ALL SELECT 'advisory lock' FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
	UNION ALL SELECT 'temporary table ' || relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()`

// leftNothing looks at all sessions that PgBouncer has, which it lends out to as
// many transactions.
func leftNothing(t *testing.T, db *sql.DB) {
	t.Helper()
	for range 10 {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		var all sql.NullString
		if err := tx.QueryRowContext(t.Context(), "SELECT string_agg(x, ', ') FROM ("+left+") AS held(x)").Scan(&all); err != nil || all.Valid {
			t.Errorf("a session is left with: %s (%v)", all.String, err)
		}
	}
}

// twoSessions lets PgBouncer have two sessions to lend out in turn.
func twoSessions(t *testing.T, db *sql.DB) {
	t.Helper()
	for range 2 {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to be that %s", what)
		}
	}
}

// lines keep what was logged.
type lines struct {
	mu   sync.Mutex
	kept []slog.Record
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, r)
	return nil
}

// find gives the lines at the level or above that have part in them.
func (l *lines) find(level slog.Level, part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.kept {
		text := r.Message
		r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
		if r.Level >= level && strings.Contains(text, part) {
			found = append(found, text)
		}
	}
	return found
}
