package model

import (
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/tests/stores"
)

// regressions are cases in which a store once differed from the model, or the
// model from what it should be.
var regressions = []struct {
	name string
	run  func(p *pair)
}{
	{"a batch keeps its order within a group, also where a message was seen before", func(p *pair) {
		p.put(look("1"))
		p.put(queue("1", inGroup("g")), queue("2", inGroup("g")))
		p.claim(claimOf(1))
		p.first("1")
	}},
	{"a batch keeps its order within a group, also where a key comes twice", func(p *pair) {
		p.put(look("1"), queue("1", inGroup("g")), queue("2", inGroup("g")))
		p.claim(claimOf(1))
		p.first("1")
	}},
	{"a batch keeps its order within a group, also where messages were seen in another", func(p *pair) {
		p.put(look("1"), look("2"))
		p.put(queue("2", inGroup("g")), queue("1", inGroup("g")), queue("3", inGroup("g")))
		p.claim(claimOf(1))
		p.first("2")
	}},
	{"a repeated message of another group is told that it was regrouped", func(p *pair) {
		p.put(queue("1", inGroup("g")), queue("1", inGroup("h")))
	}},
	{"a repeated dead message with another hash differs once", func(p *pair) {
		p.put(queue("1", withHash("1")))
		p.move(box.Move{Key: key("1"), Action: box.MarkDead})
		p.put(queue("1", withHash("2")), queue("1", withHash("2")))
	}},
	{"a guarded run that was lost is told when its message comes again", func(p *pair) {
		p.put(guard("1", releasing))
		p.pass(10 * minute)
		p.put(queue("1", inGroup("g")), queue("2", inGroup("g")))
		p.claim(claimOf(1))
		p.first("1")
	}},
	{"a lookup leaves no content", func(p *pair) {
		p.put(put{Put: box.Put{Mode: box.Check, Message: content("1")}, due: 10})
	}},
	{"what is accepted is stored, whatever a guarded run left and although it is to be kept", func(p *pair) {
		p.put(look("1"))
		p.put(guard("1", releasing))
		p.settle(settlement{Settlement: box.Settlement{Verb: box.Abandon, Delay: minute}})
		p.put(queue("1", withPayload("other"), keeping), queue("1", withPayload("other"), keeping))
		p.claim(claimOf(1))
		p.first("1")
		if rec, err := p.store.Store.Get(p.ctx, key("1")); err != nil || string(rec.Payload) != "other" {
			p.tb.Errorf("stored %q, %v: it was accepted with another payload", rec.Payload, err)
		}
	}},
	{"last seen follows a message that was only looked up before", func(p *pair) {
		p.put(look("1"))
		p.pass(60 * minute)
		p.put(queue("1"))
	}},
	{"last seen follows a message that is in progress", func(p *pair) {
		p.put(queue("1"))
		p.claim(claimOf(1))
		p.pass(2 * minute)
		p.put(guard("1"))
	}},
	{"only what waits for its time says when", func(p *pair) {
		p.put(put{Put: box.Put{Mode: box.Queue, Message: content("1")}, due: -10})
		p.claim(claimOf(1))
	}},
	{"a requeued message still shows what its sender asked for", func(p *pair) {
		p.put(put{Put: box.Put{Mode: box.Queue, Message: content("1")}, due: 50, expires: 60})
		p.move(box.Move{Key: key("1"), Action: box.MarkDead})
		p.move(box.Move{Key: key("1"), Action: box.Requeue})
	}},
	{"the next of a group is ready at once after a move, a reap, an expiry and a commit", func(p *pair) {
		p.put(queue("1", inGroup("g")), queue("2", inGroup("g")), queue("3", inGroup("g")),
			put{Put: box.Put{Mode: box.Queue, Message: grouped("4")}, expires: 30}, queue("5", inGroup("g")))
		p.claim(claimOf(1))
		p.transaction(true, func(modelTx, storeTx postroom.Tx) {
			p.settleTx(modelTx, storeTx, []settlement{{Settlement: box.Settlement{Verb: box.Ack}}})
		})
		p.is("2", postroom.StageReady)
		p.move(box.Move{Key: key("2"), Action: box.Discard})
		p.is("3", postroom.StageReady)
		for range 5 {
			p.claim(claimOf(1))
			p.claim(box.ClaimRequest{Consumer: "a", Owner: "w", Lease: 5 * minute, Limit: 1, Suspect: true})
			p.pass(10 * minute)
			p.reap(box.ReapRequest{Consumer: "a"})
		}
		p.is("4", postroom.StageReady)
		p.claim(claimOf(1))
		p.is("5", postroom.StageReady)
	}},
	{"pausing without an actor is not audited", func(p *pair) {
		p.pause(false, "a", "t", "")
		p.pause(true, "a", "t", "")
		p.pause(false, "a", "t", "ops")
	}},
	{"resuming lets go what was parked without a pause", func(p *pair) {
		p.put(queue("1"), queue("2"))
		p.claim(claimOf(2))
		p.settle(settlement{Settlement: box.Settlement{Verb: box.Park}, lease: 1}, settlement{Settlement: box.Settlement{Verb: box.Park}})
		p.pause(true, "a", "t", "ops")
		p.claim(claimOf(1))
	}},
	{"of two settlements of one lease the first counts", func(p *pair) {
		p.put(queue("1"))
		p.claim(claimOf(1))
		p.settle(settlement{Settlement: box.Settlement{Verb: box.Fail, Error: "failed"}}, settlement{Settlement: box.Settlement{Verb: box.Ack}})
	}},
	{"moves of one call take their turns in its order", func(p *pair) {
		p.put(queue("1"), queue("2"))
		p.move(box.Move{Key: key("1"), Action: box.MarkDead}, box.Move{Key: key("2"), Action: box.MarkDead})
		p.move(box.Move{Key: key("2"), Action: box.Requeue}, box.Move{Key: key("1"), Action: box.Requeue})
		p.claim(claimOf(1))
		p.first("2")
	}},
}

