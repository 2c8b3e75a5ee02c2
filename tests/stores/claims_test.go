package stores_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// A claim locks and changes a row for each message, and writes no index for it.
func TestClaim_writes_no_index(t *testing.T) {
	const n = 100
	seen := &traced{names: []string{"claim"}}
	pool, store := seen.open(t)
	pass(t, store, n)
	fill(t, store, n)
	claims := seen.all
	if len(claims) != 1 {
		t.Fatalf("%d claims", len(claims))
	}
	if got := explained(t, pool, claims[0]).Records; got < 2*n || got > 2*n+20 {
		t.Errorf("%d records of the log for %d messages", got, n)
	}
}

// leasing is a store on PostgreSQL with messages, and how they are leased.
type leasing struct {
	*testing.T
	stores.Open
}

func newLeasing(t *testing.T, ids ...string) leasing {
	t.Helper()
	l := leasing{t, stores.Pgx(t, services.Postgres(t), pgxstore.Options{})}
	for _, id := range ids {
		l.put(id, "x")
	}
	return l
}

func (l leasing) put(id, payload string) {
	l.Helper()
	_, err := l.Store.Put(l.Context(), nil, []box.Put{{Mode: box.Queue, Message: postroom.Message{
		Consumer: "c", Source: "s", ID: id, Topic: "t", Payload: []byte(payload),
	}}})
	if err != nil {
		l.Fatal(err)
	}
}

func (l leasing) claim(d time.Duration) []*postroom.Message {
	l.Helper()
	got, err := l.Store.Claim(l.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: d, Limit: 10})
	if err != nil || len(got) == 0 {
		l.Fatal(len(got), err)
	}
	return got
}

func (l leasing) extend(m *postroom.Message, d time.Duration) {
	l.Helper()
	ext, err := l.Store.Extend(l.Context(), []postroom.Lease{m.Lease}, d)
	if err != nil || !ext[0].Extended {
		l.Fatal(ext, err)
	}
}

// reap checks which leases have ended, and how many claims are remembered after it.
func (l leasing) reap(claims int, want ...string) {
	l.Helper()
	reaped, err := l.Store.Reap(l.Context(), box.ReapRequest{Consumer: "c"})
	if err != nil {
		l.Fatal(err)
	}
	var got []string
	for _, r := range reaped {
		got = append(got, r.Key.ID)
	}
	slices.Sort(got)
	var n int
	if err := l.DB.QueryRow("SELECT count(*) FROM postroom_claim").Scan(&n); err != nil {
		l.Fatal(err)
	}
	if !slices.Equal(got, want) || n != claims {
		l.Errorf("%q were reaped, and %d claims are left; want %q and %d", got, n, want, claims)
	}
}

func TestReap_finds_each_lease_by_its_claim(t *testing.T) {
	l := newLeasing(t, "done", "extended", "lapsed")
	got := l.claim(time.Minute)
	if _, err := l.Store.Settle(t.Context(), nil, []box.Settlement{{Lease: got[0].Lease, Verb: box.Ack}}); err != nil {
		t.Fatal(err)
	}
	l.reap(1)
	l.extend(got[1], time.Hour)
	l.Advance(2 * time.Minute)
	l.reap(1, "lapsed")
	l.reap(1)
	l.Advance(time.Hour)
	l.reap(0, "extended")
}

func TestReap_finds_a_lease_that_was_made_shorter(t *testing.T) {
	l := newLeasing(t, "short", "long")
	l.extend(l.claim(time.Hour)[0], time.Minute)
	l.Advance(2 * time.Minute)
	l.reap(1, "short")
	l.Advance(time.Hour)
	l.reap(0, "long")
}

func TestReap_finds_a_lease_whose_content_was_replaced(t *testing.T) {
	l := newLeasing(t, "a", "b")
	l.claim(time.Minute)
	l.put("a", "another")
	l.Advance(2 * time.Minute)
	l.reap(0, "a", "b")
}

func TestReap_finds_the_lease_of_a_suspect(t *testing.T) {
	l := newLeasing(t, "killer")
	for range box.SuspectAt {
		l.claim(time.Minute)
		l.Advance(2 * time.Minute)
		l.reap(0, "killer")
	}
	got, err := l.Store.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Minute, Limit: 1, Suspect: true})
	if err != nil || len(got) != 1 {
		t.Fatal(len(got), err)
	}
	l.Advance(2 * time.Minute)
	l.reap(0, "killer")
}

