package model

import (
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// of draws one of the values.
func of[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

func drawConsumer(t *rapid.T) string { return of(t, "consumer", "a", "a", "a", "b") }

func drawKey(t *rapid.T) postroom.Key {
	return postroom.Key{Consumer: drawConsumer(t), Source: "s", ID: of(t, "id", ids...)}
}

func drawMinutes(t *rapid.T, label string) time.Duration {
	return time.Duration(of(t, label, 5, 20, 60)) * minute
}

// drawPut draws a message as validation lets it pass: one to be queued has a
// topic and a payload.
func drawPut(t *rapid.T) put {
	key := drawKey(t)
	p := put{Put: box.Put{
		Mode:  of(t, "mode", box.Queue, box.Queue, box.Queue, box.Check, box.Once, box.Guard),
		Keep:  of(t, "keep", false, false, true),
		Owner: "guard", Handler: "h", Lease: drawMinutes(t, "guard lease"),
		ReleaseOnError: of(t, "release on error", true, false),
	}}
	m := &p.Message
	m.Consumer, m.Source, m.ID = key.Consumer, key.Source, key.ID
	if p.Mode != box.Queue && of(t, "bare", true, false) {
		if hash := of(t, "hash", "", "", "1", "2"); hash != "" {
			m.Hash, m.HashAlg = []byte(hash), "sha256"
		}
		return p
	}
	m.Topic = of(t, "topic", topics...)
	m.Payload = []byte(of(t, "payload", "x", "y", ""))
	m.Group = of(t, "group", "", "g", "g", "h")
	p.due = of(t, "due", 0, 0, 0, 10, 50, -10)
	p.expires = of(t, "expires", 0, 0, 0, 30, -1)
	if hash := of(t, "hash", "", "", "1", "2"); hash != "" {
		m.Hash, m.HashAlg = []byte(hash), of(t, "hash algorithm", "sha256", "sha256", "md5")
	}
	if of(t, "headers", false, true) {
		m.Headers, m.CorrelationID = map[string]string{"h": "1"}, "corr"
	}
	return p
}

func drawSettlement(t *rapid.T, p *pair) settlement {
	s := settlement{
		lease:   rapid.IntRange(max(0, len(p.leases)-5), len(p.leases)-1).Draw(t, "lease"),
		foreign: of(t, "foreign", false, false, false, false, true),
	}
	s.Verb = of(t, "verb", box.Ack, box.Abandon, box.Fail, box.Release, box.Expire, box.Park)
	s.Error, s.Handler, s.Note = "failed", "h", "note"
	s.Discarded, s.Hold = of(t, "discarded", false, true), of(t, "hold", false, true)
	if s.Verb == box.Abandon || of(t, "delayed", false, true) {
		s.Delay = drawMinutes(t, "delay")
	}
	return s
}

func drawMove(t *rapid.T) box.Move {
	m := box.Move{
		Key:    drawKey(t),
		Action: of(t, "action", box.MarkProcessing, box.MarkProcessed, box.MarkDead, box.Requeue, box.Replay, box.Discard),
		Actor:  of(t, "actor", "", "ops"),
		Reason: "reason",
	}
	if of(t, "delayed", false, false, true) {
		m.Delay = drawMinutes(t, "delay")
	}
	return m
}

func several[T any](t *rapid.T, label string, most int, draw func() T) []T {
	list := make([]T, rapid.IntRange(1, most).Draw(t, label))
	for i := range list {
		list[i] = draw()
	}
	return list
}

// batch makes puts all of one key, or each of its own: a repeated key may come
// after its neighbours, and how messages that are in no common group then follow
// one another is open. For the same reason at most one is guarded: which of two
// goes first that expire together is open too.
func batch(puts []put, sameKey bool) []put {
	seen, guarded := map[postroom.Key]bool{}, false
	var list []put
	for _, p := range puts {
		if sameKey {
			p.Message.Consumer, p.Message.ID = puts[0].Message.Consumer, puts[0].Message.ID
		} else if seen[p.Message.Key()] {
			continue
		}
		if p.Mode == box.Guard && guarded {
			p.Mode = box.Once
		}
		seen[p.Message.Key()], guarded = true, guarded || p.Mode == box.Guard
		list = append(list, p)
	}
	return list
}

// actions are the calls that rapid chooses from.
func actions(p *pair) map[string]func(*rapid.T) {
	holding := func(act func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			if len(p.leases) == 0 {
				t.Skip("no lease was given out")
			}
			act(t)
		}
	}
	puts := func(t *rapid.T) []put {
		return batch(several(t, "puts", 4, func() put { return drawPut(t) }), of(t, "same key", false, false, true))
	}
	settlements := func(t *rapid.T) []settlement {
		return several(t, "settlements", 3, func() settlement { return drawSettlement(t, p) })
	}
	claim := func(t *rapid.T) {
		p.claim(box.ClaimRequest{
			Consumer: drawConsumer(t), Owner: of(t, "owner", "w1", "w2"), Lease: drawMinutes(t, "lease"),
			Limit: of(t, "limit", 1, 2, 100), Suspect: of(t, "suspect", false, false, false, true),
			ReadyOnly: of(t, "ready only", false, false, true),
		})
	}
	return map[string]func(*rapid.T){
		"put one":   func(t *rapid.T) { p.put(drawPut(t)) },
		"put":       func(t *rapid.T) { p.put(puts(t)...) },
		"claim":     claim,
		"claim too": claim,
		"settle":    holding(func(t *rapid.T) { p.settle(settlements(t)...) }),
		"back off": holding(func(t *rapid.T) {
			s := drawSettlement(t, p)
			s.Verb, s.Delay = box.Abandon, 0
			p.settleTx(nil, nil, []settlement{s})
			p.pass(3 * minute) // longer than each default backoff
			p.same()
		}),
		"extend": holding(func(t *rapid.T) {
			p.extend(drawMinutes(t, "for"), of(t, "foreign", false, true), several(t, "leases", 2, func() int {
				return rapid.IntRange(0, len(p.leases)-1).Draw(t, "lease")
			})...)
		}),
		"move": func(t *rapid.T) {
			moves := several(t, "moves", 3, func() box.Move { return drawMove(t) })
			for i := range moves {
				if len(moves) > 1 {
					moves[i].Delay = 0 // which of two that fall due together goes first is open
				}
			}
			p.move(moves...)
		},
		"reap": func(t *rapid.T) {
			p.reap(box.ReapRequest{
				Consumer:  drawConsumer(t), // without a limit: which of two that expire together goes first is open
				ReapRules: box.ReapRules{Hold: of(t, "hold", false, true), NeverDead: of(t, "never dead", false, true)},
			})
		},
		"lose leases": func(t *rapid.T) { loseLeases(t, p) },
		"cleanup": func(t *rapid.T) {
			p.cleanup(box.CleanupRequest{
				Consumer: drawConsumer(t), // without a limit, for the same reason
				Payloads: of(t, "payloads", 0, 15*minute), Records: of(t, "records", 0, 40*minute),
			})
		},
		"pause": func(t *rapid.T) {
			p.pause(of(t, "resume", false, true), drawConsumer(t), of(t, "topic", topics...), of(t, "actor", "", "ops"))
		},
		"time": func(t *rapid.T) { p.pass(time.Duration(of(t, "minutes", 2, 12, 35, 90)) * minute) },
		"transaction": func(t *rapid.T) {
			commit := of(t, "commit", true, true, false)
			p.transaction(commit, func(modelTx, storeTx postroom.Tx) {
				for range rapid.IntRange(1, 3).Draw(t, "steps") {
					if len(p.leases) > 0 && of(t, "settle", false, true) {
						p.settleTx(modelTx, storeTx, settlements(t))
					} else {
						p.putTx(modelTx, storeTx, puts(t))
					}
				}
			})
		},
	}
}

// loseLeases lets what is ready be claimed and lost, again and again: the way to
// suspects, which chance alone would hardly find.
func loseLeases(t *rapid.T, p *pair) {
	consumer := drawConsumer(t)
	for range rapid.IntRange(1, 4).Draw(t, "times") {
		for _, suspect := range []bool{false, true} {
			p.claim(box.ClaimRequest{Consumer: consumer, Owner: "w1", Lease: 5 * minute, Limit: 100, Suspect: suspect})
		}
		p.pass(6 * minute)
		p.reap(box.ReapRequest{Consumer: consumer})
	}
}
