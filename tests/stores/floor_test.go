package stores_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/tests/services"
)

// While somebody's snapshot keeps the rows of all that was done meanwhile from
// being removed, a claim reads about as many blocks as it does on an empty table.
func TestClaim_costs_no_more_than_twice_under_a_snapshot_held_open(t *testing.T) {
	underSnapshot(t, &traced{names: []string{"claim", "peek"}})
}

// And so does an acknowledgement, of what ends alike and of the rest.
func TestAck_costs_no_more_than_twice_under_a_snapshot_held_open(t *testing.T) {
	underSnapshot(t, &traced{names: []string{"ack", "ack_numbers"}})
}

// underSnapshot compares what the named statements read on an empty table with
// what they read after many messages under a snapshot.
func underSnapshot(t *testing.T, seen *traced) {
	t.Helper()
	const drained, batch = 20_000, 1000
	pool, store := seen.open(t)
	other, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(context.Background()) })

	pass(t, store, batch)
	fill(t, store, batch) // so that the statistics know of rows that nobody leases
	if _, err := pool.Exec(t.Context(), "ANALYZE postroom_work"); err != nil {
		t.Fatal(err)
	}
	ack(t, store, batch)
	empty := seen.blocks(t, store, pool)
	if _, err := other.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM postroom_work"); err != nil {
		t.Fatal(err)
	}
	for range drained / batch {
		pass(t, store, batch)
	}
	held := seen.blocks(t, store, pool)
	t.Logf("%v reads %d blocks, and %d after %d messages under the snapshot", seen.names, empty, held, drained)
	if held > 2*empty {
		t.Errorf("%v reads %d blocks after %d messages under the snapshot, on an empty table %d", seen.names, held, drained, empty)
	}
}

// pass lets messages go all the way from Put to Done.
func pass(t *testing.T, store box.Store, n int) {
	t.Helper()
	fill(t, store, n)
	ack(t, store, n)
}

func fill(t *testing.T, store box.Store, n int) {
	t.Helper()
	puts := make([]box.Put, n)
	for i := range puts {
		puts[i] = box.Put{Mode: box.Queue, Message: postroom.Message{
			Consumer: "c", Source: "s", ID: postroom.NewID(), Topic: "t", Payload: []byte("x"),
		}}
	}
	if _, err := store.Put(t.Context(), nil, puts); err != nil {
		t.Fatal(err)
	}
}

func ack(t *testing.T, store box.Store, n int) {
	t.Helper()
	got, err := store.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Hour, Limit: n, ReadyOnly: true})
	if err != nil || len(got) != n {
		t.Fatalf("claimed %d of %d: %v", len(got), n, err)
	}
	ends := make([]box.Settlement, n)
	for i, m := range got {
		ends[i] = box.Settlement{Lease: m.Lease, Verb: box.Ack}
		if i%4 == 3 {
			ends[i].Handler = "another"
		}
	}
	if _, err := store.Settle(t.Context(), nil, ends); err != nil {
		t.Fatal(err)
	}
}

// traced keeps the statements of some names.
type traced struct {
	names []string
	mode  pgx.QueryExecMode // how statements are run, if not as usual
	all   []pgx.TraceQueryStartData
}

// open makes a store on a database of its own.
func (c *traced) open(t *testing.T) (*pgxpool.Pool, box.Store) {
	t.Helper()
	config, err := pgxpool.ParseConfig(services.FreshDatabase(t, services.Postgres(t)))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = c
	if c.mode != 0 {
		config.ConnConfig.DefaultQueryExecMode = c.mode
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxstore.Open(pool, pgxstore.Options{})
	if err == nil {
		err = store.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return pool, store
}

func (c *traced) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	for _, name := range c.names {
		if strings.HasPrefix(d.SQL, "/* postroom:"+name+" */") {
			c.all = append(c.all, d)
		}
	}
	return ctx
}

func (c *traced) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// blocks lets the store claim and settle a few times, and tells how many blocks the
// server reads for that: the median, since now and then a claim looks at all.
func (c *traced) blocks(t *testing.T, store box.Store, pool *pgxpool.Pool) int {
	t.Helper()
	const limit = 20
	var costs []int
	for range 5 {
		c.all = nil
		pass(t, store, limit)
		// A look for suspects also looks for what fell due, and claims nothing.
		if _, err := store.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Hour, Limit: 1, Suspect: true}); err != nil {
			t.Fatal(err)
		}
		fill(t, store, limit) // for what is explained to claim
		cost := 0
		for _, d := range slices.Clone(c.all) {
			cost += explained(t, pool, d).blocks()
		}
		if cost == 0 {
			t.Fatalf("%v did not run", c.names)
		}
		costs = append(costs, cost)
		ack(t, store, limit)
	}
	slices.Sort(costs)
	return costs[len(costs)/2]
}

// A cost is what the server says that a statement took.
type cost struct {
	Hit     int `json:"Shared Hit Blocks"`
	Read    int `json:"Shared Read Blocks"`
	Records int `json:"WAL Records"`
	plan    string
}

func (c cost) blocks() int { return c.Hit + c.Read }

// explained runs a statement once more, to no effect, and tells what it takes.
func explained(t *testing.T, pool *pgxpool.Pool, d pgx.TraceQueryStartData) cost {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	var text []byte
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON) "+d.SQL, d.Args...).Scan(&text); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", d.SQL, err))
	}
	var plans []struct{ Plan cost }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	plans[0].Plan.plan = string(text)
	return plans[0].Plan
}
