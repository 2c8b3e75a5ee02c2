// Package outbox_test proves the outbox on each database, with transactions of
// its drivers and with processes that are killed.
package outbox_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/mysql"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
	"github.com/postroom/postroom/sqlstore/sqlserver"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// A world is a database with the tables of a shop: its orders, what its sender
// sent, and an outbox.
type world struct {
	testing.TB
	kind, dsn string
	db        *sql.DB
	store     box.Store
	out       *outbox.Outbox
	// open gives a store on the pool of this one.
	open func(prefix string) box.Store
	// begin starts a transaction of the caller's own.
	begin func() callerTx
	// handler makes a transactional handler that gets such a transaction.
	handler func(fn func(ctx context.Context, tx callerTx) error) postroom.TxHandler
	// advance lets time pass for the outbox.
	advance func(time.Duration)
}

// A callerTx is a *sql.Tx or a pgx.Tx.
type callerTx struct {
	own              postroom.Tx
	exec             func(query string) error
	commit, rollback func() error
}

// databases are the kinds of database, and servers those of them where several
// transactions write at once.
var (
	databases = append([]string{"sqlite"}, servers...)
	servers   = []string{"postgres", "pgx", "mariadb", "sqlserver"}
)

// onEach runs a test on each kind of database.
func onEach(t *testing.T, o outbox.Options, test func(w *world)) { on(t, databases, o, test) }

// onServers runs a test where several transactions write at once.
func onServers(t *testing.T, o outbox.Options, test func(w *world)) { on(t, servers, o, test) }

func on(t *testing.T, kinds []string, o outbox.Options, test func(w *world)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { test(newWorld(t, kind, o)) })
	}
}

func newWorld(t testing.TB, kind string, o outbox.Options) *world {
	t.Helper()
	var dsn, serial string
	switch kind {
	case "sqlite":
		dsn = "file:" + filepath.Join(t.TempDir(), "shop.db") + "?_pragma=synchronous(0)&_pragma=busy_timeout(10000)"
		serial = "INTEGER PRIMARY KEY AUTOINCREMENT"
	case "mariadb":
		dsn, serial = services.FreshMySQL(t, services.MariaDB(t)), "bigint AUTO_INCREMENT PRIMARY KEY"
	case "sqlserver":
		dsn, serial = services.FreshSQLServer(t, services.SQLServer(t)), "bigint IDENTITY PRIMARY KEY"
	default:
		dsn, serial = services.FreshDatabase(t, services.Postgres(t)), "bigserial PRIMARY KEY"
	}
	w := join(t, kind, dsn, o)
	w.must(w.store.(box.Migrator).Migrate(t.Context()))
	w.exec(`CREATE TABLE orders (id varchar(100) PRIMARY KEY)`)
	w.exec(`CREATE TABLE sent (n ` + serial + `, id varchar(100) NOT NULL)`)
	return w
}

// join opens a world that is there.
func join(t testing.TB, kind, dsn string, o outbox.Options) *world {
	t.Helper()
	w := &world{TB: t, kind: kind, dsn: dsn}
	shift := stores.PostgresShift
	switch kind {
	case "sqlite":
		w.db, shift = stores.Connect(t, "sqlite", dsn), stores.SQLiteShift
		w.overSQL(sqlite.Dialect)
	case "mariadb":
		w.db, shift = stores.Connect(t, "mysql", dsn), stores.MySQLShift
		w.overSQL(mysql.Dialect)
	case "sqlserver":
		w.db, shift = stores.Connect(t, "sqlserver", dsn), stores.SQLServerShift
		w.overSQL(sqlserver.Dialect)
	case "postgres":
		w.db = stores.Connect(t, "pgx", dsn)
		w.overSQL(postgres.Dialect)
	default:
		w.db = stores.Connect(t, "pgx", dsn)
		pool, err := pgxpool.New(t.Context(), dsn)
		w.must(err)
		t.Cleanup(pool.Close)
		w.overPgx(pool)
	}
	o.Source, o.Logger = "shop", slog.New(slog.DiscardHandler)
	var err error
	w.out, err = outbox.New(w.store, o)
	w.must(err)
	t.Cleanup(func() { _ = w.out.Close() })
	w.advance = func(d time.Duration) {
		set := stores.Ready(t, w.out.Box().Store().(stores.Store), nil, w.db, sqlstore.Options{Prefix: "postroom_outbox"}, shift)
		set.Advance(d)
	}
	return w
}