func TestRegressions(t *testing.T) {
	for _, s := range opened {
		t.Run(s.name, func(t *testing.T) {
			store := s.open(t)
			for _, r := range regressions {
				t.Run(r.name, func(t *testing.T) {
					store.Clear(t)
					r.run(newPair(t, stores.Memory(t), store))
				})
			}
		})
	}
}

func key(id string) postroom.Key { return postroom.Key{Consumer: "a", Source: "s", ID: id} }

func content(id string) postroom.Message {
	return postroom.Message{Consumer: "a", Source: "s", ID: id, Topic: "t", Payload: []byte("x")}
}

func grouped(id string) postroom.Message {
	m := content(id)
	m.Group = "g"
	return m
}

func queue(id string, changes ...func(*put)) put {
	return changed(put{Put: box.Put{Mode: box.Queue, Message: content(id)}}, changes)
}

func guard(id string, changes ...func(*put)) put {
	return changed(put{Put: box.Put{Mode: box.Guard, Message: content(id), Owner: "guard", Lease: 5 * minute}}, changes)
}

func look(id string) put {
	return put{Put: box.Put{Mode: box.Check, Message: postroom.Message{Consumer: "a", Source: "s", ID: id}}}
}

func changed(p put, changes []func(*put)) put {
	for _, change := range changes {
		change(&p)
	}
	return p
}

func inGroup(g string) func(*put)     { return func(p *put) { p.Message.Group = g } }
func withPayload(s string) func(*put) { return func(p *put) { p.Message.Payload = []byte(s) } }
func withHash(h string) func(*put) {
	return func(p *put) { p.Message.Hash, p.Message.HashAlg = []byte(h), "sha256" }
}
func keeping(p *put)   { p.Keep = true }
func releasing(p *put) { p.ReleaseOnError = true }

func claimOf(n int) box.ClaimRequest {
	return box.ClaimRequest{Consumer: "a", Owner: "w", Lease: 5 * minute, Limit: n}
}

// first expects the last claim to have given this message first.
func (p *pair) first(id string) {
	p.tb.Helper()
	rec, err := p.store.Store.Get(p.ctx, key(id))
	p.must(err)
	if rec.Stage != postroom.StageLeased {
		p.tb.Errorf("message %s is %s: it is the first and should be leased", id, rec.Stage)
	}
}

// is expects a message at a stage.
func (p *pair) is(id string, stage postroom.Stage) {
	p.tb.Helper()
	rec, err := p.store.Store.Get(p.ctx, key(id))
	p.must(err)
	if rec.Stage != stage {
		p.tb.Errorf("message %s is %s, want %s", id, rec.Stage, stage)
	}
}
