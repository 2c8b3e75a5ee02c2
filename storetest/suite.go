package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

const (
	source = "src"
	worker = "worker-1"
	other  = "worker-2"
	// leaseTime is long enough that no lease ends while a slow machine works.
	leaseTime = 10 * time.Minute
	// slack is how far a clock may go on between two calls.
	slack = time.Minute
)

// A suite is one running case. Its methods fail the test when the store gives an
// error, so that a case reads as the story it tells.
type suite struct {
	*testing.T
	Harness
	ctx      context.Context
	consumer string
}

func newSuite(t *testing.T, h Harness) *suite {
	return &suite{T: t, Harness: h, ctx: t.Context(), consumer: "c-" + postroom.NewID()}
}

// as gives the same case for another consumer.
func (c *suite) as(consumer string) *suite {
	d := *c
	d.consumer = consumer
	return &d
}

func (c *suite) must(err error, doing string) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", doing, err)
	}
}

// equal reports a difference, with the reason why a store owes what is wanted.
func equal[T any](c *suite, got, want T, why string) {
	c.Helper()
	if !reflect.DeepEqual(got, want) {
		c.Errorf("got %v, want %v: %s", got, want, why)
	}
}

func (c *suite) is(ok bool, why string, args ...any) {
	c.Helper()
	if !ok {
		c.Errorf(why, args...)
	}
}

func (c *suite) fails(err, want error, why string) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("got error %v, want %v: %s", err, want, why)
	}
}

type change = func(*postroom.Message)

// message makes a message whose payload tells its id.
func (c *suite) message(id string, changes ...change) postroom.Message {
	m := postroom.Message{Consumer: c.consumer, Source: source, ID: id, Topic: "topic", Payload: []byte("payload of " + id)}
	for _, f := range changes {
		f(&m)
	}
	return m
}

func payload(text string) change   { return func(m *postroom.Message) { m.Payload = []byte(text) } }
func topic(name string) change     { return func(m *postroom.Message) { m.Topic = name } }
func group(name string) change     { return func(m *postroom.Message) { m.Group = name } }
func dueAt(t time.Time) change     { return func(m *postroom.Message) { m.DueAt = t } }
func expiresAt(t time.Time) change { return func(m *postroom.Message) { m.ExpiresAt = t } }
func from(source string) change    { return func(m *postroom.Message) { m.Source = source } }
func bare(m *postroom.Message)     { m.Topic, m.Payload = "", nil }
func hashed(hash, alg string) change {
	return func(m *postroom.Message) { m.Hash, m.HashAlg = []byte(hash), alg }
}

func (c *suite) key(id string) postroom.Key {
	return postroom.Key{Consumer: c.consumer, Source: source, ID: id}
}

func (c *suite) puts(puts ...box.Put) []box.PutResult {
	c.Helper()
	res, err := c.Store.Put(c.ctx, nil, puts)
	c.must(err, "put")
	if len(res) != len(puts) {
		c.Fatalf("put gave %d results for %d messages", len(res), len(puts))
	}
	return res
}

func (c *suite) putting(mode box.Mode, id string, changes ...change) box.Put {
	return box.Put{Mode: mode, Message: c.message(id, changes...), Owner: worker, Lease: leaseTime, Handler: "handler"}
}

// check asks whether a message was processed, as AlreadyProcessed does.
func (c *suite) check(id string, changes ...change) box.PutResult {
	c.Helper()
	return c.puts(c.putting(box.Check, id, append([]change{bare}, changes...)...))[0]
}

func (c *suite) receive(id string, changes ...change) box.PutResult {
	c.Helper()
	return c.puts(c.putting(box.Queue, id, changes...))[0]
}

// receiveAll receives messages in one call.
func (c *suite) receiveAll(ids ...string) {
	c.Helper()
	puts := make([]box.Put, len(ids))
	for i, id := range ids {
		puts[i] = c.putting(box.Queue, id)
	}
	for i, res := range c.puts(puts...) {
		equal(c, res.Outcome, postroom.Accepted, "message "+ids[i]+" of the batch is new")
	}
}

func (c *suite) once(id string, changes ...change) box.PutResult {
	c.Helper()
	return c.puts(c.putting(box.Once, id, changes...))[0]
}

// guard guards a message; release is ReleaseOnError.
func (c *suite) guard(id string, release bool, changes ...change) box.PutResult {
	c.Helper()
	p := c.putting(box.Guard, id, changes...)
	p.ReleaseOnError = release
	return c.puts(p)[0]
}

func (c *suite) claimWith(req box.ClaimRequest) []*postroom.Message {
	c.Helper()
	req.Consumer = c.consumer
	if req.Owner == "" {
		req.Owner = worker
	}
	if req.Lease == 0 {
		req.Lease = leaseTime
	}
	got, err := c.Store.Claim(c.ctx, req)
	c.must(err, "claim")
	if len(got) > req.Limit {
		c.Fatalf("claim of %d gave %d messages", req.Limit, len(got))
	}
	return got
}