func (w *world) overSQL(d *sqlstore.Dialect) {
	w.Helper()
	w.open = func(prefix string) box.Store {
		w.Helper()
		store, err := sqlstore.Open(w.db, d, sqlstore.Options{Prefix: prefix})
		w.must(err)
		return store
	}
	w.store = w.open("")
	wrap := func(tx *sql.Tx) callerTx {
		return callerTx{
			own:    sqlstore.Tx(tx),
			exec:   func(q string) error { _, err := tx.ExecContext(context.Background(), q); return err },
			commit: tx.Commit, rollback: tx.Rollback,
		}
	}
	w.begin = func() callerTx {
		w.Helper()
		tx, err := w.db.BeginTx(context.Background(), nil)
		w.must(err)
		w.Cleanup(func() { _ = tx.Rollback() })
		return wrap(tx)
	}
	w.handler = func(fn func(context.Context, callerTx) error) postroom.TxHandler {
		return sqlstore.Handler(func(ctx context.Context, tx *sql.Tx, _ *postroom.Message) error { return fn(ctx, wrap(tx)) })
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) exec(query string, args ...any) {
	w.Helper()
	_, err := w.db.ExecContext(context.Background(), query, args...)
	w.must(err)
}

func (w *world) count(query string) (n int) {
	w.Helper()
	w.must(w.db.QueryRowContext(context.Background(), query).Scan(&n))
	return n
}

// kept is how many messages the outbox holds.
func (w *world) kept() int {
	w.Helper()
	return w.count("SELECT count(*) FROM postroom_outbox_message")
}

func message(id, group string) postroom.Message {
	return postroom.Message{ID: id, Topic: "order.placed", Group: group, Payload: []byte("payload of " + id)}
}

// add commits messages, in a transaction of their own.
func (w *world) add(msgs ...postroom.Message) {
	w.Helper()
	tx := w.begin()
	w.must(w.out.Add(w.Context(), tx.own, msgs...))
	w.must(tx.commit())
}

// send relays all that is ready.
func (w *world) send(s postroom.Sender) {
	w.Helper()
	w.must(outbox.NewRelay(w.out, outbox.To(s), outbox.RelayOptions{}).RunUntilIdle(w.Context()))
}

// recorder is a sender that keeps what it confirmed.
type recorder struct {
	mu     sync.Mutex
	sent   []string
	refuse func(m *postroom.Message) error
}

func (r *recorder) Send(_ context.Context, msgs []*postroom.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := make(postroom.SendErrors, len(msgs))
	for i, m := range msgs {
		if r.refuse != nil {
			errs[i] = r.refuse(m)
		}
		if errs[i] == nil {
			r.sent = append(r.sent, m.ID)
		}
	}
	return errs.Err()
}

func (r *recorder) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

func equal(t testing.TB, got, want []string, why string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: %s", got, want, why)
	}
}

// patience is how long something that must come soon may take on a slow machine.
const patience = time.Minute

// until waits for something that must come soon.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	if !w.within(patience, ok) {
		w.Fatalf("waited in vain until %s", what)
	}
}

func (w *world) within(limit time.Duration, ok func() bool) bool {
	over := time.After(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-over:
			return ok()
		case <-tick.C:
		}
	}
	return true
}

func (w *world) overPgx(pool *pgxpool.Pool) {
	w.Helper()
	w.open = func(prefix string) box.Store {
		w.Helper()
		store, err := pgxstore.Open(pool, pgxstore.Options{Prefix: prefix})
		w.must(err)
		return store
	}
	w.store = w.open("")
	w.begin = func() callerTx {
		w.Helper()
		tx, err := pool.Begin(context.Background())
		w.must(err)
		w.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		return wrapPgx(tx)
	}
	w.handler = func(fn func(context.Context, callerTx) error) postroom.TxHandler {
		return pgxstore.Handler(pgxHandler(fn))
	}
}

// beside gives a store of another module, with tables of its own on the pool of
// this one.
func (w *world) beside(prefix string) box.Store {
	w.Helper()
	store := w.open(prefix)
	w.must(store.(box.Migrator).Migrate(w.Context()))
	return store
}
