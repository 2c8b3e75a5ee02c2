package never

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/mysql"
	"github.com/postroom/postroom/sqlstore/postgres"
	"github.com/postroom/postroom/sqlstore/sqlite"
	"github.com/postroom/postroom/sqlstore/sqlserver"
	"github.com/postroom/postroom/tests/park"
	"github.com/postroom/postroom/tests/services"
	_ "modernc.org/sqlite"
)

const (
	consumer = "orders"
	source   = "shop"
	// leaseTime ends only when a test lets time pass.
	leaseTime = 10 * time.Minute
	// brief is a wait that a test has to sit out to its end.
	brief = 50 * time.Millisecond
)

// A world is one database with a table set. Parties to a race join it, each with
// a store, a pool and a lot of its own, as separate programs would.
type world struct {
	testing.TB
	driver  string
	dsn     string
	dialect *sqlstore.Dialect
	// minus is how the dialect takes microseconds off a time.
	minus string
	// native: its programs work through pgxstore.
	native bool
	// part tells databases apart that share out what all of them can't do.
	part int
	*party
}

// A party is one program at work in a world.
type party struct {
	testing.TB
	lot   *park.Lot
	db    *sql.DB
	store *sqlstore.Store
}

func (w *world) postgres() bool  { return w.dialect == postgres.Dialect }
func (w *world) mysql() bool     { return w.dialect == mysql.Dialect }
func (w *world) sqlite() bool    { return w.dialect == sqlite.Dialect }
func (w *world) sqlserver() bool { return w.dialect.Name == sqlserver.Dialect.Name }

func newPostgres(t testing.TB) *world {
	t.Helper()
	return startPostgres(t, services.Postgres(t))
}

func newPostgres18(t testing.TB) *world {
	t.Helper()
	w := startPostgres(t, services.Postgres18(t))
	w.part = 1
	return w
}

// startPostgres gives each world a schema of its own in a database that the
// whole run shares: making a database takes longer than most of the tests.
func startPostgres(t testing.TB, server string) *world {
	t.Helper()
	database := run.database(server)
	schema := "world_" + strings.ToLower(rand.Text())
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	dsn, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	query := dsn.Query()
	query.Set("search_path", schema)
	dsn.RawQuery = query.Encode()
	return start(t, &world{
		driver: "pgx", dsn: dsn.String(),
		dialect: postgres.Dialect, minus: "%[1]s = %[1]s - %[2]d * interval '1 microsecond'",
	})
}

func newMariaDB(t testing.TB) *world {
	t.Helper()
	return startMySQL(t, services.MariaDB(t))
}

func newMySQL(t testing.TB) *world {
	t.Helper()
	return startMySQL(t, services.MySQL(t))
}

func startMySQL(t testing.TB, server string) *world {
	t.Helper()
	// The lot stands between statements and the driver, not between prepared
	// statements and it.
	return start(t, &world{
		driver: "mysql", dsn: services.FreshMySQL(t, server) + "?interpolateParams=true",
		dialect: mysql.Dialect, minus: "%[1]s = %[1]s - %[2]d",
	})
}

func newSQLServer(t testing.TB) *world {
	t.Helper()
	return start(t, &world{
		driver: "sqlserver", dsn: services.FreshSQLServer(t, services.SQLServer(t)),
		dialect: sqlserver.Dialect, minus: "%[1]s = %[1]s - %[2]d",
	})
}

func newSQLite(t testing.TB) *world {
	t.Helper()
	return start(t, &world{
		driver: "sqlite", part: 2, dsn: "file:" + filepath.Join(t.TempDir(), "box.db") + "?_pragma=synchronous(0)",
		dialect: sqlite.Dialect, minus: "%[1]s = %[1]s - %[2]d",
	})
}

func start(t testing.TB, w *world) *world {
	t.Helper()
	w.TB = t
	w.party = w.join(sqlstore.Options{})
	if err := w.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.exec(`CREATE TABLE effect (id varchar(100) NOT NULL)`)
	db := w.db
	t.Cleanup(func() {
		if !t.Failed() {
			CheckInvariants(t, db, "postroom")
		}
	})
	return w
}

// onAll runs a test on each kind of database.
func onAll(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newSQLite(t)) })
	onServers(t, test)
}

