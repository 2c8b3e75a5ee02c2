package stores_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// lane is a store on PostgreSQL with one group.
type lane struct {
	*testing.T
	stores.Open
}

func newLane(t *testing.T, isolation string) lane {
	return lane{t, stores.Pgx(t, services.Postgres(t)+"&default_transaction_isolation="+url.PathEscape(isolation), pgxstore.Options{})}
}

func (l lane) put(ids ...string) {
	l.Helper()
	for _, id := range ids {
		m := postroom.Message{Consumer: "c", Source: "s", ID: id, Topic: "t", Group: "g"}
		if _, err := l.Store.Put(l.Context(), nil, []box.Put{{Mode: box.Queue, Message: m}}); err != nil {
			l.Fatal(err)
		}
	}
}

// exchange acknowledges a message and gives what is claimed next.
func (l lane) exchange(m *postroom.Message) (*postroom.Message, error) {
	end := box.Settlement{Lease: m.Lease, Verb: box.Ack, Grouped: true}
	req := l.request()
	req.ReadyOnly = true
	settled, next, err := l.Store.(box.Exchanger).Exchange(l.Context(), []box.Settlement{end}, req)
	if err != nil {
		return nil, err
	}
	if !settled[0].Applied {
		l.Errorf("%s was not acknowledged: %+v", m.ID, settled[0])
	}
	return first(next), nil
}

func (l lane) request() box.ClaimRequest {
	return box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Minute, Limit: 10}
}

func (l lane) claim() *postroom.Message {
	l.Helper()
	got, err := l.Store.Claim(l.Context(), l.request())
	if err != nil {
		l.Fatal(err)
	}
	return first(got)
}

func first(all []*postroom.Message) *postroom.Message {
	if len(all) == 0 {
		return &postroom.Message{}
	}
	return all[0]
}

// What is sorted into a lane while an exchange waits for it comes next: that the lane
// is empty must not be read off what was there when the exchange began, whatever the
// isolation that sessions have by default.
func TestNever16_an_exchange_sees_what_was_sorted_while_it_waited_for_the_lane(t *testing.T) {
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			exchangeWhileSorting(t, newLane(t, isolation), `SELECT FROM %slane FOR UPDATE`)
			exchangeWhileSorting(t, newLane(t, isolation), `UPDATE %slane SET position = position - 1`)
		})
	}
}

func exchangeWhileSorting(t *testing.T, l lane, lock string) {
	t.Helper()
	l.put("a")
	head := l.claim()
	l.put("b")
	tx, err := l.DB.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, sort := range []string{
		fmt.Sprintf(lock, l.Tables),
		`UPDATE ` + l.Tables + `work SET stage = 6, place = 6 WHERE place = 5`,
	} {
		if _, err := tx.Exec(sort); err != nil {
			t.Fatal(err)
		}
	}
	var next *postroom.Message
	ended := make(chan error)
	go func() {
		var err error
		next, err = l.exchange(head)
		ended <- err
	}()
	await(t, "the exchange waits", func() bool {
		var n int
		row := l.DB.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		return row.Scan(&n) == nil && n > 0
	})
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if next.ID == "" { // it had waited for too long, and has settled the slow way
		next = l.claim()
	}
	if next.ID != "b" {
		t.Errorf("%q came next", next.ID)
	}
}

// A message that somebody holds is not passed by: the lane waits for it.
func TestNever16_an_exchange_leaves_a_lane_whose_next_message_is_held(t *testing.T) {
	l := newLane(t, "read committed")
	l.put("a", "b", "c")
	head := l.claim()
	tx, err := l.DB.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(`SELECT FROM ` + l.Tables + `work w JOIN ` + l.Tables + `message m ON m.seq = w.seq WHERE m.id = 'b' FOR UPDATE OF w`); err != nil {
		t.Fatal(err)
	}
	next, err := l.exchange(head)
	if err != nil || next.ID != "" {
		t.Fatalf("%q came next while its turn was that of b, %v", next.ID, err)
	}
	if next := l.claim(); next.ID != "" {
		t.Fatalf("%q came next while its turn was that of b", next.ID)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if next = l.claim(); next.ID != "b" {
		t.Fatalf("%q came next, not b", next.ID)
	}
	if next, err = l.exchange(next); err != nil || next.ID != "c" {
		t.Fatalf("%q came next, not c: %v", next.ID, err)
	}
	if next, err = l.exchange(next); err != nil || next.ID != "" {
		t.Fatalf("%q came after the last, %v", next.ID, err)
	}
}
