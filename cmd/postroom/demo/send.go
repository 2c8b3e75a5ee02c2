package demo

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// batchMax is how many messages a sender delivers in one call at most.
const batchMax = 4

// send delivers what its plan says, in small batches. It takes nothing for
// delivered that was not acknowledged: that is sent again.
func (t *task) send(ctx context.Context, in *inbox.Inbox) error {
	order := t.deliveries(t.Sender)
	pace := t.Span / time.Duration(max(len(order), 1))
	begin := time.Now()
	for at := t.From; at < len(order); {
		if !rest(ctx, time.Until(begin.Add(time.Duration(at-t.From)*pace))) {
			return nil
		}
		n := min(1+rand.IntN(batchMax), len(order)-at) //nolint:gosec // it is a demo
		msgs := make([]postroom.Message, n)
		for i := range msgs {
			msgs[i] = t.message(order[at+i])
		}
		say("sent", n)
		results, err := in.ReceiveAll(ctx, msgs)
		if err != nil {
			if !rest(ctx, pace) {
				return nil
			}
			continue
		}
		at += n
		accepted := 0
		for i := range results {
			if results[i].Outcome == postroom.Accepted {
				accepted++
			}
		}
		say("acknowledged", accepted, n-accepted, at)
	}
	say("finished")
	return nil
}
