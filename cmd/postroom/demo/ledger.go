package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// A Ledger says what happened. The first part was told by the processes; the
// second was counted in the database when all was over.
type Ledger struct {
	Seed uint64 `json:"seed"`
	// Sent are deliveries that senders began; Acknowledged those that were
	// answered, the first ones of a message and the others.
	Sent         int `json:"sent"`
	Acknowledged int `json:"acknowledged"`
	Accepted     int `json:"accepted"`
	Duplicates   int `json:"duplicates_absorbed"`
	// Runs of handlers, and how those ended that did not succeed. Retried are the
	// runs that failed, panicked or timed out.
	Runs     int `json:"runs"`
	Failed   int `json:"failed"`
	Panicked int `json:"panicked"`
	TimedOut int `json:"timed_out"`
	Refused  int `json:"refused"`
	Retried  int `json:"retried"`
	// What happened to processes. Suspended counts the moments at which all leases
	// ended without the workers' noticing.
	SendersCrashed  int `json:"senders_crashed"`
	WorkersKilled   int `json:"workers_killed"`
	KilledByMessage int `json:"killed_by_a_message"`
	WorkersStalled  int `json:"workers_stalled"`
	Suspended       int `json:"suspended"`
	LeasesLost      int `json:"leases_lost"`
	Died            int `json:"dead"`
	Requeued        int `json:"requeued"`

	Unique int `json:"unique_messages"`
	Stored int `json:"stored"`
	Done   int `json:"done"`
	// Effects are rows of the table without a unique key.
	Effects int `json:"effects"`
	// Wrong says why the ledger does not balance, a line per reason.
	Wrong []string `json:"wrong"`
}

// Balanced: each message had its effect, once, and by the holder of its lease.
func (l *Ledger) Balanced() bool { return len(l.Wrong) == 0 }

func (l *Ledger) wrong(format string, args ...any) {
	l.Wrong = append(l.Wrong, fmt.Sprintf(format, args...))
}

// effect is one row.
type effect struct {
	id    string
	fence int64
}

// audit compares what should be there with what is. It believes no process: it
// reads the effects themselves, and under which lease each message was done.
func (l *Ledger) audit(ctx context.Context, p *Plan, in *inbox.Inbox, store *Store) error {
	effects, err := readEffects(ctx, p, store)
	if err != nil {
		return err
	}
	fences := map[string]int64{}
	left := 0
	for r, err := range in.All(ctx, inbox.Filter{Limit: 1000}) {
		switch {
		case err != nil:
			return err
		case r.State == postroom.StateDone:
			fences[r.ID] = r.Done.Fence
		default:
			left++
		}
		l.Stored++
	}
	l.Unique, l.Done, l.Effects = p.Messages, len(fences), len(effects)
	l.Wrong = []string{}
	count := map[string]int{}
	stale := 0
	for _, e := range effects {
		count[e.id]++
		if fence, done := fences[e.id]; done && fence != e.fence {
			stale++
		}
	}
	missing, repeated := 0, 0
	for n := range p.Messages {
		switch c := count[id(n)]; {
		case c == 0:
			missing++
		case c > 1:
			repeated++
		}
	}
	for _, check := range []struct {
		n    int
		text string
	}{
		{missing, "messages have no effect"},
		{repeated, "messages have more than one effect"},
		{stale, "effects were made under another lease than the one that the message was done with"},
		{left, "messages are not done"},
	} {
		if check.n > 0 {
			l.wrong("%d %s", check.n, check.text)
		}
	}
	if l.Stored != l.Unique {
		l.wrong("%d messages are stored, %d were sent", l.Stored, l.Unique)
	}
	if l.Effects != l.Unique {
		l.wrong("%d effects of %d messages", l.Effects, l.Unique)
	}
	return nil
}

func readEffects(ctx context.Context, p *Plan, store *Store) (effects []effect, err error) {
	rows, err := store.DB.QueryContext(ctx, store.SQL("SELECT id, fence FROM "+store.Effects+" WHERE consumer = $1"), p.Consumer)
	if err != nil {
		return nil, fmt.Errorf("read effects: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e effect
		if err := rows.Scan(&e.id, &e.fence); err != nil {
			return nil, fmt.Errorf("read effects: %w", err)
		}
		effects = append(effects, e)
	}
	return effects, rows.Err()
}

// tooQuiet adds what should have gone wrong and did not: a run without faults
// proves nothing.
func (l *Ledger) tooQuiet(o *Options) {
	for _, check := range []struct {
		meant bool
		n     int
		what  string
	}{
		{o.Duplicates > 0, l.Duplicates, "no duplicate was sent"},
		{o.Fail > 0, l.Failed, "no handler failed"},
		{o.KillEvery > 0, l.WorkersKilled, "no worker was killed"},
		{o.KillEvery > 0, l.LeasesLost, "no lease was lost"},
	} {
		if check.meant && check.n == 0 {
			l.wrong("too little happened to prove anything: %s; send more messages, or for longer", check.what)
		}
	}
}

// String is the ledger for people.
func (l *Ledger) String() string {
	var b strings.Builder
	row := func(what string, n int, remark string, args ...any) {
		line := fmt.Sprintf("  %-22s %8d   "+remark, append([]any{what, n}, args...)...)
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(&b, "Ledger of seed %d\n", l.Seed)
	row("sent", l.Sent, "deliveries; senders crashed %d times", l.SendersCrashed)
	row("delivered", l.Acknowledged, "acknowledged; the others were sent again")
	row("duplicates absorbed", l.Duplicates, "")
	row("handler runs", l.Runs, "")
	row("retried", l.Retried, "%d failed, %d panicked, %d timed out", l.Failed, l.Panicked, l.TimedOut)
	row("killed", l.WorkersKilled+l.KilledByMessage, "workers, %d of them by a message", l.KilledByMessage)
	row("stalled", l.WorkersStalled+l.Suspended, "%d workers stopped for a while, %d times all suspended", l.WorkersStalled, l.Suspended)
	row("lost leases", l.LeasesLost, "whose messages went to another worker")
	row("dead", l.Died, "%d requeued by hand once the handler was repaired", l.Requeued)
	row("unique messages", l.Unique, "%d stored, %d done", l.Stored, l.Done)
	row("effects", l.Effects, "rows in a table without a unique key")
	if l.Balanced() {
		b.WriteString("It balances: effects = unique messages, each by the holder of its lease.\n")
	}
	for _, w := range l.Wrong {
		fmt.Fprintf(&b, "It does not balance: %s.\n", w)
	}
	return b.String()
}
