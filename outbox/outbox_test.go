package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
	"github.com/postroom/postroom/outbox"
)

// world is a store in memory and its outbox.
type world struct {
	*testing.T
	store *memstore.Store
	out   *outbox.Outbox
	// log is what was logged at WARN and above.
	log *lines
}

func open(t *testing.T, o outbox.Options) *world {
	t.Helper()
	w := &world{T: t, store: memstore.New(memstore.Options{}), log: &lines{}}
	o.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if o.Source == "" {
		o.Source = "shop"
	}
	var err error
	if w.out, err = outbox.New(w.store, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.out.Close() })
	return w
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func message(id string) postroom.Message {
	return postroom.Message{ID: id, Topic: "order.paid", Payload: []byte("payload of " + id)}
}

func grouped(id, group string) postroom.Message {
	m := message(id)
	m.Group = group
	return m
}

func (w *world) publish(msgs ...postroom.Message) {
	w.Helper()
	if err := w.out.Publish(w.Context(), msgs...); err != nil {
		w.Fatal(err)
	}
}

// relay runs until nothing is ready.
func (w *world) relay(s postroom.Sender) {
	w.Helper()
	if err := outbox.NewRelay(w.out, outbox.To(s), outbox.RelayOptions{}).RunUntilIdle(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// start runs a relay until the test ends, or stop is called.
func (w *world) start(routes *outbox.Routes, o outbox.RelayOptions) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- outbox.NewRelay(w.out, routes, o).Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("relay: %v", err)
		}
	}
}

func (w *world) get(id string) *outbox.Record {
	w.Helper()
	rec, err := w.out.Get(w.Context(), "shop", id)
	if err != nil {
		w.Fatalf("get %s: %v", id, err)
	}
	return rec
}

func (w *world) ids() []string {
	w.Helper()
	var ids []string
	for rec, err := range w.out.All(w.Context(), outbox.Filter{}) {
		if err != nil {
			w.Fatal(err)
		}
		ids = append(ids, rec.ID)
	}
	return ids
}

// recorder is a sender that keeps what it confirmed.
type recorder struct {
	mu   sync.Mutex
	sent []*postroom.Message
	// refuse gives the error of a message, nil to confirm it.
	refuse func(m *postroom.Message) error
}

func (r *recorder) Send(_ context.Context, msgs []*postroom.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := make(postroom.SendErrors, len(msgs))
	for i, m := range msgs {
		if r.refuse != nil {
			errs[i] = r.refuse(m)
		}
		if errs[i] == nil {
			r.sent = append(r.sent, m)
		}
	}
	return errs.Err()
}

func (r *recorder) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, m := range r.sent {
		ids = append(ids, m.ID)
	}
	return ids
}

func equal[T comparable](t testing.TB, got, want []T, why string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: %s", got, want, why)
	}
}

func TestP5_messages_are_sent_if_and_only_if_the_transaction_commits(t *testing.T) {
	w := open(t, outbox.Options{})
	for _, commit := range []bool{false, true} {
		tx, err := w.store.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		name := map[bool]string{false: "rolled-back-", true: "committed-"}[commit]
		for _, n := range []string{"1", "2", "3"} {
			if err := w.out.Add(t.Context(), tx, message(name+n)); err != nil {
				t.Fatal(err)
			}
		}
		if ids := w.ids(); len(ids) != 0 {
			t.Errorf("before the commit %v are there: add must not commit", ids)
		}
		if commit {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatalf("the transaction is the caller's to end: %v", err)
		}
	}
	r := &recorder{}
	w.relay(r)
	equal(t, r.ids(), []string{"committed-1", "committed-2", "committed-3"}, "three adds are all or none")
}

func TestAdd_fills_in_id_and_source(t *testing.T) {
	w := open(t, outbox.Options{Source: "orders-service"})
	w.publish(postroom.Message{Topic: "t", Payload: []byte("same")}, postroom.Message{Topic: "t", Payload: []byte("same")})
	r := &recorder{}
	w.relay(r)
	if len(r.sent) != 2 || r.sent[0].ID == r.sent[1].ID || r.sent[0].ID == "" {
		t.Fatalf("sent %v: the same content under two ids is two messages", r.ids())
	}
	if s := r.sent[0].Source; s != "orders-service" {
		t.Errorf("source %q, want that of the options", s)
	}
}

