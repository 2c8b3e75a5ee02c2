package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/sqlstore"
)

// common are the checks of every database. The first ones tell the others
// whether there is something to look at.
var common = []check{
	{
		name: "schema.version",
		why:  "Programs that do not find the tables they were written for fail with ErrNoSchema.",
		look: lookAtVersion,
	},
	{
		name:   "schema.tables",
		why:    "Statements that use what is missing fail.",
		tables: true, look: lookAtRelations,
	},
	{
		name:   "schema.indexes",
		why:    "Without a unique key duplicates are taken for new messages; without an index each claim reads all that waits.",
		tables: true, look: lookAtIndexes,
	},
	{
		name: "clock.offset",
		why:  "Leases and retries go by the database's clock alone, but due times and expiries that programs reckon by theirs come too early or too late, and times in logs do not match.",
		look: lookAtClock,
	},
	{
		name:   "messages.dead",
		why:    "A dead message waits for a person: its effect has not taken place.",
		tables: true, look: lookAtDead,
	},
	{
		name:   "messages.leases",
		why:    "The process that held them is gone, and nobody reaps: no worker of the consumer runs.",
		tables: true, look: lookAtLeases,
	},
	{
		name:   "messages.waiting",
		why:    "No worker takes them, handlers are too slow, or the head of their group does not get on.",
		tables: true, look: lookAtWaiting,
	},
}

// A set is one of the two table sets of a store.
type set struct {
	*sqlstore.Store
	name string
}

func (p *Patient) sets() ([]set, error) {
	sets := []set{{p.Store, "inbox"}}
	out, err := p.Store.Outbox()
	if err != nil {
		return nil, err
	}
	if store, ok := out.(*sqlstore.Store); ok {
		sets = append(sets, set{store, "outbox"})
	}
	return sets, nil
}

// lookAtVersion looks at each set by itself: one may be there without the other.
func lookAtVersion(ctx context.Context, p *Patient) (results []result, err error) {
	sets, err := p.sets()
	if err != nil {
		return nil, err
	}
	p.tables = true
	for _, s := range sets {
		have, want, err := s.Version(ctx)
		p.tables = p.tables && err == nil && have > 0
		switch {
		// Without that right a program can do nothing.
		case err != nil && p.database.refused(err):
			results = append(results, result{
				Fail, fmt.Sprintf("%s: the role may not read the tables: %v", s.name, err),
				"run what '" + p.command("schema --dialect "+p.Dialect.Name+" --grants ROLE") + "' prints",
			})
		case err != nil && !errors.Is(err, postroom.ErrNoSchema):
			return results, err
		case err != nil:
			results = append(results, result{Fail, s.name + ": no tables", p.command("migrate")})
		case have < want:
			results = append(results, result{Fail, fmt.Sprintf("%s: version %d, migrations up to %d are pending", s.name, have, want), p.command("migrate")})
		case have > want:
			results = append(results, result{
				Warn, fmt.Sprintf("%s: version %d, which this program does not know; it knows %d", s.name, have, want),
				"use a postroom that is at least as new as the one that migrated",
			})
		default:
			results = append(results, fine("%s: version %d", s.name, have)...)
		}
	}
	return results, nil
}

// command is a call of postroom on these tables.
func (p *Patient) command(args string) string {
	if p.Schema != "" {
		args += " --schema " + p.Schema
	}
	if p.Prefix != "postroom" {
		args += " --prefix " + p.Prefix
	}
	return "postroom " + args
}

const (
	clockTries = 9
	// farOff is an offset that people notice; farAway a round trip that workers do.
	farOff  = time.Second
	farAway = 100 * time.Millisecond
)

// lookAtClock asks for the time on one connection several times, and believes the
// quickest answer: the server's clock was read somewhere within its round trip.
func lookAtClock(ctx context.Context, p *Patient) ([]result, error) {
	if p.database.clock == "" {
		return skipped("not looked at on %s", p.Dialect.Name), nil
	}
	conn, err := p.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	var offset time.Duration
	best := time.Duration(1<<63 - 1)
	for range clockTries {
		var micros int64
		before, began := p.Now(), time.Now()
		if err := conn.QueryRowContext(ctx, p.database.clock).Scan(&micros); err != nil {
			return nil, err
		}
		if trip := time.Since(began); trip < best {
			best, offset = trip, time.UnixMicro(micros).Sub(before.Add(trip/2))
		}
	}
	return judgeClock(offset, best), nil
}