// onPostgres runs a test of what only PostgreSQL does.
func onPostgres(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("postgres", func(t *testing.T) { test(t, newPostgres(t)) })
	t.Run("postgres18", func(t *testing.T) { test(t, newPostgres18(t)) })
}

// onServers runs a test where several transactions write at once.
func onServers(t *testing.T, test func(t *testing.T, w *world)) {
	onPostgres(t, test)
	t.Run("mariadb", func(t *testing.T) { test(t, newMariaDB(t)) })
	t.Run("mysql", func(t *testing.T) { test(t, newMySQL(t)) })
	t.Run("sqlserver", func(t *testing.T) { test(t, newSQLServer(t)) })
}

// join lets another program in.
func (w *world) join(opts sqlstore.Options) *party {
	w.Helper()
	return w.joinSkewed(0, opts)
}

// joinSkewed lets a program in for whom the server's clock is ahead by skew.
func (w *world) joinSkewed(skew time.Duration, opts sqlstore.Options) *party {
	w.Helper()
	if w.mysql() && skew != 0 {
		// Times are numbers there, but a session's clock can be set, for all.
		w.dsn += fmt.Sprintf("&timestamp=%d", time.Now().Add(skew).Unix())
		w.party = w.join(opts)
		return w.join(opts)
	}
	if w.sqlserver() && skew != 0 {
		// There a session has no clock of its own: its statements read another.
		d := *w.dialect
		d.Statements = strings.ReplaceAll(d.Statements, "SYSUTCDATETIME()", fmt.Sprintf("DATEADD(SECOND, %d, SYSUTCDATETIME())", int(skew.Seconds())))
		w.dialect, w.party = &d, nil
		w.party = w.join(opts)
		return w.join(opts)
	}
	p := &party{TB: w.TB, lot: park.New()}
	p.lot.Skew(skew)
	p.db = p.lot.Open(w.TB, w.driver, w.dsn)
	var err error
	if p.store, err = sqlstore.Open(p.db, w.dialect, opts); err != nil {
		w.Fatal(err)
	}
	return p
}

// hasty lets a program in that waits only briefly.
func (w *world) hasty() *party { w.Helper(); return w.join(sqlstore.Options{Wait: brief}) }

// notesClaims tells whether leases are found by the claims that made them.
func (w *world) notesClaims() bool { return w.dialect == postgres.Dialect }

// pass lets time pass: it moves all stored times into the past.
func (w *world) pass(d time.Duration) {
	w.Helper()
	times := map[string][]string{
		"message": {"due_at", "expires_at", "occurred_at", "first_seen"},
		"work":    {"due", "retry", "next", "expires", "lease_until", "last_seen"},
		"done":    {"done_at", "last_seen"},
	}
	if w.notesClaims() {
		times["claim"] = []string{"until"}
	}
	for table, columns := range times {
		set := ""
		for i, c := range columns {
			if i > 0 {
				set += ", "
			}
			set += fmt.Sprintf(w.minus, c, d.Microseconds())
		}
		w.exec("UPDATE postroom_" + table + " SET " + set)
	}
}

func (p *party) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *party) exec(query string) {
	p.Helper()
	_, err := p.db.ExecContext(p.Context(), query)
	p.must(err)
}

func (p *party) count(query string) (n int) {
	p.Helper()
	p.must(p.db.QueryRowContext(p.Context(), query).Scan(&n))
	return n
}

// effects counts what handlers did for a message.
func (p *party) effects(id string) int {
	p.Helper()
	return p.count(`SELECT count(*) FROM effect WHERE id = '` + id + `'`)
}

