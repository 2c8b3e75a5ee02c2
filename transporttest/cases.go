package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom"
)

var errRefused = errors.New("refused by the suite")

// defaultSize is the payload that is tried where no maximum is declared.
const defaultSize = 1 << 20

var entries = []entry{
	{"a message arrives whole", always, func(c *suite) {
		e := c.listen(nil)
		m := c.message("evil: ü 😀 'quoted' \"twice\" a/b?c=d&e %41 ")
		m.Payload = make([]byte, 256)
		for i := range m.Payload {
			m.Payload[i] = byte(i)
		}
		c.send(m)
		c.same(e.wait(1)[0], m)
	}},
	{"an empty payload arrives", always, func(c *suite) {
		e := c.listen(nil)
		m := c.message("empty")
		m.Payload = []byte{}
		c.send(m)
		c.same(e.wait(1)[0], m)
	}},
	{"headers and all that belongs to a conversation arrive", func(g Guarantees) bool { return g.Headers }, func(c *suite) {
		e := c.listen(nil)
		m := c.message("conversation")
		m.Group, m.CorrelationID, m.CausationID = "order-7", "checkout-7", "evt-6"
		m.OccurredAt = time.Date(2026, 2, 28, 23, 59, 59, 123456000, time.UTC)
		m.Headers = map[string]string{
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=1",
			"tenant": "ünïcode", "empty": "",
		}
		c.send(m)
		c.same(e.wait(1)[0], m)
	}},
	{"all that was confirmed arrives", func(g Guarantees) bool { return g.Confirmed }, func(c *suite) {
		e := c.listen(nil)
		msgs := c.messages(120, "")
		var wg sync.WaitGroup
		for part := range slices.Chunk(msgs, 30) {
			wg.Go(func() {
				if err := c.Sender.Send(c.Context(), part); err != nil {
					c.Errorf("send at the same time as others: %v", err)
				}
			})
		}
		wg.Wait()
		e.wait(len(msgs))
	}},
	{"a group arrives in order", func(g Guarantees) bool { return g.Ordered }, func(c *suite) {
		e := c.listen(nil)
		msgs := c.messages(40, "g")
		for part := range slices.Chunk(msgs, 7) {
			c.send(part...)
		}
		for i, m := range e.wait(len(msgs)) {
			if m.ID != msgs[i].ID {
				c.Fatalf("%s came as number %d, want %s: messages of a group keep their order", m.ID, i, msgs[i].ID)
			}
		}
	}},
	{"a group keeps its order while a message is refused", func(g Guarantees) bool { return g.Ordered && g.Redelivers }, func(c *suite) {
		refused := 0
		e := c.listen(func(m *postroom.Message) error {
			if m.ID == "m-001" && refused < 2 {
				refused++
				return errRefused
			}
			return nil
		})
		msgs := c.messages(4, "g")
		c.send(msgs...)
		for i, m := range e.wait(len(msgs)) {
			if m.ID != msgs[i].ID {
				c.Fatalf("%s came as number %d, want %s: the next of a group waits for the one before", m.ID, i, msgs[i].ID)
			}
		}
	}},
	{"what was sent while nobody received arrives", func(g Guarantees) bool { return g.Persistent }, func(c *suite) {
		msgs := c.messages(10, "")
		c.send(msgs...)
		c.listen(nil).wait(len(msgs))
	}},
	{"what a receiver did not acknowledge goes to the next", func(g Guarantees) bool { return g.Persistent && g.Redelivers }, func(c *suite) {
		tried := make(chan struct{})
		once := sync.OnceFunc(func() { close(tried) })
		first := c.listen(func(*postroom.Message) error { once(); return errRefused })
		c.send(c.message("a"))
		select {
		case <-tried:
		case <-time.After(c.Patience):
			c.Fatalf("nothing came within %v", c.Patience)
		}
		first.stop()
		c.listen(nil).wait(1)
	}},
	{"only what could not be delivered must come again", func(g Guarantees) bool { return g.Redelivers }, func(c *suite) {
		var mu sync.Mutex
		refused := map[string]bool{}
		e := c.listen(func(m *postroom.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if m.ID == "m-003" && !refused[m.ID] {
				refused[m.ID] = true
				return errRefused
			}
			return nil
		})
		msgs := c.messages(6, "")
		c.send(msgs...)
		e.wait(len(msgs))
		if !refused["m-003"] {
			c.Error("no message was refused, so that this proves nothing")
		}
	}},
	{"what can't be decoded arrives as malformed, and does not come again", always, func(c *suite) {
		e := c.listen(nil)
		raw := []byte("\xff\x00 this is no message")
		c.corrupt(raw)
		m := e.wait(1)[0]
		if m.Malformed == "" {
			c.Fatalf("%+v came, want it malformed with the reason", m)
		}
		c.usable(m)
		if !bytes.Contains(m.Payload, raw) {
			c.Errorf("its payload is %q, want the delivery as it came, %q", m.Payload, raw)
		}
		c.corrupt(raw)
		c.send(c.message("after"))
		all := e.wait(2)
		if all[1].ID != "after" {
			c.Errorf("%v came, want the same bytes to be the same message", ids(all))
		}
		if n := e.times(m.ID); n > 2 {
			c.Errorf("it came %d times and was put on the way twice: what was taken in must be acknowledged", n)
		}
	}},
	{"what an inbox can't take in comes as malformed", always, func(c *suite) {
		e := c.listen(func(m *postroom.Message) error {
			if m.ID == "m-001" && m.Malformed == "" {
				return &postroom.ArgumentError{Argument: "id", Reason: "is refused by the suite"}
			}
			return nil
		})
		if c.Corrupt == nil {
			c.Skip("no bytes travel on this transport")
		}
		c.send(c.messages(3, "")...)
		for _, m := range e.wait(3) {
			if (m.Malformed != "") != (m.ID == "m-001") {
				c.Errorf("%s came malformed: %q", m.ID, m.Malformed)
			}
			c.usable(m)
		}
	}},
	{"the largest payload arrives", always, func(c *suite) {
		e := c.listen(nil)
		m := c.message("large")
		m.Payload = make([]byte, c.size())
		for i := range m.Payload {
			m.Payload[i] = byte(i * 7)
		}
		c.send(m)
		c.same(e.wait(1)[0], m)
	}},
	{"a payload that is too large is refused alone", func(g Guarantees) bool { return g.MaxSize > 0 }, func(c *suite) {
		e := c.listen(nil)
		msgs := c.messages(3, "")
		msgs[1].Payload = make([]byte, c.g.MaxSize+1)
		each := postroom.EachOf(c.Sender.Send(c.Context(), msgs), len(msgs))
		if each[0] != nil || each[1] == nil || each[2] != nil {
			c.Fatalf("errors %v, want one for the second message alone", each)
		}
		if v, _, _ := postroom.VerdictOf(each[1]); v != postroom.VerdictDead {
			c.Errorf("%v is no permanent failure, so that it is tried for ever", each[1])
		}
		if got := ids(e.wait(2)); slices.Contains(got, "m-001") {
			c.Errorf("%v came, of which one was refused", got)
		}
	}},
	{"an ended context ends a send with an error", always, func(c *suite) {
		ctx, cancel := context.WithCancel(c.Context())
		cancel()
		if err := c.Sender.Send(ctx, c.messages(2, "")); err == nil {
			c.Error("send confirmed messages although its context had ended")
		}
	}},
	{"nothing to send is no error", always, func(c *suite) {
		if err := c.Sender.Send(c.Context(), nil); err != nil {
			c.Error(fmt.Errorf("send of nothing: %w", err))
		}
	}},
}

func (c *suite) size() int {
	if c.g.MaxSize > 0 {
		return c.g.MaxSize
	}
	return defaultSize
}
