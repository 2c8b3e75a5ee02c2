package outbox_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
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

// The test holds a transaction open, with whatever it may lock, while later ones
// commit.
func TestAnOpenTransactionSkipsNothingAndDelaysNoOther(t *testing.T) {
	onServers(t, outbox.Options{}, func(w *world) {
		r := &recorder{}
		ctx, cancel := context.WithCancel(w.Context())
		var wg sync.WaitGroup
		wg.Go(func() { w.must(outbox.NewRelay(w.out, outbox.To(r), outbox.RelayOptions{}).Run(ctx)) })
		held := w.begin()
		w.must(w.out.Add(w.Context(), held.own, message("held", "g"), message("held, no group", "")))
		w.add(message("same group", "g"))
		w.add(message("other group", "h"), message("no group", ""))
		w.until("the later ones are sent", func() bool { return len(r.ids()) == 3 })
		w.add(message("same group again", "g"))
		w.until("the group goes on", func() bool { return len(r.ids()) == 4 })
		if slices.Contains(r.ids(), "held") {
			w.Fatal("what was not committed was sent")
		}
		w.must(held.commit())
		w.until("what was held is sent", func() bool { return len(r.ids()) == 6 })
		cancel()
		wg.Wait()
	})
}

// Whatever a claim may lock for as long as it takes, producers pass by.
func TestAnOpenClaimNeverBlocksAProducer(t *testing.T) {
	onServers(t, outbox.Options{}, func(w *world) {
		w.add(message("head", "g"), message("free", ""))
		_, err := w.out.Box().Claim(w.Context(), claimRequest())
		w.must(err)
		locks, err := w.db.BeginTx(w.Context(), nil)
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