func addEffect(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO effect (id) VALUES ('`+id+`')`)
	return err
}

func message(id string) postroom.Message {
	return postroom.Message{Consumer: consumer, Source: source, ID: id, Topic: "topic", Payload: []byte("of " + id)}
}

func grouped(id, group string) postroom.Message {
	m := message(id)
	m.Group = group
	return m
}

func key(id string) postroom.Key { return postroom.Key{Consumer: consumer, Source: source, ID: id} }

func put(mode box.Mode, m postroom.Message) box.Put {
	return box.Put{Mode: mode, Message: m, Owner: "guard", Lease: leaseTime, Handler: "handler"}
}

// try puts one message, in the caller's transaction if there is one.
func (p *party) try(tx *sql.Tx, mode box.Mode, m postroom.Message) (box.PutResult, error) {
	var ptx postroom.Tx
	if tx != nil {
		ptx = sqlstore.Tx(tx)
	}
	res, err := p.store.Put(p.Context(), ptx, []box.Put{put(mode, m)})
	if err != nil {
		return box.PutResult{}, err
	}
	return res[0], res[0].Err
}

func (p *party) receive(m postroom.Message) box.PutResult {
	p.Helper()
	res, err := p.try(nil, box.Queue, m)
	p.must(err)
	return res
}

func (p *party) receiveAs(want postroom.Outcome, m postroom.Message) {
	p.Helper()
	if res := p.receive(m); res.Outcome != want {
		p.Errorf("receiving %s gave %v, want %v", m.ID, res.Outcome, want)
	}
}

func (p *party) claim(owner string, limit int) []*postroom.Message {
	p.Helper()
	got, err := p.store.Claim(p.Context(), box.ClaimRequest{Consumer: consumer, Owner: owner, Lease: leaseTime, Limit: limit})
	p.must(err)
	if len(got) > limit {
		p.Errorf("a claim of %d gave %d", limit, len(got))
	}
	return got
}

func (p *party) claimOne(owner, id string) *postroom.Message {
	p.Helper()
	got := p.claim(owner, 100)
	if len(got) != 1 || got[0].ID != id {
		p.Fatalf("claimed %v, want %s alone", ids(got), id)
	}
	return got[0]
}

func (p *party) settle(m *postroom.Message, verb box.Verb) box.Settled {
	p.Helper()
	res, err := p.store.Settle(p.Context(), nil, []box.Settlement{{Lease: m.Lease, Verb: verb, Error: "failed", Handler: "handler"}})
	p.must(err)
	return res[0]
}

func (p *party) ack(m *postroom.Message) {
	p.Helper()
	if !p.settle(m, box.Ack).Applied {
		p.Errorf("the ack of %s was not applied", m.ID)
	}
}

func (p *party) reap() []box.Reaped {
	p.Helper()
	got, err := p.store.Reap(p.Context(), box.ReapRequest{Consumer: consumer})
	p.must(err)
	return got
}

// stands says where a message stands: none, done, or its stage.
func (p *party) stands(id string) string {
	p.Helper()
	rec, err := p.store.Get(p.Context(), key(id))
	switch {
	case errors.Is(err, postroom.ErrNotFound):
		return "none"
	case err != nil:
		p.Fatal(err)
		return ""
	case rec.State == postroom.StateDone:
		return "done"
	default:
		return rec.Stage.String()
	}
}

func (p *party) expect(id, want string) {
	p.Helper()
	if got := p.stands(id); got != want {
		p.Errorf("message %s is %s, want %s", id, got, want)
	}
}

func (p *party) beginSQL(level sql.IsolationLevel) *sql.Tx {
	p.Helper()
	tx, err := p.db.BeginTx(p.Context(), &sql.TxOptions{Isolation: level})
	p.must(err)
	p.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (p *party) inbox() *inbox.Inbox {
	p.Helper()
	in, err := inbox.New(p.store, consumer, inbox.Options{Logger: slog.New(slog.DiscardHandler)})
	p.must(err)
	return in
}

func ids(messages []*postroom.Message) []string {
	names := []string{}
	for _, m := range messages {
		names = append(names, m.ID)
	}
	return names
}

// dialects are those that a started program is told the name of.
var dialects = []*sqlstore.Dialect{postgres.Dialect, sqlite.Dialect, mysql.Dialect, sqlserver.Dialect}

// eventually asks the database until it is so. It is for what the server does by
// itself, which no park can hold.
func (p *party) eventually(what string, is func() bool) {
	p.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("it never came to be that %s; what ran: %s", what, strings.Join(p.lot.Trace(), " "))
		}
		if _, mysql := p.db.Driver().(*driver.MySQLDriver); mysql {
			// InnoDB brings what it shows up to date only after nobody has
			// looked for a tenth of a second.
			time.Sleep(110 * time.Millisecond)
		}
	}
}

func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}