func TestAdd_the_same_id_twice_is_one_message(t *testing.T) {
	w := open(t, outbox.Options{})
	w.publish(message("a"), message("a"))
	w.publish(message("a"))
	other := message("a")
	other.Payload = []byte("something else")
	var arg *postroom.ArgumentError
	if err := w.out.Publish(t.Context(), message("b"), other); !errors.As(err, &arg) || arg.Argument != "id" {
		t.Errorf("got %v, want an error: another content under a known id would be lost", err)
	}
	equal(t, w.ids(), []string{"a"}, "nothing of a refused call stays")
	r := &recorder{}
	w.relay(r)
	w.publish(message("a"))
	w.relay(r)
	equal(t, r.ids(), []string{"a"}, "also after it was sent")
}

func TestAdd_refuses_an_oversize_payload_before_any_SQL(t *testing.T) {
	w := open(t, outbox.Options{MaxPayload: 10})
	tx, err := w.store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	big := message("big")
	small := postroom.Message{ID: "small", Topic: "t", Payload: []byte("x")}
	err = w.out.Add(t.Context(), tx, small, big)
	if err == nil || !strings.Contains(err.Error(), "payload is 14 bytes, at most 10 are allowed") {
		t.Errorf("got %v, want an error that names the limit", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, w.ids(), nil, "nothing of the call was kept")
}

func TestAdd_and_Publish_refuse_what_is_malformed(t *testing.T) {
	w := open(t, outbox.Options{})
	bad := postroom.Malformed(message("bad"), errors.New("no JSON"))
	tx, err := w.store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	added := w.out.Add(t.Context(), tx, bad)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Add": added, "Publish": w.out.Publish(t.Context(), bad)} {
		var arg *postroom.ArgumentError
		if !errors.As(err, &arg) {
			t.Errorf("%s gave %v, want it refused: nobody could send it", name, err)
		}
	}
	equal(t, w.ids(), nil, "nothing was kept")
}

type paid struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

func TestTopic_adds_typed_values(t *testing.T) {
	w := open(t, outbox.Options{})
	orderPaid := outbox.Topic[paid]{Name: "order.paid", Group: func(p paid) string { return p.Order }}
	tx, err := w.store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := orderPaid.Add(t.Context(), w.out, tx, paid{"o-1", 500}, paid{"o-1", 200}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	w.relay(r)
	if len(r.sent) != 2 {
		t.Fatalf("sent %v", r.ids())
	}
	first := r.sent[0]
	if string(first.Payload) != `{"order":"o-1","cents":500}` || first.Topic != "order.paid" || first.Group != "o-1" || first.ID == "" {
		t.Errorf("%+v", first)
	}
}

// One commit holds the handler's writes, what it sends, and its ack.
func TestAdd_in_a_handler_commits_with_it_and_continues_the_conversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, outbox.Options{})
		in, err := inbox.New(w.store, "payments", inbox.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		incoming := postroom.Message{
			Source: "stripe", ID: "evt-1", Topic: "charge", Payload: []byte("{}"), CorrelationID: "checkout-7",
			Headers: map[string]string{"traceparent": "00-1-2-01", "tracestate": "v=1", "other": "stays"},
		}
		if _, err := in.Receive(t.Context(), incoming); err != nil {
			t.Fatal(err)
		}
		fail := true
		mux := inbox.NewMux()
		handler := postroom.TxHandlerFunc(func(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
			if err := w.out.Add(ctx, tx, message("o")); err != nil {
				return err
			}
			if fail {
				fail = false
				return postroom.RetryAfter(0, errors.New("after the add"))
			}
			return nil
		})
		if err := mux.Handle("*", handler); err != nil {
			t.Fatal(err)
		}
		worker := inbox.NewWorker(in, mux, inbox.WorkerOptions{})
		for range 2 {
			if err := worker.RunUntilIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		r := &recorder{}
		w.relay(r)
		equal(t, r.ids(), []string{"o"}, "the failed run left nothing, the other one message")
		m := r.sent[0]
		if m.CausationID != "evt-1" || m.CorrelationID != "checkout-7" {
			t.Errorf("causation %q, correlation %q", m.CausationID, m.CorrelationID)
		}
		if m.Headers["traceparent"] != "00-1-2-01" || m.Headers["tracestate"] != "v=1" || m.Headers["other"] != "" {
			t.Errorf("headers %v, want the trace of the incoming message and no more", m.Headers)
		}
	})
}
