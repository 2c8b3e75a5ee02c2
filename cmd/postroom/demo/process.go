package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// A process is a child as the parent sees it.
type process struct {
	cmd *exec.Cmd
	// killed: the parent killed it.
	killed atomic.Bool
}

// kill is a crash: nothing in the process gets to run any more.
func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill()
}

// stopTime is how long a child may take to end in an orderly way.
const stopTime = 15 * time.Second

// spawn runs a child until it ends, or until ctx ends and it has had the time to
// stop. It gives whether the child was killed, by whomever; any other bad end is
// an error.
func (d *demo) spawn(ctx context.Context, t task, hear func(word string, numbers []int)) (killed bool, err error) {
	text, err := json.Marshal(t)
	if err != nil {
		return false, err
	}
	p := &process{cmd: d.opts.Command(ctx, Variable+"="+string(text))}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	var complaint strings.Builder
	p.cmd.Stderr = &complaint
	p.cmd.Cancel = stdin.Close
	p.cmd.WaitDelay = stopTime
	if err := p.cmd.Start(); err != nil {
		return false, fmt.Errorf("start a process: %w", err)
	}
	d.add(t.Sender < 0, p)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		var numbers []int
		for _, field := range strings.Fields(rest) {
			var n int
			_, _ = fmt.Sscan(field, &n)
			numbers = append(numbers, n)
		}
		hear(word, numbers)
	}
	err = p.cmd.Wait()
	d.remove(t.Sender < 0, p)
	var exit *exec.ExitError
	switch {
	case err == nil, ctx.Err() != nil && p.cmd.ProcessState.Success():
		return false, nil
	case p.killed.Load(), errors.As(err, &exit) && !exit.Exited():
		d.count(func(l *Ledger) {
			if !p.killed.Load() {
				l.KilledByMessage++
			}
		})
		return true, nil
	default:
		return false, fmt.Errorf("a process failed: %w\n%s", err, strings.TrimSpace(complaint.String()))
	}
}
