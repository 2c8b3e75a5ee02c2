package stores_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// lane is a store on PostgreSQL with groups.
type lane struct {
	*testing.T
	stores.Open
}

func newLane(t *testing.T, isolation string) lane {
	return lane{t, stores.Pgx(t, services.Postgres(t)+"&default_transaction_isolation="+url.PathEscape(isolation), pgxstore.Options{})}
}

// put receives messages, whose group is their first letter.
func (l lane) put(ids ...string) {
	l.Helper()
	for _, id := range ids {
		m := postroom.Message{Consumer: "c", Source: "s", ID: id, Topic: "t", Group: id[:1]}
		if _, err := l.Store.Put(l.Context(), nil, []box.Put{{Mode: box.Queue, Message: m}}); err != nil {
			l.Fatal(err)
		}
	}
}

// exchange acknowledges messages and gives what is claimed next.
func (l lane) exchange(messages []*postroom.Message) ([]*postroom.Message, error) {
	ends := make([]box.Settlement, len(messages))
	for i, m := range messages {
		ends[i] = box.Settlement{Lease: m.Lease, Verb: box.Ack, Grouped: true}
	}
	req := l.request()
	req.ReadyOnly = true
	settled, next, err := l.Store.(box.Exchanger).Exchange(l.Context(), ends, req)
	for i, s := range settled {
		if !s.Applied {
			l.Errorf("%s was not acknowledged: %+v", messages[i].ID, s)
		}
	}
	return next, err
}

func (l lane) request() box.ClaimRequest {
	return box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Minute, Limit: 10}
}

func (l lane) claim() []*postroom.Message {
	l.Helper()
	got, err := l.Store.Claim(l.Context(), l.request())
	if err != nil {
		l.Fatal(err)
	}
	return got
}

// exchangeDuring is exchange of what must wait for a transaction with these
// statements, which commits after meanwhile was run.
func (l lane) exchangeDuring(messages []*postroom.Message, statements []string, meanwhile string) []*postroom.Message {
	l.Helper()
	tx, err := l.DB.Begin()
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, text := range statements {
		if _, err := tx.Exec(l.named(text)); err != nil {
			l.Fatal(err)
		}
	}
	var next []*postroom.Message
	ended := make(chan error)
	go func() {
		var err error
		next, err = l.exchange(messages)
		ended <- err
	}()
	await(l.T, "the exchange waits", func() bool {
		var n int
		row := l.DB.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		return row.Scan(&n) == nil && n > 0
	})
	if _, err := l.DB.Exec(l.named(meanwhile)); err != nil {
		l.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		l.Fatal(err)
	}
	if err := <-ended; err != nil {
		l.Fatal(err)
	}
	return append(next, l.claim()...) // the slow way, after too long a wait, leaves some to the next claim
}

func (l lane) named(text string) string { return strings.ReplaceAll(text, "postroom_", l.Tables) }

func idsOf(messages []*postroom.Message) string {
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// What is sorted into a lane while an exchange waits for it comes next: that the lane
// is empty must not be read off what was there when the exchange began, whatever the
// isolation that sessions have by default.
func TestNever16_an_exchange_sees_what_was_sorted_while_it_waited_for_the_lane(t *testing.T) {
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		for _, lock := range []string{`SELECT FROM postroom_lane FOR UPDATE`, `UPDATE postroom_lane SET position = position - 1`} {
			t.Run(isolation+", "+lock, func(t *testing.T) {
				l := newLane(t, isolation)
				l.put("a1")
				heads := l.claim()
				l.put("a2")
				sort := []string{lock, `UPDATE postroom_work SET stage = 6, place = 6 WHERE place = 5`}
				if next := idsOf(l.exchangeDuring(heads, sort, `SELECT`)); next != "a2" {
					t.Errorf("%q came next", next)
				}
			})
		}
	}
}

// The head of a lane is made ready, even if somebody noted in between that it was
// received again.
func TestNever16_an_exchange_readies_what_was_touched_while_it_filled_lanes(t *testing.T) {
	l := newLane(t, "read committed")
	l.put("a1", "a2", "b1", "b2")
	// Between the two heads the exchange waits for a turn.
	wait := []string{`ALTER SEQUENCE postroom_sequence INCREMENT BY 1`}
	if next := idsOf(l.exchangeDuring(l.claim(), wait, `UPDATE postroom_work SET last_seen = now() WHERE grp = 'b' AND stage = 6`)); next != "a2 b2" {
		t.Errorf("%q came next", next)
	}
}

// A message that somebody holds is not passed by: the lane waits for it.
func TestNever16_an_exchange_leaves_a_lane_whose_next_message_is_held(t *testing.T) {
	l := newLane(t, "read committed")
	l.put("a1", "a2", "a3")
	heads := l.claim()
	tx, err := l.DB.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	hold := l.named(`SELECT FROM postroom_work w JOIN postroom_message m ON m.seq = w.seq WHERE m.id = 'a2' FOR UPDATE OF w`)
	if _, err := tx.Exec(hold); err != nil {
		t.Fatal(err)
	}
	next, err := l.exchange(heads)
	if err != nil {
		t.Fatal(err)
	}
	if next = append(next, l.claim()...); len(next) > 0 {
		t.Fatalf("%q came next while it was the turn of a2", idsOf(next))
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	next = l.claim()
	for _, want := range []string{"a2", "a3", ""} {
		if idsOf(next) != want {
			t.Fatalf("%q came next, not %q", idsOf(next), want)
		}
		if next, err = l.exchange(next); err != nil {
			t.Fatal(err)
		}
	}
}