// judgeClock believes in an offset only as far as half a round trip can't explain
// it.
func judgeClock(offset, trip time.Duration) []result {
	seen := fmt.Sprintf("the database is %s this machine, give or take %s; round trip %s", ahead(offset), rounded(trip/2), rounded(trip))
	switch {
	case offset.Abs()-trip/2 > farOff:
		return []result{{Warn, seen, "let both machines keep their clocks by NTP: timedatectl set-ntp true"}}
	case trip > farAway:
		return []result{{Warn, seen + ": each batch of messages takes several of them", "run the program nearer to its database"}}
	}
	return fine("%s", seen)
}

func ahead(offset time.Duration) string {
	if offset < 0 {
		return rounded(-offset) + " behind"
	}
	return rounded(offset) + " ahead of"
}

// rounded gives three digits or so.
func rounded(d time.Duration) string {
	unit := time.Microsecond
	for d >= 1000*unit && unit < time.Second {
		unit *= 10
	}
	return d.Round(unit).String()
}

func lookAtDead(ctx context.Context, p *Patient) (results []result, err error) {
	sets, err := p.sets()
	if err != nil {
		return nil, err
	}
	for _, s := range sets {
		stats, err := s.Stats(ctx, "")
		if err != nil {
			return results, err
		}
		dead := map[string]int64{}
		for _, l := range stats.Live {
			if l.Stage == postroom.StageDead {
				dead[l.Consumer] += l.N
			}
		}
		for _, consumer := range sorted(dead) {
			mend := "look at why with Inbox.Dead, then Inbox.Requeue or Inbox.Discard"
			if s.name == "outbox" {
				mend = p.command("outbox list --state dead") + ", then Outbox.Requeue or Outbox.Discard"
			}
			results = append(results, result{Warn, fmt.Sprintf("%s: %d dead of %s", s.name, dead[consumer], consumer), mend})
		}
	}
	if results == nil {
		results = fine("none")
	}
	return results, nil
}

const (
	// unreaped is how long a lease may have been over: workers reap each third of
	// a lease, of which the longest that is recommended is 5 minutes.
	unreaped = 5 * time.Minute
	page     = 1000
	pages    = 10
)

// backlog counts the messages by consumer that are in progress since some time
// and that stuck says are so. most: counting stopped, there may be more.
func backlog(ctx context.Context, s set, since time.Duration, stuck func(r *box.Record) bool) (counts map[string]int64, most bool, err error) {
	counts = map[string]int64{}
	f := box.Filter{State: postroom.StateProcessing, Overdue: since, Limit: page}
	for range pages {
		records, err := s.List(ctx, f)
		if err != nil {
			return nil, false, err
		}
		for _, r := range records {
			f.After = r.Seq
			if stuck(r) {
				counts[r.Consumer]++
			}
		}
		if len(records) < page {
			return counts, false, nil
		}
	}
	return counts, true, nil
}

// stuckResults tells of what backlog counts in both sets.
func (p *Patient) stuckResults(ctx context.Context, since time.Duration, text, mend string, stuck func(now time.Time, r *box.Record) bool) (results []result, err error) {
	sets, err := p.sets()
	if err != nil {
		return nil, err
	}
	for _, s := range sets {
		stats, err := s.Stats(ctx, "") // for the database's time
		if err != nil {
			return results, err
		}
		counts, most, err := backlog(ctx, s, since, func(r *box.Record) bool { return stuck(stats.Now, r) })
		if err != nil {
			return results, err
		}
		more := ""
		if most {
			more = " or more"
		}
		for _, consumer := range sorted(counts) {
			results = append(results, result{Warn, fmt.Sprintf("%s: %d%s of %s %s", s.name, counts[consumer], more, consumer, text), mend})
		}
	}
	if results == nil {
		results = fine("none")
	}
	return results, nil
}

func lookAtLeases(ctx context.Context, p *Patient) ([]result, error) {
	return p.stuckResults(ctx, unreaped, fmt.Sprintf("whose lease has been over for more than %s", unreaped),
		"run a worker of that consumer, or a relay for the outbox: it reaps by itself; see docs/troubleshooting.md, Messages are not claimed",
		func(now time.Time, r *box.Record) bool {
			return r.Stage == postroom.StageLeased && r.Lease.Until.Before(now.Add(-unreaped))
		})
}

// lookAtWaiting leaves out what waits for its retry or for a paused topic, and
// what runs.
func lookAtWaiting(ctx context.Context, p *Patient) ([]result, error) {
	return p.stuckResults(ctx, p.Overdue, fmt.Sprintf("waiting for more than %s", p.Overdue),
		"run a worker of that consumer, or a relay for the outbox, or more of them; 'postroom stats' shows topics and stages",
		func(now time.Time, r *box.Record) bool {
			switch r.Stage {
			case postroom.StageLeased, postroom.StageParked, postroom.StageIdle:
				return false
			}
			return !r.NextAt.After(now)
		})
}
