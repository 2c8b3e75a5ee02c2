package stores_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/sqlstore/mysql"
	"github.com/postroom/postroom/storetest"
	"github.com/postroom/postroom/tests/park"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

var (
	// only are the words of statements that MariaDB has and MySQL has not.
	only = regexp.MustCompile(`BEGIN NOT ATOMIC|RETURNING|SET STATEMENT`)
	// hints are comments that only MariaDB heeds.
	hints = regexp.MustCompile(`(?s)/\*M!.*?\*/`)
)

// likeMySQL lets a server get statements as MySQL understands them: what it does
// not know is an error of their syntax there too.
func likeMySQL(query string) string {
	return only.ReplaceAllString(hints.ReplaceAllString(query, ""), "NOT_KNOWN_TO_MYSQL")
}

// openStepwise opens a store on a MariaDB that knows no more than MySQL does.
func openStepwise(t *testing.T, opts sqlstore.Options) (stores.Open, *park.Lot) {
	t.Helper()
	lot := park.New()
	lot.Reword(likeMySQL)
	// MySQL can't bound the waits of one statement, so that the session has to.
	db := lot.Open(t, "mysql", services.FreshMySQL(t, services.MariaDB(t))+"?innodb_lock_wait_timeout=5")
	store, err := sqlstore.Open(db, mysql.Dialect, opts)
	return stores.Ready(t, store, err, db, opts, stores.MySQLShift), lot
}

// The suite passes where the server refuses the statements that do all in one.
func TestMariaDB_as_MySQL(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		open, _ := openStepwise(t, sqlstore.Options{})
		return open.Harness()
	})
}

// A statement that the server refuses is not sent again, and whoever was refused
// goes on by steps, however many found out at once.
func TestMariaDB_as_MySQL_refuses_a_statement_once(t *testing.T) {
	for name, first := range map[string]string{"receive": "receive", "settle": "ack_alike", "exchange": "ack_alike"} {
		t.Run(name, func(t *testing.T) {
			open, lot := openStepwise(t, sqlstore.Options{})
			ctx := t.Context()
			plain, err := sqlstore.Open(open.DB, mysql.Dialect, sqlstore.Options{}) // one that learns by itself
			if err != nil {
				t.Fatal(err)
			}
			messages := func(from, n int) (puts []box.Put) {
				for i := range n {
					puts = append(puts, box.Put{Mode: box.Queue, Message: postroom.Message{
						Consumer: "c", Source: "s", ID: fmt.Sprint(from + i), Topic: "t", Payload: []byte("x"),
					}})
				}
				return puts
			}
			req := box.ClaimRequest{Consumer: "c", Owner: "w", Lease: time.Hour, Limit: 2, ReadyOnly: true}
			const callers = 4
			var claimed [callers][]*postroom.Message
			if name != "receive" {
				if _, err := plain.Put(ctx, nil, messages(0, 4*callers)); err != nil {
					t.Fatal(err)
				}
				for i := range claimed {
					if claimed[i], err = plain.Claim(ctx, req); err != nil {
						t.Fatal(err)
					}
				}
			}
			store, err := sqlstore.Open(open.DB, mysql.Dialect, sqlstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			act := func(i int) error {
				var ends []box.Settlement
				for _, m := range claimed[i] {
					ends = append(ends, box.Settlement{Lease: m.Lease, Verb: box.Ack})
				}
				var (
					settled []box.Settled
					next    []*postroom.Message
					err     error
				)
				switch name {
				case "receive":
					_, err := store.Put(ctx, nil, messages(10*i, 2))
					return err
				case "settle":
					settled, err = store.Settle(ctx, nil, ends)
				case "exchange":
					settled, next, err = store.Exchange(ctx, ends, req)
					if err == nil && len(next) != 2 {
						return fmt.Errorf("claimed %d", len(next))
					}
				}
				for _, s := range settled {
					if !s.Applied {
						return fmt.Errorf("settled %+v, %w", settled, err)
					}
				}
				return err
			}
			before := lot.Count(first)
			// All of them learn it at the same time.
			spots := make([]*park.Spot, callers)
			for i := range spots {
				spots[i] = lot.ParkNth(park.Before, first, i+1)
			}
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					if err := act(i); err != nil {
						t.Errorf("caller %d: %v", i, err)
					}
				})
			}
			for _, s := range spots {
				s.Wait(t)
			}
			for _, s := range spots {
				s.Release()
			}
			all.Wait()
			if n := lot.Count(first) - before; n != callers {
				t.Errorf("%s was sent %d times by %d callers", first, n, callers)
			}
			if store.Exchanges() {
				t.Error("the store goes on to settle and claim together")
			}
			if _, err := store.Put(ctx, nil, messages(1000, 2)); err != nil {
				t.Fatal(err)
			}
			if n := lot.Count(first) - before; n != callers {
				t.Errorf("%s was sent again", first)
			}
		})
	}
}

// Leases that end in many different ways are settled one by one, and all of them.
func TestMariaDB_acknowledges_what_ends_alike_together(t *testing.T) {
	for _, kinds := range []int{1, 3, 40} {
		t.Run(fmt.Sprint(kinds, " kinds"), func(t *testing.T) {
			lot := park.New()
			db := lot.Open(t, "mysql", services.FreshMySQL(t, services.MariaDB(t)))
			store, err := sqlstore.Open(db, mysql.Dialect, sqlstore.Options{})
			open := stores.Ready(t, store, err, db, sqlstore.Options{}, stores.MySQLShift)
			ctx := t.Context()
			puts := make([]box.Put, 40)
			for i := range puts {
				puts[i] = box.Put{Mode: box.Queue, Message: postroom.Message{Consumer: "c", Source: "s", ID: fmt.Sprint(i), Topic: "t", Payload: []byte("x")}}
			}
			if _, err := open.Store.Put(ctx, nil, puts); err != nil {
				t.Fatal(err)
			}
			got, err := open.Store.Claim(ctx, box.ClaimRequest{Consumer: "c", Owner: "it's", Lease: time.Hour, Limit: 40})
			if err != nil {
				t.Fatal(err)
			}
			ends := make([]box.Settlement, len(got))
			for i, m := range got {
				ends[i] = box.Settlement{Lease: m.Lease, Verb: box.Ack, Handler: strings.Repeat("ä'", 1+i%kinds)}
			}
			settled, err := open.Store.Settle(ctx, nil, ends)
			if err != nil {
				t.Fatal(err)
			}
			for i := range settled {
				if !settled[i].Applied {
					t.Fatalf("lease %d: %+v", i, settled[i])
				}
				rec, err := open.Store.Get(ctx, got[i].Key())
				if err != nil || rec.Done.Handler != ends[i].Handler || rec.Done.Runs != 1 {
					t.Fatalf("lease %d: %+v, %v", i, rec, err)
				}
			}
			want := kinds
			if kinds > 8 {
				want = 0
			}
			if n := lot.Count("ack_alike"); n != want {
				t.Errorf("%d statements for %d kinds, want %d", n, kinds, want)
			}
		})
	}
}
