package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/outbox"
)

func TestFirstSentAndSecondFailedDoesNotSendTheFirstAgain(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		failed := false
		r := &recorder{refuse: func(m *postroom.Message) error {
			if m.ID == "b" && !failed {
				failed = true
				return errors.New("broker is busy")
			}
			return nil
		}}
		w.add(message("a", ""), message("b", ""), message("c", ""))
		w.send(r)
		equal(w, r.ids(), []string{"a", "c"}, "what was confirmed is marked, and only that")
		w.advance(time.Minute)
		w.send(r)
		equal(w, r.ids(), []string{"a", "c", "b"}, "each once")
	})
}

func TestDeleteSentLeavesNothing(t *testing.T) {
	onEach(t, outbox.Options{Retention: outbox.DeleteSent}, func(w *world) {
		w.add(message("a", ""), message("b", "g"), message("c", "g"))
		r := &recorder{}
		w.send(r)
		equal(w, slices.Sorted(slices.Values(r.ids())), []string{"a", "b", "c"}, "each once")
		if n := w.kept() + w.count("SELECT count(*) FROM postroom_outbox_done") + w.count("SELECT count(*) FROM postroom_outbox_work"); n != 0 {
			w.Errorf("%d rows are left", n)
		}
	})
}

func TestRewindSendsAgainUnderTheSameIds(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		r := &recorder{}
		w.add(message("1", "g"), message("2", "g"))
		w.send(r)
		w.advance(time.Hour)
		w.add(message("3", "g"))
		w.send(r)
		sent, err := w.out.Get(w.Context(), "shop", "3")
		w.must(err)
		lost := outbox.Range{Until: sent.Done.At}
		for _, dry := range []bool{true, false} {
			res, err := w.out.Rewind(w.Context(), lost, outbox.RewindOptions{DryRun: dry, Actor: "eve"})
			w.must(err)
			if res != (outbox.Rewound{Messages: 2}) {
				w.Errorf("dry run %v: %+v, want the 2 of the range", dry, res)
			}
		}
		w.send(r)
		equal(w, r.ids(), []string{"1", "2", "3", "1", "2"}, "in order, under the same ids, and only once more")
	})
}

// A transaction stays open for 30 seconds, with whatever it may lock, while later
// ones commit. The relay polls only when the test says so: what it takes to send
// each of them is counted in polls, not in time.
func TestAnOpenTransactionSkipsNothingAndDelaysNoOtherByMoreThanTwoPolls(t *testing.T) {
	onServers(t, outbox.Options{}, func(w *world) {
		r := &recorder{}
		ctx, cancel := context.WithCancel(w.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			w.must(outbox.NewRelay(w.out, outbox.To(r), outbox.RelayOptions{Poll: 24 * time.Hour}).Run(ctx))
		})
		defer func() {
			cancel()
			wg.Wait()
		}()
		// sent lets the relay look twice (and once more where a database carries the
		// hint back), and wants the messages to be sent by that. The first look may
		// come while a lane is being vacated by what was sent before, and skips it.
		want := 0
		sent := func(ids ...string) {
			w.Helper()
			want += len(ids)
			w.out.Wake()
			defer time.AfterFunc(300*time.Millisecond, w.out.Wake).Stop()
			w.until("the relay, which has looked, has sent "+strings.Join(ids, ", "), func() bool { return len(r.ids()) >= want })
			equal(w, slices.Sorted(slices.Values(r.ids()[want-len(ids):])), slices.Sorted(slices.Values(ids)), "they are committed")
		}
		held := w.begin()
		w.must(w.out.Add(w.Context(), held.own, message("held", "g"), message("held, no group", "")))
		for second := range 3 {
			n := func(name string) string { return fmt.Sprint(name, " ", second) }
			w.add(message(n("same group"), "g"))
			w.add(message(n("other group"), "h"), message(n("no group"), ""))
			sent(n("same group"), n("other group"), n("no group"))
			if w.kind != "mariadb" { // whose own UPDATE of all rows would wait for the transaction
				w.advance(10 * time.Second)
			}
		}
		w.must(held.commit())
		sent("held", "held, no group")
	})
}

