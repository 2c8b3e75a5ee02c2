package never

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

// laneStatements are where workers on lanes can be stopped.
var laneStatements = []string{
	"peek", "arrived_groups", "insert_lanes", "lock_lanes", "arrivals", "lock_work", "enqueue", "lower_hint",
	"vacant_lanes", "lowest_queued", "ready", "set_heads", "claim", park.Commit,
}

// drain claims and acks until nothing is ready, and gives the order.
func (p *party) drain(stop int) (order []string) {
	p.Helper()
	for len(order) < stop {
		got := p.claim("drain", 10)
		if len(got) == 0 {
			return order
		}
		for _, m := range got {
			p.ack(m)
			order = append(order, m.ID)
		}
	}
	return order
}

func TestNever16_claimer_stopped_or_killed_anywhere_leaves_no_group_stuck(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		for _, killed := range []bool{false, true} {
			for i, at := range laneStatements {
				group := fmt.Sprint("g", i, killed)
				want := []string{group + "-1", group + "-2", group + "-3"}
				for _, id := range want {
					w.receive(grouped(id, group))
				}
				p := w.join(sqlstore.Options{})
				spot := p.lot.Park(park.Before, at)
				if killed {
					p.lot.Fail(park.Before, at, 1, park.ErrLost)
				}
				var (
					got []*postroom.Message
					err error
				)
				wait := park.Go(t, func(ctx context.Context) {
					got, err = p.store.Claim(ctx, box.ClaimRequest{Consumer: consumer, Owner: "stopped", Lease: leaseTime, Limit: 10})
				})
				spot.Wait(t)
				// Meanwhile another worker goes on, as far as locks let it.
				order := w.drain(2)
				spot.Release()
				wait()
				if killed {
					w.waitForSessions()
				} else {
					w.must(err)
				}
				for _, m := range got {
					w.ack(m)
					order = append(order, m.ID)
				}
				order = append(order, w.drain(10)...)
				if strings.Join(order, " ") != strings.Join(want, " ") {
					t.Errorf("stopped before %s, killed %v: the group ran as %v", at, killed, order)
				}
				if n := w.count(`SELECT count(*) FROM postroom_lane`); n != 0 {
					w.drain(1)
					if n := w.count(`SELECT count(*) FROM postroom_lane`); n != 0 {
						t.Errorf("stopped before %s, killed %v: %d lanes are left of groups that are done", at, killed, n)
					}
				}
			}
		}
	})
}

func TestNever16_settler_stopped_before_it_vacates_holds_up_its_group_alone(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		for _, m := range []postroom.Message{grouped("a1", "a"), grouped("a2", "a"), grouped("b1", "b"), grouped("b2", "b")} {
			w.receive(m)
		}
		p := w.join(sqlstore.Options{})
		heads := p.claim("w", 10)
		if strings.Join(ids(heads), " ") != "a1 b1" {
			t.Fatalf("claimed %v", ids(heads))
		}
		spot := p.lot.Park(park.Before, "vacate_lanes")
		var res []box.Settled
		var err error
		wait := park.Go(t, func(ctx context.Context) {
			res, err = p.store.Settle(ctx, nil, []box.Settlement{{Lease: heads[0].Lease, Verb: box.Ack}})
		})
		spot.Wait(t)
		w.ack(heads[1])
		w.claimOne("w", "b2")
		spot.Release()
		wait()
		if err != nil || !res[0].Applied {
			t.Fatal(res, err)
		}
		w.claimOne("w", "a2")
	})
}

func TestNever16_held_open_arrival_is_never_passed_by(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		w.receive(grouped("1", "g"))
		w.receive(grouped("2", "g"))
		w.receive(grouped("x", "other"))
		// A caller replaces the first, and keeps its transaction open.
		held := w.beginSQL(0)
		m := grouped("1", "g")
		m.Payload = []byte("another")
		if _, err := w.try(held, box.Queue, m); err != nil {
			t.Fatal(err)
		}
		w.claimOne("w", "x")
		w.must(held.Commit())
		first := w.claimOne("w", "1")
		if string(first.Payload) != "another" {
			t.Errorf("it was claimed with %q", first.Payload)
		}
		w.ack(first)
		w.claimOne("w", "2")
	})
}

func TestNever16_producer_with_an_open_transaction_holds_up_no_settle(t *testing.T) {
	onServers(t, func(t *testing.T, w *world) {
		w.receive(grouped("1", "g"))
		w.receive(grouped("2", "g"))
		head := w.claimOne("w", "1")
		held := w.beginSQL(0)
		if _, err := w.try(held, box.Queue, grouped("3", "g")); err != nil {
			t.Fatal(err)
		}
		p := w.hasty()
		p.ack(head)
		w.ack(w.claimOne("w", "2"))
		w.must(held.Commit())
		w.ack(w.claimOne("w", "3"))
	})
}

func TestNever16_poison_at_a_head_holds_up_its_group_alone(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		for _, m := range []postroom.Message{grouped("bad", "a"), grouped("a2", "a"), grouped("b1", "b")} {
			w.receive(m)
		}
		for _, m := range w.claim("w", 10) {
			if m.ID == "bad" {
				w.settle(m, box.Abandon)
			} else {
				w.ack(m)
			}
		}
		if got := w.claim("w", 10); len(got) != 0 {
			t.Errorf("claimed %v while the head waits for its retry", ids(got))
		}
		w.pass(time.Hour)
		bad := w.claimOne("w", "bad")
		res, err := w.store.Settle(t.Context(), nil, []box.Settlement{{Lease: bad.Lease, Verb: box.Fail, Hold: true}})
		if err != nil || !res[0].Applied {
			t.Fatal(res, err)
		}
		if got := w.claim("w", 10); len(got) != 0 {
			t.Errorf("claimed %v past a dead head that is held", ids(got))
		}
		_, err = w.store.Move(t.Context(), []box.Move{{Key: key("bad"), Action: box.Discard, Actor: "op"}})
		w.must(err)
		w.claimOne("w", "a2")
	})
}