// More leases than one pass takes are found by the next ones.
func TestReap_keeps_a_claim_until_all_its_leases_are_ended(t *testing.T) {
	l := newLeasing(t, "a", "b", "c")
	l.claim(time.Minute)
	l.Advance(2 * time.Minute)
	for _, left := range []int{1, 1, 0} {
		reaped, err := l.Store.Reap(t.Context(), box.ReapRequest{Consumer: "c", Limit: 1})
		if err != nil || len(reaped) != 1 {
			t.Fatal(reaped, err)
		}
		var n int
		if err := l.DB.QueryRow("SELECT count(*) FROM postroom_claim").Scan(&n); err != nil || n != left {
			t.Errorf("%d claims are left, want %d: %v", n, left, err)
		}
	}
}

// Two claims that come to wait for the same lease become one.
func TestReap_goes_on_after_a_lease_was_made_shorter_and_longer(t *testing.T) {
	l := newLeasing(t, "first", "second")
	got := l.claim(10 * time.Minute)
	l.extend(got[0], time.Minute)
	l.extend(got[0], time.Hour)
	l.extend(got[1], time.Hour)
	l.Advance(20 * time.Minute)
	l.reap(1)
	l.Advance(time.Hour)
	l.reap(0, "first", "second")
}

// Where claims are for a few messages each, there are many.
func TestReap_looks_through_all_claims_that_have_fallen_due(t *testing.T) {
	l := newLeasing(t, "late")
	l.claim(time.Minute)
	l.Advance(2 * time.Minute)
	_, err := l.DB.Exec(`INSERT INTO postroom_claim SELECT 'c', statement_timestamp() - interval '1 hour', -n, -n FROM generate_series(1, 2500) n`)
	if err != nil {
		t.Fatal(err)
	}
	l.reap(0, "late")
}

// whole is a plan that reads all of a large table.
var (
	whole     = regexp.MustCompile(`"Seq Scan"[^}]*"Relation Name": "postroom_(work|message)"`)
	wholeWork = regexp.MustCompile(`"Seq Scan"[^}]*"Relation Name": "postroom_work"`)
)

// A batch is leased by where its rows are: to join them, the planner would read all
// of a table of middle size.
func TestClaim_reads_only_what_it_leases(t *testing.T) {
	seen := &traced{names: []string{"claim"}}
	pool, store := seen.open(t)
	fill(t, store, 2000)
	if _, err := pool.Exec(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Hour, Limit: 500}); err != nil {
		t.Fatal(err)
	}
	if len(seen.all) != 1 {
		t.Fatalf("%d statements", len(seen.all))
	}
	if c := explained(t, pool, seen.all[0]); wholeWork.MatchString(c.plan) {
		t.Errorf("reads everything: %s", c.plan)
	}
}

// A plan that is made while there is nothing to do is kept for when there is.
func TestClaim_is_planned_for_more_than_there_is(t *testing.T) {
	seen := &traced{names: []string{"claim"}}
	pool, store := seen.open(t)
	if _, err := store.Claim(t.Context(), box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Hour, Limit: 500}); err != nil {
		t.Fatal(err)
	}
	plan := func() (text string, err error) {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			return "", err
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		for _, statement := range []string{
			"SET LOCAL plan_cache_mode = force_generic_plan",
			"PREPARE kept (text, bigint, text, bigint, bigint) AS " + seen.all[0].SQL,
		} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return "", err
			}
		}
		err = tx.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) EXECUTE kept ('c', 500, 'w', 1, 0)").Scan(&text)
		return text, err
	}
	text, err := plan()
	if err != nil {
		t.Fatal(err)
	}
	if whole.MatchString(text) {
		t.Errorf("reads everything: %s", text)
	}
}

// What is ready costs reaping nothing: the planner must not read all of it.
func TestReap_reads_only_what_claims_lead_to(t *testing.T) {
	seen := &traced{names: []string{"expired_leases", "forget_claims"}}
	pool, store := seen.open(t)
	fill(t, store, 1)
	for _, statement := range []string{
		`INSERT INTO postroom_work (seq, position, ready_position, last_seen, attempt, lost, revision, guard, place, consumer, topic, grp, last_error, stage, owner, fence)
		 SELECT -n, -n, -n, w.last_seen, 0, 0, 1, 0, 7, 'c', 't', '', '', 7, '', 0 FROM generate_series(1, 200000) n, postroom_work w`,
		`ANALYZE postroom_work`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.(box.Sweeper).Reap(t.Context(), box.ReapRequest{Consumer: "c"}); err != nil {
		t.Fatal(err)
	}
	for _, d := range seen.all {
		if c := explained(t, pool, d); whole.MatchString(c.plan) {
			t.Errorf("reads everything: %.40s %s", d.SQL, c.plan)
		}
	}
	if len(seen.all) != 2 {
		t.Errorf("%d statements", len(seen.all))
	}
}
