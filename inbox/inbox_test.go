package inbox_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/memstore"
)

// logs gathers log lines; handlers write to it at once.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// with gives the lines that contain all the parts.
func (l *logs) with(parts ...string) []string {
	var found []string
	for line := range strings.Lines(l.String()) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}

type fixture struct {
	*inbox.Inbox
	store *memstore.Store
	logs  *logs
}

// open makes an inbox on an empty store in memory, on the test's clock.
func open(t *testing.T, o inbox.Options) *fixture {
	t.Helper()
	return openOn(t, memstore.New(memstore.Options{}), o)
}

func openOn(t *testing.T, store *memstore.Store, o inbox.Options) *fixture {
	t.Helper()
	f := &fixture{store: store, logs: &logs{}}
	f.Inbox = openBox(t, store, o, f.logs)
	return f
}

func openBox(t *testing.T, store box.Store, o inbox.Options, l *logs) *inbox.Inbox {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	in, err := inbox.New(store, "orders", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	return in
}

func message(id string) postroom.Message {
	return postroom.Message{Source: "shop", ID: id, Topic: "order.paid", Payload: []byte(`{}`)}
}

func (f *fixture) receive(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := f.Receive(t.Context(), message(id)); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *fixture) record(t *testing.T, id string) *inbox.Record {
	t.Helper()
	r, err := f.Get(t.Context(), "shop", id)
	if errors.Is(err, postroom.ErrNotFound) {
		return &inbox.Record{}
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *fixture) wantState(t *testing.T, id string, want postroom.State) {
	t.Helper()
	if r := f.record(t, id); r.State != want {
		t.Errorf("message %s is %s (%s), want %s; last error %q", id, r.State, r.Stage, want, r.LastError)
	}
}

func (f *fixture) claim(t *testing.T, n int) []*postroom.Message {
	t.Helper()
	msgs, err := f.Claim(t.Context(), inbox.ClaimOptions{Owner: "tester", Lease: inbox.DefaultLease, Limit: n})
	if err != nil {
		t.Fatal(err)
	}
	return msgs
}

func wantArgument(t *testing.T, err error, argument string) {
	t.Helper()
	var arg *postroom.ArgumentError
	if !errors.As(err, &arg) || arg.Argument != argument {
		t.Errorf("error is %v, want an argument error about %q", err, argument)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bare has only what every store must have.
type bare struct{ box.Store }

func TestStoreWithoutAbilitiesGivesErrorsNotPanics(t *testing.T) {
	in := openBox(t, bare{memstore.New(memstore.Options{})}, inbox.Options{}, &logs{})
	ctx := t.Context()
	_, reap := in.Reap(ctx)
	_, cleanup := in.Cleanup(ctx)
	_, list := in.List(ctx, inbox.Filter{})
	_, requeue := in.RequeueAll(ctx, inbox.Filter{}, inbox.Order{})
	_, audit := in.Audit(ctx, inbox.AuditFilter{})
	_, stats := in.Stats(ctx)
	for name, err := range map[string]error{
		"Reap": reap, "Cleanup": cleanup, "RunCleanup": in.RunCleanup(ctx), "List": list, "RequeueAll": requeue,
		"Audit": audit, "Stats": stats, "Pause": in.Pause(ctx, "x", inbox.Order{}), "Resume": in.Resume(ctx, "x", inbox.Order{}),
	} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s gives %v, want errors.ErrUnsupported", name, err)
		}
	}
	for _, err := range in.Dead(ctx) {
		wantErr(t, err, errors.ErrUnsupported)
	}
	if _, err := in.Receive(ctx, message("1")); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	store := memstore.New(memstore.Options{})
	_, err := inbox.New(nil, "orders", inbox.Options{})
	wantArgument(t, err, "store")
	_, err = inbox.New(store, "Orders!", inbox.Options{})
	wantArgument(t, err, "consumer")
	_, err = inbox.New(store, "orders", inbox.Options{MaxPayload: 65 << 20})
	wantArgument(t, err, "MaxPayload")
	_, err = inbox.New(store, "orders", inbox.Options{OnDuplicate: 7})
	wantArgument(t, err, "OnDuplicate")
	_, err = inbox.New(store, "orders", inbox.Options{CleanupEvery: -1})
	wantArgument(t, err, "CleanupEvery")
}
