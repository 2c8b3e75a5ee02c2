package transporttest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom"
)

// memory is a transport that does all that can be declared, or spoils one thing.
type memory struct {
	spoil string

	mu      sync.Mutex
	waiting []postroom.Message
	more    chan struct{}
}

const memorySize = 1000

func (m *memory) Send(ctx context.Context, msgs []*postroom.Message) error {
	if err := ctx.Err(); err != nil && m.spoil != "context" {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := make(postroom.SendErrors, len(msgs))
	for i, sent := range msgs {
		msg := *sent
		switch {
		case len(msg.Payload) > memorySize && m.spoil == "large":
			errs[i] = context.DeadlineExceeded
		case len(msg.Payload) > memorySize:
			errs[i] = postroom.Permanent(context.DeadlineExceeded)
		case m.spoil == "confirmed" && msg.ID == "m-007":
		case m.spoil == "ordered" && msg.Group != "":
			m.waiting = append([]postroom.Message{msg}, m.waiting...)
		default:
			m.waiting = append(m.waiting, m.spoiled(msg))
		}
	}
	select {
	case m.more <- struct{}{}:
	default:
	}
	return errs.Err()
}

// corrupt puts raw bytes on the way.
func (m *memory) corrupt(_ context.Context, raw []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, postroom.Message{Payload: raw})
	return nil
}

// decode fails on what has no topic: those are raw bytes.
func (m *memory) decode(msg postroom.Message) (_ postroom.Message, drop bool) {
	if msg.Topic != "" {
		return msg, false
	}
	switch m.spoil {
	case "undecoded":
		return msg, true
	case "unreasoned":
		msg.ID, msg.Source, msg.Topic = "1", "memory", "malformed"
		return msg, false
	case "unstable":
		msg.ID = postroom.NewID()
	}
	return postroom.Malformed(msg, errors.New("no message")), false
}

func (m *memory) spoiled(msg postroom.Message) postroom.Message {
	switch m.spoil {
	case "whole":
		msg.ID = strings.TrimSpace(msg.ID)
	case "empty":
		if len(msg.Payload) == 0 {
			msg.Payload = nil
		}
	case "headers":
		msg.Headers = map[string]string{"traceparent": msg.Headers["traceparent"]}
	}
	return msg
}

func (m *memory) Receive(ctx context.Context, deliver postroom.Deliver) error {
	for {
		m.mu.Lock()
		batch := m.waiting
		m.waiting = nil
		m.mu.Unlock()
		for i := range batch {
			msg, drop := m.decode(batch[i])
			if drop {
				continue
			}
			give := deliver.OrMalformed
			if m.spoil == "refused" {
				give = deliver
			}
			_, err := give(ctx, []postroom.Message{msg})
			if err == nil && m.spoil == "acknowledged" && msg.Malformed != "" {
				err = errors.New("acknowledgement was lost")
			}
			if err != nil && m.spoil != "redelivers" {
				m.mu.Lock()
				m.waiting = append(append([]postroom.Message{}, batch[i:]...), m.waiting...)
				m.mu.Unlock()
				break
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.more:
		case <-time.After(time.Millisecond):
		}
	}
}

var all = Guarantees{Confirmed: true, Persistent: true, Redelivers: true, Ordered: true, Headers: true, MaxSize: memorySize}

func run(t *testing.T, spoil string, patience time.Duration) {
	Run(t, all, func(*testing.T) Transport {
		m := &memory{spoil: spoil, more: make(chan struct{}, 1)}
		return Transport{Sender: m, Receiver: m, Corrupt: m.corrupt, Patience: patience}
	})
}

func TestATransportThatKeepsItsPromisesPasses(t *testing.T) { run(t, "", 0) }

// spoilVariable makes TestSpoiled run the suite on a transport that is broken.
const spoilVariable = "POSTROOM_TRANSPORTTEST_SPOIL"

func TestSpoiled(t *testing.T) {
	spoil := os.Getenv(spoilVariable)
	if spoil == "" {
		t.Skip("only for the test below")
	}
	run(t, spoil, 100*time.Millisecond)
}

func TestATransportThatBreaksAPromiseFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for spoil, want := range map[string]string{
		"whole":        "identity goes from end to end",
		"empty":        "an empty one is not nil",
		"headers":      "headers of conversation are",
		"confirmed":    "119 of 120 messages came",
		"ordered":      "messages of a group keep their order",
		"redelivers":   "0 of 1 messages came",
		"large":        "is no permanent failure",
		"context":      "although its context had ended",
		"undecoded":    "0 of 1 messages came",
		"acknowledged": "1 of 2 messages came",
		"unreasoned":   "want it malformed with the reason",
		"unstable":     "want the same bytes to be the same message",
		"refused":      "messages came within",
	} {
		t.Run(spoil, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSpoiled$")
			cmd.Env = append(os.Environ(), spoilVariable+"="+spoil)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%v, want a failure with %q:\n%s", err, want, out)
			}
		})
	}
}