// A watch sees that a group runs one at a time and in order.
type watch struct {
	testing.TB
	mu      sync.Mutex
	running map[string]string
	last    map[string]int
	ended   int
}

func (h *watch) begin(m *postroom.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.running[m.Group]; other != "" {
		h.Errorf("%s and %s of group %s ran at once", other, m.ID, m.Group)
	}
	h.running[m.Group] = m.ID
	// A head that is retried comes again; what is behind it never comes first.
	if n := number(m.ID); n < h.last[m.Group] {
		h.Errorf("%s of group %s ran after number %d", m.ID, m.Group, h.last[m.Group])
	} else {
		h.last[m.Group] = n
	}
}

func (h *watch) end(m *postroom.Message, over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[m.Group] = ""
	if over {
		h.ended++
	}
}

func number(id string) int {
	_, digits, _ := strings.Cut(id, "-")
	n, _ := strconv.Atoi(digits)
	return n
}

func TestNever16_many_workers_on_few_groups(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		const (
			groups  = 4
			each    = 40
			workers = 4
		)
		h := &watch{TB: t, running: map[string]string{}, last: map[string]int{}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		var producing sync.WaitGroup
		for g := range groups {
			producing.Go(func() { w.produce(ctx, fmt.Sprint("g", g), each) })
		}
		var done atomic.Bool
		go func() {
			producing.Wait()
			done.Store(true)
		}()
		var working sync.WaitGroup
		for n := range workers {
			working.Go(func() { w.work(ctx, h, fmt.Sprint("w", n), &done) })
		}
		working.Wait()
		if ctx.Err() != nil {
			t.Errorf("it did not end: %s", w.leftovers())
		}
		if h.ended != groups*each {
			t.Errorf("%d of %d messages came to their end: %s", h.ended, groups*each, w.leftovers())
		}
	})
}

// produce receives a group's messages in order, and now and then replaces one in
// a transaction that stays open for a while.
func (w *world) produce(ctx context.Context, group string, n int) {
	for i := 1; i <= n; i++ {
		m := grouped(fmt.Sprintf("%s-%d", group, i), group)
		if _, err := w.try(nil, box.Queue, m); err != nil {
			w.Errorf("receive %s: %v", m.ID, err)
		}
		if i%10 != 5 || w.sqlite() {
			continue
		}
		tx, err := w.db.BeginTx(ctx, nil)
		if err != nil {
			w.Errorf("begin: %v", err)
			return
		}
		m.Payload = []byte("replaced")
		_, err = w.try(tx, box.Queue, m)
		if errors.Is(err, postroom.ErrRetry) {
			_ = tx.Rollback()
			continue
		}
		if err != nil && !errors.Is(err, postroom.ErrInProgress) {
			w.Errorf("replace %s: %v", m.ID, err)
		}
		next := grouped(fmt.Sprintf("%s-%d", group, i+1), group)
		if _, err := w.try(nil, box.Queue, next); err != nil {
			w.Errorf("receive %s: %v", next.ID, err)
		}
		_ = tx.Commit()
	}
}

// work runs messages as workers do, with all kinds of ends.
func (w *world) work(ctx context.Context, h *watch, owner string, done *atomic.Bool) {
	for idle := 0; idle < 5 && ctx.Err() == nil; {
		produced := done.Load()
		got, err := w.store.Claim(ctx, box.ClaimRequest{Consumer: consumer, Owner: owner, Lease: leaseTime, Limit: 3})
		if err != nil {
			if ctx.Err() == nil {
				w.Errorf("claim: %v", err)
			}
			return
		}
		if len(got) == 0 && produced {
			if w.live(ctx) == 0 {
				idle++
			}
			time.Sleep(time.Millisecond) // yields to those who hold what is left
			continue
		}
		for _, m := range got {
			h.begin(m)
			s := box.Settlement{Lease: m.Lease, Verb: box.Ack}
			switch rand.IntN(10) {
			case 0, 1:
				s.Verb, s.Delay = box.Abandon, time.Microsecond
			case 2:
				s.Discarded = true
			case 3:
				s.Verb = box.Fail
			case 4:
				s.Verb = box.Release
			}
			over := s.Verb == box.Ack || s.Verb == box.Fail
			h.end(m, over) // from its commit on another one may begin
			for {
				res, err := w.store.Settle(ctx, nil, []box.Settlement{s})
				if err != nil {
					if ctx.Err() == nil {
						w.Errorf("settle: %v", err)
					}
					return
				}
				if res[0].Applied {
					break
				}
				if !res[0].Locked {
					w.Errorf("%v of %s was not applied", s.Verb, m.ID)
					break
				}
			}
		}
	}
}

// live counts what is still to be done.
func (w *world) live(ctx context.Context) (n int) {
	if err := w.db.QueryRowContext(ctx, `SELECT count(*) FROM postroom_work WHERE stage <> 10`).Scan(&n); err != nil {
		return -1
	}
	return n
}

func (w *world) leftovers() string {
	rows, err := w.db.QueryContext(context.Background(), `SELECT m.id, w.stage FROM postroom_work w JOIN postroom_message m ON m.seq = w.seq WHERE w.stage <> 10 ORDER BY w.seq`)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var id string
		var stage int
		if err := rows.Scan(&id, &stage); err != nil {
			return err.Error()
		}
		all = append(all, fmt.Sprint(id, ":", stage))
	}
	return strings.Join(all, " ")
}
