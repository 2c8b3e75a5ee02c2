package outbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/outbox"
)

// childVariable asks this test binary to be a relay instead: kind and DSN.
const childVariable = "POSTROOM_OUTBOX_CHILD"

// leaseTime ends only when a test lets time pass.
const leaseTime = 5 * time.Minute

func claimRequest() box.ClaimRequest {
	return box.ClaimRequest{Owner: "test", Lease: leaseTime, Limit: 10}
}

// TestChild is the relay of a started test binary; elsewhere it is nothing. Its
// sender writes what it sends into the table sent, and says so; then it waits for
// a line before it confirms.
func TestChild(t *testing.T) {
	kind, dsn, found := strings.Cut(os.Getenv(childVariable), "|")
	if !found {
		t.Skip("only for the relays that other tests start")
	}
	w := join(t, kind, dsn, outbox.Options{})
	lines := bufio.NewScanner(os.Stdin)
	sender := postroom.SenderFunc(func(_ context.Context, msgs []*postroom.Message) error {
		for _, m := range msgs {
			w.exec(`INSERT INTO sent (id) VALUES ('` + m.ID + `')`)
			fmt.Println("sent " + m.ID)
			if !lines.Scan() {
				os.Exit(0) // whoever started it is gone
			}
		}
		return nil
	})
	w.must(outbox.NewRelay(w.out, outbox.To(sender), outbox.RelayOptions{Lease: leaseTime, SendTimeout: leaseTime, Poll: 20 * time.Millisecond}).Run(t.Context()))
}

// A child is a started relay.
type child struct {
	*world
	cmd   *exec.Cmd
	sent  chan string
	input interface{ Write([]byte) (int, error) }
}

func (w *world) child() *child {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	c := &child{world: w, sent: make(chan string, 1000)}
	c.cmd = exec.CommandContext(w.Context(), self, "-test.run=^TestChild$", "-test.count=1")
	c.cmd.Env = append(os.Environ(), childVariable+"="+w.kind+"|"+w.dsn)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	w.must(err)
	c.input, err = c.cmd.StdinPipe()
	w.must(err)
	w.must(c.cmd.Start())
	go func() {
		defer close(c.sent)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "sent "); ok {
				c.sent <- id
			}
		}
	}()
	w.Cleanup(c.kill)
	return c
}

// confirm lets the sender confirm what it said it sent.
func (c *child) confirm() { _, _ = c.input.Write([]byte("\n")) }

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) && !strings.Contains(err.Error(), "already called") {
		c.Error(err)
	}
}

// log gives what was sent, in order.
func (w *world) log() []string {
	w.Helper()
	rows, err := w.db.QueryContext(context.Background(), `SELECT id FROM sent ORDER BY n`)
	w.must(err)
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		w.must(rows.Scan(&id))
		ids = append(ids, id)
	}
	w.must(rows.Err())
	return ids
}

func TestAKillBetweenSendAndMarkSendsTheSameIdAgain(t *testing.T) {
	onEach(t, outbox.Options{}, func(w *world) {
		w.add(message("a", "g"), message("b", "g"))
		first := w.child()
		if id := <-first.sent; id != "a" {
			w.Fatalf("sent %s first", id)
		}
		first.kill() // sent, and not marked
		r := &recorder{}
		w.send(r)
		equal(w, r.ids(), nil, "its group waits for it, for the time of the lease")
		w.advance(leaseTime + time.Minute)
		_, err := w.out.Box().Reap(w.Context())
		w.must(err)
		w.send(r)
		equal(w, r.ids(), []string{"a", "b"}, "the same id goes again, before what follows it")
		rec, err := w.out.Get(w.Context(), "shop", "a")
		w.must(err)
		if rec.State != postroom.StateDone || rec.Done.Runs != 1 {
			w.Errorf("%v after %d runs: the run that died did not come back", rec.State, rec.Done.Runs)
		}
	})
}

// Two relays share one group; both are killed again and again, each at whatever
// it does when the other has just sent something.
func TestTwoRelaysOnOneGroupKeepItsOrderUnderKills(t *testing.T) {
	const messages, perRound = 24, 6
	onEach(t, outbox.Options{}, func(w *world) {
		for i := range messages {
			w.add(message(fmt.Sprintf("m-%03d", i), "g"))
		}
		kills := 0
		for w.count(`SELECT count(*) FROM postroom_outbox_work`) > 0 {
			if kills > 10*messages {
				w.Fatalf("after %d kills not all is sent: %v", kills, w.log())
			}
			relays := []*child{w.child(), w.child()}
			for n := 0; n < perRound && w.count(`SELECT count(*) FROM postroom_outbox_work`) > 0; n++ {
				select {
				case <-relays[0].sent:
					relays[0].confirm()
				case <-relays[1].sent:
					relays[1].confirm()
				case <-time.After(time.Second): // all is sent, or the last is being marked
				}
			}
			for _, r := range relays {
				r.kill()
				kills++
			}
			w.advance(leaseTime + time.Minute)
			_, err := w.out.Box().Reap(w.Context())
			w.must(err)
		}
		if kills < 4 {
			w.Errorf("only %d kills, so that this proves little", kills)
		}
		at := 0
		for _, id := range w.log() {
			switch id {
			case fmt.Sprintf("m-%03d", at): // again
			case fmt.Sprintf("m-%03d", at+1):
				at++
			default:
				w.Fatalf("%s was sent after m-%03d: %v", id, at, w.log())
			}
		}
		if at != messages-1 {
			w.Errorf("sent up to %d of %d", at+1, messages)
		}
	})
}
