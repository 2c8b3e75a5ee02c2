package demo

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// How often progress is shown: on a terminal, where it is written over, and
// elsewhere.
const (
	liveEvery  = 200 * time.Millisecond
	plainEvery = 2 * time.Second
)

// view shows progress until ctx is done.
func (d *demo) view(ctx context.Context) {
	every := plainEvery
	if d.opts.Live {
		every = liveEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	begin, lines := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			if d.opts.Live {
				d.show(up(lines))
			}
			return
		case <-tick.C:
		}
		effects := d.effects(ctx)
		d.mu.Lock()
		l, phase := d.ledger, d.phase
		senders, workers := len(d.senders), len(d.workers)
		d.mu.Unlock()
		if !d.opts.Live {
			d.show(fmt.Sprintf("%5.1f s %s: %d effects of %d messages, %d sent, %d duplicates, %d runs, %d leases lost, %d dead\n",
				time.Since(begin).Seconds(), phase, effects, d.opts.Messages, l.Sent, l.Duplicates, l.Runs, l.LeasesLost, l.Died))
			continue
		}
		panel := []string{
			fmt.Sprintf("%5.1f s  %-5s  seed %d", time.Since(begin).Seconds(), phase, l.Seed),
			fmt.Sprintf("senders %d, crashed %-3d sent %-6d acknowledged %-6d duplicates %d", senders, l.SendersCrashed, l.Sent, l.Acknowledged, l.Duplicates),
			fmt.Sprintf("workers %d, killed %-4d stalled %-3d leases lost %d", workers, l.WorkersKilled+l.KilledByMessage, l.WorkersStalled, l.LeasesLost),
			fmt.Sprintf("runs %-6d failed %-4d panicked %-4d timed out %-4d dead %d", l.Runs, l.Failed, l.Panicked, l.TimedOut, l.Died),
			fmt.Sprintf("effects %s %d of %d", bar(effects, d.opts.Messages), effects, d.opts.Messages),
		}
		d.show(up(lines) + strings.Join(panel, "\x1b[K\n") + "\x1b[K\n")
		lines = len(panel)
	}
}

func (d *demo) show(text string) { _, _ = fmt.Fprint(d.opts.Progress, text) }

// effects counts the rows so far; what can't be counted now is counted next time.
func (d *demo) effects(ctx context.Context) (n int) {
	store := d.opts.Store
	_ = store.DB.QueryRowContext(ctx, store.SQL("SELECT count(*) FROM "+store.Effects+" WHERE consumer = $1"), d.opts.Consumer).Scan(&n)
	return n
}

// up moves to the first of the lines that were shown, and clears them.
func up(lines int) string {
	if lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\x1b[J", lines)
}

func bar(n, of int) string {
	const width = 40
	full := min(width*n/max(of, 1), width)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}
