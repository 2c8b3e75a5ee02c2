package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/bus"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/transporttest"
)

var silent = slog.New(slog.DiscardHandler)

func module(t *testing.T, store *memstore.Store, name string, o inbox.Options) *inbox.Inbox {
	t.Helper()
	o.Logger = silent
	in, err := inbox.New(store, name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

func subscribe(t *testing.T, b *bus.Bus, in *inbox.Inbox, patterns ...string) {
	t.Helper()
	if err := b.Subscribe(in, patterns...); err != nil {
		t.Fatal(err)
	}
}

// received is what an inbox holds, by ID.
func received(t *testing.T, in *inbox.Inbox) []string {
	t.Helper()
	var ids []string
	for rec, err := range in.All(t.Context(), inbox.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, rec.ID)
	}
	return ids
}

func equal(t *testing.T, got, want []string, why string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: %s", got, want, why)
	}
}

func message(topic, id string) postroom.Message {
	return postroom.Message{Source: "orders", ID: id, Topic: topic, Payload: []byte("{}")}
}

// receiver is a module behind the bus: its worker gives on what its inbox took.
type receiver struct{ in *inbox.Inbox }

func (r receiver) Receive(ctx context.Context, deliver postroom.Deliver) error {
	mux := inbox.NewMux()
	if err := mux.HandleFunc("*", func(ctx context.Context, m *postroom.Message) error {
		_, err := deliver(ctx, []postroom.Message{*m})
		return postroom.RetryAfter(time.Millisecond, err)
	}); err != nil {
		return err
	}
	return inbox.NewWorker(r.in, mux, inbox.WorkerOptions{Poll: 5 * time.Millisecond, MaxAttempts: 1 << 20}).Run(ctx)
}

func TestTheBusIsATransport(t *testing.T) {
	transporttest.Run(t, transporttest.Guarantees{
		Confirmed: true, Persistent: true, Redelivers: true, Ordered: true, Headers: true, MaxSize: 1 << 20,
	}, func(t *testing.T) transporttest.Transport {
		in := module(t, memstore.New(memstore.Options{}), "module", inbox.Options{})
		b := bus.New()
		subscribe(t, b, in, "*")
		return transporttest.Transport{Sender: b, Receiver: receiver{in}}
	})
}

// world is an outbox and the modules that subscribe, each on a store of its own.
type world struct {
	*testing.T
	out *outbox.Outbox
	bus *bus.Bus
}