// SQLite has one writer: later transactions wait for the open one, and are sent
// after it.
func TestAnOpenTransactionOfTheOneWriterSkipsNothing(t *testing.T) {
	on(t, []string{"sqlite"}, outbox.Options{}, func(w *world) {
		held := w.begin()
		w.must(w.out.Add(w.Context(), held.own, message("held", "g")))
		var wg sync.WaitGroup
		wg.Go(func() { w.add(message("later", "g")) })
		r := &recorder{}
		if n := w.kept(); n != 0 {
			w.Errorf("%d messages can be seen before the commit", n)
		}
		w.must(held.commit())
		wg.Wait()
		w.send(r)
		equal(w, r.ids(), []string{"held", "later"}, "in the order of the commits")
	})
}

func TestAnOverdueMessageIsToldAndCountedOnEachDatabase(t *testing.T) {
	told := &recorder{}
	o := outbox.Options{OnOverdue: func(ctx context.Context, r *outbox.Record) { _ = told.Send(ctx, []*postroom.Message{&r.Message}) }}
	onEach(t, o, func(w *world) {
		told.sent = nil
		w.add(message("head", "g"), message("behind", "g"))
		down := postroom.SenderFunc(func(context.Context, []*postroom.Message) error { return errors.New("broker is down") })
		w.send(down)
		overdue := func() (now int, total int64) {
			stats, err := w.out.Stats(w.Context())
			w.must(err)
			for _, c := range stats.Totals {
				if c.Name == box.CountOverdue {
					total += c.N
				}
			}
			return stats.Overdue, total
		}
		if now, total := overdue(); now != 0 || total != 0 {
			w.Errorf("%d overdue, %d in all, before their time", now, total)
		}
		w.advance(16 * time.Minute)
		for run := int64(1); run <= 2; run++ { // the second is a restart
			ctx, cancel := context.WithCancel(w.Context())
			var wg sync.WaitGroup
			wg.Go(func() { w.must(outbox.NewRelay(w.out, outbox.To(down), outbox.RelayOptions{}).Run(ctx)) })
			w.until("both were told", func() bool { return int64(len(told.ids())) == 2*run })
			cancel()
			wg.Wait()
			if now, total := overdue(); now != 2 || total != 2*run {
				w.Errorf("%d overdue, told %d times, want 2 and once by each run", now, total)
			}
		}
	})
}

func TestAPausedTopicWaitsOnEachDatabase(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		by := outbox.Order{Actor: "ann", Reason: "repair"}
		w.must(w.out.Pause(w.Context(), "order.placed", by))
		other := message("other", "")
		other.Topic = "order.shipped"
		w.add(message("free", ""), message("head", "g"), other)
		r := &recorder{}
		w.send(r)
		equal(w, r.ids(), []string{"other"}, "the paused topic waits")
		w.must(w.out.Resume(w.Context(), "order.placed", by))
		w.send(r)
		equal(w, slices.Sorted(slices.Values(r.ids())), []string{"free", "head", "other"}, "it goes on")
	})
}

// Whatever a claim may lock for as long as it takes, producers pass by.
func TestAnOpenClaimNeverBlocksAProducer(t *testing.T) {
	onServers(t, outbox.Options{}, func(w *world) {
		w.add(message("head", "g"), message("free", ""))
		_, err := w.out.Box().Claim(w.Context(), claimRequest())
		w.must(err)
		// As claims do it: without locks on the gaps between rows.
		locks, err := w.db.BeginTx(w.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		w.must(err)
		defer func() { _ = locks.Rollback() }()
		for _, table := range []string{"work", "lane", "message"} {
			_, err := locks.ExecContext(w.Context(), "SELECT 1 FROM postroom_outbox_"+table+" FOR UPDATE")
			w.must(err)
		}
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
		defer cancel()
		tx := w.begin()
		w.must(w.out.Add(ctx, tx.own, message("next of the group", "g"), message("another", "")))
		w.must(tx.commit())
	})
}

// A sender that hangs holds its own messages, and nobody who adds.
func TestASenderThatHangsBlocksNoProducer(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		w.add(message("head", "g"))
		hangs, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			w.send(postroom.SenderFunc(func(_ context.Context, msgs []*postroom.Message) error {
				if msgs[0].ID == "head" {
					close(hangs)
					<-release
				}
				return nil
			}))
		})
		<-hangs
		w.add(message("next of the group", "g"))
		close(release)
		wg.Wait()
	})
}
