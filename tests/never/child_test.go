package never

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
)

// childVariable asks this test binary to be one of the programs below instead.
const childVariable = "POSTROOM_NEVER_CHILD"

// children are programs that tests start and kill. They say what they have done,
// a line each, and end when their input does.
var children = map[string]func(t testing.TB, w *world, arg string){
	"settle":  childSettles,
	"claim":   childClaims,
	"receive": childReceives,
	"commit":  childCommits,
	"stand":   childStands,
	"kill":    childKills,
	"stop":    childStops,
}

// TestChild is the program of a started test binary; elsewhere it is nothing.
func TestChild(t *testing.T) {
	name, rest, _ := strings.Cut(os.Getenv(childVariable), "|")
	if name == "" {
		t.Skip("only for the programs that other tests start")
	}
	parts := strings.SplitN(rest, "|", 3)
	w := &world{TB: t, driver: parts[0], dsn: parts[1]}
	if parts[0] == native {
		w.driver, w.native = "pgx", true
	}
	for _, d := range dialects {
		if d.Name == w.driver || (d.Name == "postgres" && w.driver == "pgx") {
			w.dialect = d
		}
	}
	w.party = w.join(sqlstore.Options{})
	children[name](t, w, parts[2])
}

// A child is a started program.
type child struct {
	testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func (w *world) child(name, arg string) *child {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	c := &child{TB: w.TB, cmd: exec.CommandContext(w.Context(), self, "-test.run=^TestChild$", "-test.count=1", "-test.timeout=60s")}
	driver := w.driver
	if w.native {
		driver = native
	}
	c.cmd.Env = append(os.Environ(), childVariable+"="+strings.Join([]string{name, driver, w.dsn, arg}, "|"))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	w.must(err)
	c.in, err = c.cmd.StdinPipe()
	w.must(err)
	w.Cleanup(func() { _ = c.in.Close() })
	w.must(c.cmd.Start())
	c.lines = bufio.NewScanner(out)
	return c
}

// until reads what the child says up to a line that begins with word, and gives
// the rest of it.
func (c *child) until(word string) string {
	c.Helper()
	var said []string
	for c.lines.Scan() {
		if rest, ok := strings.CutPrefix(c.lines.Text(), "child "+word); ok {
			return strings.TrimSpace(rest)
		}
		said = append(said, c.lines.Text())
	}
	c.Fatalf("the child never said %q, but: %s", word, strings.Join(said, "\n"))
	return ""
}

// kill ends the child as a crash would.
func (c *child) kill() {
	c.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		c.Errorf("the child was not killed, it ended: %v", err)
	}
}

func (c *child) signal(s os.Signal) {
	c.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.Fatal(err)
	}
}

// tell gives the child a line to read.
func (c *child) tell(line string) {
	c.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.Fatal(err)
	}
}

func say(words ...any) { fmt.Println(append([]any{"child"}, words...)...) }

// stay waits to be killed, or for the parent to be gone.
func stay() { _, _ = bufio.NewReader(os.Stdin).ReadByte() }

// childSettles claims a message and does its effect and its ack in one
// transaction. It stops before the commit or right after it.
func childSettles(t testing.TB, p *world, stopAt string) {
	m := p.claimOne("child", "a")
	tx, err := p.store.Begin(t.Context())
	p.must(err)
	stx, err := sqlstore.SQLTx(tx)
	p.must(err)
	p.must(addEffect(t.Context(), stx, m.ID))
	res, err := p.store.Settle(t.Context(), tx, []box.Settlement{{Lease: m.Lease, Verb: box.Ack}})
	p.must(err)
	if !res[0].Applied {
		t.Fatal("the ack was not applied")
	}
	if stopAt == "after commit" {
		p.must(tx.Commit(t.Context()))
	}
	say("ready")
	stay()
}

// childClaims claims what it can get and dies with it.
func childClaims(t testing.TB, p *world, kind string) {
	req := box.ClaimRequest{Consumer: consumer, Owner: "child", Lease: leaseTime, Limit: 100, Suspect: kind == "suspect"}
	got, err := p.store.Claim(t.Context(), req)
	p.must(err)
	say("claimed", strings.Join(ids(got), " "))
	stay()
}

// childReceives takes in messages named after its argument, until it has done
// its share.
func childReceives(t testing.TB, p *world, arg string) {
	for i := range 100 {
		if res, err := p.try(nil, box.Queue, message(fmt.Sprintf("%s-%d", arg, i))); err != nil || res.Outcome != postroom.Accepted {
			say("failed", err, res.Outcome)
			return
		}
		if got, err := p.store.Claim(t.Context(), box.ClaimRequest{Consumer: consumer, Owner: arg, Lease: leaseTime, Limit: 1}); err != nil {
			say("failed", err)
			return
		} else if len(got) == 1 {
			if _, err := p.store.Settle(t.Context(), nil, []box.Settlement{{Lease: got[0].Lease, Verb: box.Ack}}); err != nil {
				say("failed", err)
				return
			}
		}
	}
	say("finished")
}