func open(t *testing.T) *world {
	t.Helper()
	out, err := outbox.New(memstore.New(memstore.Options{}), outbox.Options{Source: "orders", Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	return &world{t, out, bus.New()}
}

func (w *world) publish(msgs ...postroom.Message) {
	w.Helper()
	if err := w.out.Publish(w.Context(), msgs...); err != nil {
		w.Fatal(err)
	}
	w.relay()
}

func (w *world) relay() {
	w.Helper()
	if err := outbox.NewRelay(w.out, outbox.To(w.bus), outbox.RelayOptions{}).RunUntilIdle(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get(id string) *outbox.Record {
	w.Helper()
	rec, err := w.out.Get(w.Context(), "orders", id)
	if err != nil {
		w.Fatal(err)
	}
	return rec
}

func TestEachSubscriberGetsItsTopicsInAnInboxOfItsOwn(t *testing.T) {
	w := open(t)
	payments := module(t, memstore.New(memstore.Options{}), "payments", inbox.Options{})
	shipping := module(t, memstore.New(memstore.Options{}), "shipping", inbox.Options{})
	subscribe(t, w.bus, payments, "order.placed")
	subscribe(t, w.bus, shipping, "order.*", "stock")
	w.publish(message("order.placed", "1"), message("order.paid", "2"), message("stock", "3"), message("mail", "4"))
	equal(t, received(t, payments), []string{"1"}, "its topic")
	equal(t, received(t, shipping), []string{"1", "2", "3"}, "its topics")
	if got := w.get("4").Done; !got.Discarded || got.Note != `nobody subscribes to topic "mail"` {
		t.Errorf("%+v: what nobody wants is done, and says so", got)
	}
}

func TestWhileOneSubscriberIsDownTheOthersAreNotGivenAMessageTwice(t *testing.T) {
	w := open(t)
	up := module(t, memstore.New(memstore.Options{}), "up", inbox.Options{})
	broken := memstore.New(memstore.Options{})
	down := module(t, broken, "down", inbox.Options{})
	subscribe(t, w.bus, up, "*")
	subscribe(t, w.bus, down, "*")
	_ = broken.Close()
	w.publish(message("t", "1"))
	if rec := w.get("1"); rec.State != postroom.StateProcessing || !strings.Contains(rec.LastError, "subscriber down") {
		t.Errorf("%v with %q, want it to wait for its subscriber", rec.State, rec.LastError)
	}
	equal(t, received(t, up), []string{"1"}, "who is there has it")
	w.bus.Unsubscribe("down")
	if err := w.bus.Send(t.Context(), []*postroom.Message{{Source: "orders", ID: "1", Topic: "t", Payload: []byte("{}")}}); err != nil {
		t.Fatalf("one that was removed is not waited for: %v", err)
	}
	equal(t, received(t, up), []string{"1"}, "a message that comes again is recognised")
}

func TestASubscriberThatIsAddedLaterGetsTheRestByARewind(t *testing.T) {
	w := open(t)
	early := module(t, memstore.New(memstore.Options{}), "early", inbox.Options{})
	subscribe(t, w.bus, early, "order.*")
	w.publish(message("order.placed", "1"), message("unheard", "2"))
	late := module(t, memstore.New(memstore.Options{}), "late", inbox.Options{})
	subscribe(t, w.bus, late, "*")
	w.publish(message("order.placed", "3"))
	equal(t, received(t, late), []string{"3"}, "it gets what is sent from now on")
	if _, err := w.out.Rewind(t.Context(), outbox.Range{Source: "orders"}, outbox.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	w.relay()
	got := received(t, late)
	slices.Sort(got)
	equal(t, got, []string{"1", "2", "3"}, "a rewind gives it what was sent before, also what nobody wanted then")
	equal(t, received(t, early), []string{"1", "3"}, "others recognise what they have")
}

func TestASubscriberThatIsRenamedIsOneRemovedAndOneAdded(t *testing.T) {
	w := open(t)
	store := memstore.New(memstore.Options{})
	before := module(t, store, "shipping", inbox.Options{})
	subscribe(t, w.bus, before, "*")
	w.publish(message("t", "1"))
	if !w.bus.Unsubscribe("shipping") || w.bus.Unsubscribe("shipping") {
		t.Error("it was on the bus, once")
	}
	after := module(t, store, "dispatch", inbox.Options{})
	subscribe(t, w.bus, after, "*")
	w.publish(message("t", "2"))
	equal(t, received(t, before), []string{"1"}, "what it holds under its old name stays there, visible")
	equal(t, received(t, after), []string{"2"}, "under its new one it gets what is sent from now on")
	if _, err := w.out.Rewind(t.Context(), outbox.Range{Source: "orders"}, outbox.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	w.relay()
	got := received(t, after)
	slices.Sort(got)
	equal(t, got, []string{"1", "2"}, "and does not know what it received under the old one")
	equal(t, received(t, before), []string{"1"}, "who was removed gets nothing more")
}

func TestAMessageThatASubscriberCanNeverTakeIsNotOfferedForEver(t *testing.T) {
	w := open(t)
	small := module(t, memstore.New(memstore.Options{}), "small", inbox.Options{MaxPayload: 1})
	large := module(t, memstore.New(memstore.Options{}), "large", inbox.Options{})
	subscribe(t, w.bus, small, "*")
	subscribe(t, w.bus, large, "*")
	w.publish(message("t", "1"))
	if rec := w.get("1"); rec.State != postroom.StateDead || !strings.Contains(rec.LastError, "subscriber small: postroom: payload is 2 bytes") {
		t.Errorf("%v with %q", rec.State, rec.LastError)
	}
	equal(t, received(t, large), []string{"1"}, "who can take it has it")
}

func TestAMessageIsOfferedAgainAsLongAsOneSubscriberMayTakeIt(t *testing.T) {
	w := open(t)
	subscribe(t, w.bus, module(t, memstore.New(memstore.Options{}), "small", inbox.Options{MaxPayload: 1}), "*")
	broken := memstore.New(memstore.Options{})
	subscribe(t, w.bus, module(t, broken, "down", inbox.Options{}), "*")
	_ = broken.Close()
	w.publish(message("t", "1"))
	if rec := w.get("1"); rec.State != postroom.StateProcessing || !strings.Contains(rec.LastError, "subscriber down") {
		t.Errorf("%v with %q, want it to wait for the one that is down", rec.State, rec.LastError)
	}
}

func TestOneTransactionMayPublishWithoutAnOutbox(t *testing.T) {
	store := memstore.New(memstore.Options{})
	b := bus.New()
	payments, shipping := module(t, store, "payments", inbox.Options{}), module(t, store, "shipping", inbox.Options{})
	subscribe(t, b, payments, "order.*")
	subscribe(t, b, shipping, "order.paid")
	for _, commit := range []bool{false, true} {
		tx, err := store.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := b.PublishTx(t.Context(), tx, message("order.paid", "1"), message("order.placed", "2")); err != nil {
			t.Fatal(err)
		}
		end := map[bool]func(context.Context) error{true: tx.Commit, false: tx.Rollback}[commit]
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !commit {
			equal(t, received(t, payments), nil, "a rollback leaves nothing")
		}
	}
	equal(t, received(t, payments), []string{"1", "2"}, "it was committed")
	equal(t, received(t, shipping), []string{"1"}, "it was committed")
}

func TestSubscribeRefusesWhatCannotWork(t *testing.T) {
	b := bus.New()
	in := module(t, memstore.New(memstore.Options{}), "module", inbox.Options{})
	subscribe(t, b, in, "a")
	var arg *postroom.ArgumentError
	for why, err := range map[string]error{
		"no inbox":    b.Subscribe(nil, "a"),
		"no pattern":  b.Subscribe(in),
		"bad pattern": b.Subscribe(in, "a*"),
		"twice":       b.Subscribe(in, "b"),
	} {
		if !errors.As(err, &arg) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
