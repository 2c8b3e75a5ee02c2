// Package demo plays a post room in which all that can go wrong does: senders
// that duplicate, reorder and crash, handlers that fail, panic and hang, and
// processes that are killed or stalled. Then it counts what came of it.
package demo

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postroom/postroom"
)

// A Plan is what the processes of a demo agree on. The same seed gives the same
// messages, deliveries and faults of handlers; what is killed when depends on
// the machine besides.
type Plan struct {
	// Consumer sets the run apart from others in the same tables.
	Consumer string
	Seed     uint64
	// Messages is how many different messages there are.
	Messages int
	Senders  int
	// Span is the time over which they are sent.
	Span time.Duration
	// Duplicates is the chance of one more delivery, after each delivery.
	Duplicates float64
	// Fail, Panic and Hang are the chances of a run to do so.
	Fail, Panic, Hang float64
	// Malformed is the share of messages that handlers refuse for good.
	Malformed float64
	// Poison is how many messages kill each process that handles them.
	Poison int
	Lease  time.Duration
	// Calm: handlers do no harm, as if their bugs were fixed.
	Calm bool
}

const (
	source = "shop"
	topic  = "order.paid"
)

func (p *Plan) message(n int) postroom.Message {
	return postroom.Message{Source: source, ID: id(n), Topic: topic, Payload: fmt.Appendf(nil, `{"order":%d}`, n)}
}

func id(n int) string { return fmt.Sprintf("order-%06d", n) }

// How far a delivery strays from its turn, in messages, and how much farther its
// duplicates do.
const (
	reorder   = 8
	reorderBy = 60
)

// deliveries gives the messages that a sender delivers, in its order. Each
// message has a sender of its own, and some are delivered by others as well.
func (p *Plan) deliveries(sender int) []int {
	type delivery struct {
		turn float64
		n    int
	}
	var list []delivery
	rng := rand.New(rand.NewPCG(p.Seed, uint64(sender))) //nolint:gosec // repeatable by its seed
	for n := range p.Messages {
		own := n%p.Senders == sender
		if own {
			list = append(list, delivery{float64(n) + reorder*rng.Float64(), n})
		}
		for rng.Float64() < p.Duplicates {
			if own || rng.IntN(4*p.Senders) == 0 {
				list = append(list, delivery{float64(n) + reorderBy*rng.Float64(), n})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b delivery) int { return cmp.Compare(a.turn, b.turn) })
	order := make([]int, len(list))
	for i, d := range list {
		order[i] = d.n
	}
	return order
}

// A fault is what a run does instead of its work.
type fault uint8

const (
	sound fault = iota
	fail
	panics
	hang
	malformed
	poison
)

// fault decides how a run goes. A message is poison or malformed for good; other
// faults are decided anew for each attempt.
func (p *Plan) fault(messageID string, attempt int) fault {
	if p.Calm {
		return sound
	}
	// The poison comes early, so that it has the time to be found out.
	for n := range p.Poison {
		if messageID == id(n) {
			return poison
		}
	}
	if p.roll(messageID, -1) < p.Malformed {
		return malformed
	}
	luck := p.roll(messageID, attempt)
	for _, f := range []struct {
		fault  fault
		chance float64
	}{{fail, p.Fail}, {panics, p.Panic}, {hang, p.Hang}} {
		if luck -= f.chance; luck < 0 {
			return f.fault
		}
	}
	return sound
}

// roll gives a number from 0 to 1 that the seed determines.
func (p *Plan) roll(messageID string, attempt int) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d/%s/%d", p.Seed, messageID, attempt)
	return rand.New(rand.NewPCG(h.Sum64(), p.Seed)).Float64() //nolint:gosec // repeatable by its seed
}