func (c *suite) claim(limit int) []*postroom.Message {
	c.Helper()
	return c.claimWith(box.ClaimRequest{Limit: limit})
}

// claimOne claims what is ready, which must be this one message.
func (c *suite) claimOne(id string) *postroom.Message {
	c.Helper()
	got := c.claim(100)
	if len(got) != 1 || got[0].ID != id {
		c.Fatalf("claimed %v, want only %q: it is the one that is ready", ids(got), id)
	}
	return got[0]
}

// claimNone expects that nothing is ready.
func (c *suite) claimNone(why string) {
	c.Helper()
	if got := c.claim(100); len(got) != 0 {
		c.Errorf("claimed %v, want nothing: %s", ids(got), why)
	}
}

func ids(messages []*postroom.Message) []string {
	names := []string{}
	for _, m := range messages {
		names = append(names, m.ID)
	}
	return names
}

func (c *suite) settleAll(settlements ...box.Settlement) []box.Settled {
	c.Helper()
	res, err := c.Store.Settle(c.ctx, nil, settlements)
	c.must(err, "settle")
	if len(res) != len(settlements) {
		c.Fatalf("settle gave %d results for %d leases", len(res), len(settlements))
	}
	return res
}

// settle ends a lease, which must be current.
func (c *suite) settle(lease postroom.Lease, verb box.Verb, changes ...func(*box.Settlement)) box.Settled {
	c.Helper()
	s := box.Settlement{Lease: lease, Verb: verb, Handler: "handler"}
	for _, f := range changes {
		f(&s)
	}
	res := c.settleAll(s)[0]
	c.is(res.Applied, "%v by the current lease was not applied", verb)
	return res
}

func withError(text string) func(*box.Settlement) {
	return func(s *box.Settlement) { s.Error = text }
}

func after(d time.Duration) func(*box.Settlement) {
	return func(s *box.Settlement) { s.Delay = d }
}

func hold(s *box.Settlement) { s.Hold = true }

// ignored expects that ending a lease does nothing, without an error.
func (c *suite) ignored(lease postroom.Lease, verb box.Verb, why string) {
	c.Helper()
	res := c.settleAll(box.Settlement{Lease: lease, Verb: verb, Error: "late"})[0]
	c.is(!res.Applied, "%v was applied: %s", verb, why)
}

func (c *suite) move(action box.Action, id string, changes ...func(*box.Move)) box.MoveResult {
	c.Helper()
	m := box.Move{Key: c.key(id), Action: action}
	for _, f := range changes {
		f(&m)
	}
	res, err := c.Store.Move(c.ctx, []box.Move{m})
	c.must(err, action.String())
	if len(res) != 1 {
		c.Fatalf("move gave %d results for one message", len(res))
	}
	return res[0]
}

// get gives a record that must be there.
func (c *suite) get(id string) *box.Record {
	c.Helper()
	rec, err := c.Store.Get(c.ctx, c.key(id))
	c.must(err, "get "+id)
	return rec
}

// stands gives the stage of a live message, or "none" or "done".
func (c *suite) stands(id string) string {
	c.Helper()
	rec, err := c.Store.Get(c.ctx, c.key(id))
	switch {
	case errors.Is(err, postroom.ErrNotFound):
		return "none"
	case err != nil:
		c.Fatalf("get %s: %v", id, err)
		return ""
	case rec.State == postroom.StateDone:
		return "done"
	default:
		equal(c, rec.Stage.State(), rec.State, "stage and state of a record agree")
		return rec.Stage.String()
	}
}

func (c *suite) expect(id, stage, why string) {
	c.Helper()
	if got := c.stands(id); got != stage {
		c.Errorf("message %s is %s, want %s: %s", id, got, stage, why)
	}
}

// now asks the store for its clock.
func (c *suite) now() time.Time {
	c.Helper()
	probe := c.as("now-" + postroom.NewID())
	probe.check("probe")
	return probe.get("probe").FirstSeen
}

// near expects a time that may be a little later, as time goes on meanwhile.
func (c *suite) near(got, want time.Time, why string) {
	c.Helper()
	if d := got.Sub(want); d < -slack || d > slack {
		c.Errorf("got time %v, want about %v: %s", got, want, why)
	}
}

func (c *suite) sweeper() box.Sweeper {
	c.Helper()
	return ability[box.Sweeper](c)
}

// ability gives an optional ability, or skips the case.
func ability[T any](c *suite) T {
	c.Helper()
	a, ok := c.Store.(T)
	if !ok {
		c.Skipf("the store is no %v", reflect.TypeFor[T]())
	}
	return a
}

func (c *suite) reap() []box.Reaped {
	c.Helper()
	res, err := c.sweeper().Reap(c.ctx, box.ReapRequest{Consumer: c.consumer})
	c.must(err, "reap")
	return res
}
