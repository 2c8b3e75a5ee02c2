// Package transporttest is the suite that every transport passes, ours and
// anyone's. A transport declares what it guarantees; the suite proves that, and
// leaves out what was not declared.
package transporttest

import (
	"context"
	"testing"
	"time"

	"github.com/postroom/postroom"
)

// Guarantees are what a transport promises between its two ends.
type Guarantees struct {
	// Confirmed: what Send confirmed arrives, if somebody receives.
	Confirmed bool
	// Persistent: what Send confirmed also arrives when nobody received at that
	// time, or the receiver stopped before it acknowledged.
	Persistent bool
	// Redelivers: what the receiver could not deliver comes again.
	Redelivers bool
	// Ordered: messages of one group arrive in the order in which they were sent.
	Ordered bool
	// Headers: headers arrive, and with them all that a message has besides its
	// source, ID, topic and payload: group, correlation, causation, occurrence.
	Headers bool
	// MaxSize is how large a payload may be. A larger one is refused, and its
	// neighbours are not. 0: as large as the suite tries, which is 1 MiB.
	MaxSize int
}

// A Transport is opened for one case.
type Transport struct {
	Sender   postroom.Sender
	Receiver postroom.Receiver
	// Corrupt puts bytes on the way to the receiver that it can't decode. nil: there
	// are none such, as where no bytes travel.
	Corrupt func(ctx context.Context, raw []byte) error
	// Topic is what messages are sent to. Default "transporttest.topic".
	Topic string
	// Patience is how long the suite waits for what must come. Default 30 s.
	Patience time.Duration
}

type entry struct {
	name string
	// needs reports whether the transport declares what the case proves.
	needs func(g Guarantees) bool
	run   func(c *suite)
}

func always(Guarantees) bool { return true }

// Run proves a transport. open gives a fresh one for each case, between whose
// two ends nothing is on its way.
func Run(t *testing.T, g Guarantees, open func(t *testing.T) Transport) {
	for _, e := range entries {
		t.Run(e.name, func(t *testing.T) {
			if !e.needs(g) {
				t.Skip("the transport does not declare this guarantee")
			}
			e.run(newSuite(t, g, open(t)))
		})
	}
}
