package never

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/sqlstore/postgres"
)

// The server crashes, is read-only and has a full disk, one after the other, while
// many callers receive and a worker handles many messages at once, in transactions.
// What was acknowledged is done in the end, with its effect there once.
func TestNever14_under_load_what_was_acknowledged_outlives_a_server_that_crashes_is_read_only_or_full(t *testing.T) {
	s := ownServer(t)
	disk := s.smallDisk(64 << 20)
	w := start(t, &world{driver: "pgx", dsn: s.dsn(), dialect: postgres.Dialect, native: true})
	setting := func(how string) {
		w.exec(`ALTER SYSTEM ` + how)
		w.exec(`SELECT pg_reload_conf()`)
	}
	outages := []outage{
		{"read-only", func() { setting(`SET default_transaction_read_only = on`) }, func() { setting(`RESET default_transaction_read_only`) }},
	}
	if disk != "" {
		w.exec(`CREATE TABLESPACE small LOCATION '` + disk + `'`)
		for _, table := range []string{"postroom_message", "postroom_work", "postroom_done", "effect"} {
			w.exec(`ALTER TABLE ` + table + ` SET TABLESPACE small`)
		}
		ballast := filepath.Join(disk, "ballast")
		outages = append(outages, outage{"full", func() { fill(t, ballast) }, func() { w.must(os.Remove(ballast)) }})
	}
	// The last, since the test's own sessions go too.
	outages = append(outages, outage{"down", s.kill, s.start}, outage{"down again", s.kill, s.start})
	w.strain(outages)
}

// An outage is a way to fail, and what ends it.
type outage struct {
	what       string
	fail, mend func()
}

// strain lets a program receive and handle while the server fails and recovers.
func (w *world) strain(outages []outage) {
	w.Helper()
	const between, refused = 200, 2 * loadCallers
	p := w.program(loadSlots+10, inbox.Options{})
	o := swift()
	// A commit whose answer was lost leaves a lease that has to lapse.
	o.Concurrency, o.Lease = loadSlots, 2*time.Second
	p.start(o, p.handler(plainly))
	c := p.call("m", 0)
	more := func(of *atomic.Int64, n int64, what string) {
		n += of.Load()
		w.eventually(what, func() bool { return of.Load() >= n })
	}
	for _, o := range outages {
		more(&c.acknowledged, between, "callers get their messages in before the server is "+o.what)
		o.fail()
		more(&c.refused, refused, "callers are refused while the server is "+o.what)
		o.mend()
	}
	more(&c.acknowledged, between, "callers get their messages in again")
	c.end()
	w.db.SetMaxIdleConns(0) // what is idle may have died with the server
	w.allDone()
	lost := w.count(`SELECT count(*) FROM (` + c.sent() + `) AS sent
		LEFT JOIN postroom_message m ON m.consumer = '` + consumer + `' AND m.source = '` + source + `' AND m.id = sent.id
		LEFT JOIN postroom_done d ON d.seq = m.seq
		WHERE d.seq IS NULL`)
	if sent := w.count(`SELECT count(*) FROM (` + c.sent() + `) AS sent`); lost > 0 || sent != int(c.acknowledged.Load()) || sent < len(outages)*between {
		w.Errorf("%d of %d acknowledged messages (%d) are not done", lost, c.acknowledged.Load(), sent)
	}
	once := w.count(`SELECT count(*) FROM postroom_message m JOIN postroom_done d ON d.seq = m.seq
		WHERE (SELECT count(*) FROM effect e WHERE e.id = m.id) = 1`)
	if done, effects := w.count(`SELECT count(*) FROM postroom_done`), w.count(`SELECT count(*) FROM effect`); done != once || effects != once {
		w.Errorf("%d messages are done and %d effects are there; %d messages have theirs once", done, effects, once)
	}
	if dead := w.count(`SELECT count(*) FROM postroom_work`); dead > 0 {
		w.Errorf("%d messages died of the outages", dead)
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, size := range []int{1 << 20, 1 << 12} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
}
