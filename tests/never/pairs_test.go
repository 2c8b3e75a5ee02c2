package never

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
	"github.com/postroom/postroom/memstore"
	"github.com/postroom/postroom/sqlstore"
	"github.com/postroom/postroom/tests/park"
)

// A stage is where a pair of operations meets: a store, a consumer of its own,
// and one message.
type stage struct {
	testing.TB
	store    box.Store
	consumer string
	group    string
	lease    postroom.Lease
	// endLease and age let the lease expire, and make an outcome old.
	endLease, age func()
}

func (s *stage) message(payload string) postroom.Message {
	m := message("a")
	m.Consumer, m.Group, m.Payload = s.consumer, s.group, []byte(payload)
	return m
}

func (s *stage) key() postroom.Key {
	return postroom.Key{Consumer: s.consumer, Source: source, ID: "a"}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// An operation gives its answer in words.
type operation struct {
	name string
	do   func(ctx context.Context, s *stage, store box.Store) (string, error)
	// misses: it passes by what somebody has locked, and then gives this answer.
	misses string
}

var reap = operation{"reap", reaping, "nothing"}

var operations = []operation{
	{"check", putting(box.Check, "first", false), ""},
	{"receive", putting(box.Queue, "first", false), ""},
	{"receive another", putting(box.Queue, "another", false), ""},
	{"receive to keep", putting(box.Queue, "a third", true), ""},
	{"once", putting(box.Once, "first", false), ""},
	{"guard", putting(box.Guard, "first", false), ""},
	{"claim", claiming, "nothing"},
	{"ack", settling(box.Ack), ""},
	{"abandon", settling(box.Abandon), ""},
	{"fail", settling(box.Fail), ""},
	{"release", settling(box.Release), ""},
	{"extend", extending, ""},
	{"mark processing", moving(box.MarkProcessing), ""},
	{"mark processed", moving(box.MarkProcessed), ""},
	{"mark dead", moving(box.MarkDead), ""},
	{"requeue", moving(box.Requeue), ""},
	{"replay", moving(box.Replay), ""},
	{"discard", moving(box.Discard), ""},
	reap,
	{"cleanup", cleaning, "nothing"},
}

func putting(mode box.Mode, payload string, keep bool) func(context.Context, *stage, box.Store) (string, error) {
	return func(ctx context.Context, s *stage, store box.Store) (string, error) {
		p := put(mode, s.message(payload))
		p.Keep = keep
		if mode == box.Check {
			p.Message.Topic, p.Message.Payload, p.Message.Group = "", nil, ""
		}
		res, err := store.Put(ctx, nil, []box.Put{p})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(res[0].Outcome, " ", res[0].Err), nil
	}
}

func claiming(ctx context.Context, s *stage, store box.Store) (string, error) {
	got, err := store.Claim(ctx, box.ClaimRequest{Consumer: s.consumer, Owner: "claimer", Lease: leaseTime, Limit: 10})
	if err != nil || len(got) == 0 {
		return "nothing", err
	}
	m := got[0]
	return fmt.Sprintf("claimed %d: %s, revision %d %d", len(got), m.Payload, m.Revision, m.Lease.Revision), nil
}

// settling tries again while the row is locked, as the engine does.
func settling(verb box.Verb) func(context.Context, *stage, box.Store) (string, error) {
	return func(ctx context.Context, s *stage, store box.Store) (string, error) {
		for {
			res, err := store.Settle(ctx, nil, []box.Settlement{{Lease: s.lease, Verb: verb, Error: "failed", Delay: time.Hour, Handler: "handler"}})
			if err != nil || !res[0].Locked {
				return fmt.Sprintf("%+v", res), err
			}
		}
	}
}

func extending(ctx context.Context, s *stage, store box.Store) (string, error) {
	for {
		res, err := store.Extend(ctx, []postroom.Lease{s.lease}, leaseTime)
		if err != nil || !res[0].Locked {
			return fmt.Sprint(err == nil && res[0].Extended), err
		}
	}
}

func moving(action box.Action) func(context.Context, *stage, box.Store) (string, error) {
	return func(ctx context.Context, s *stage, store box.Store) (string, error) {
		res, err := store.Move(ctx, []box.Move{{Key: s.key(), Action: action, Reason: "because"}})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(res[0].Changed, res[0].Err), nil
	}
}

func reaping(ctx context.Context, s *stage, store box.Store) (string, error) {
	got, err := store.(box.Sweeper).Reap(ctx, box.ReapRequest{Consumer: s.consumer})
	if err != nil || len(got) == 0 {
		return "nothing", err
	}
	return fmt.Sprint("reaped ", got[0].State, got[0].Lost), nil
}

func cleaning(ctx context.Context, s *stage, store box.Store) (string, error) {
	res, err := store.(box.Sweeper).Cleanup(ctx, box.CleanupRequest{Consumer: s.consumer, Records: time.Hour})
	if err != nil || res.Records == 0 {
		return "nothing", err
	}
	return "removed", nil
}

// scenes are what two operations may meet with.
var scenes = map[string]func(s *stage){
	"none": func(*stage) {},
	"seen": func(s *stage) { s.do("check") },
	"ready": func(s *stage) {
		s.do("receive")
	},
	"arrived": func(s *stage) {
		s.group = "g"
		s.do("receive")
	},
	"head": func(s *stage) {
		s.group = "g"
		s.leased()
		s.do("release")
		// Its delay is over.
		s.endLease()
	},
	"leased":       (*stage).leased,
	"leased head":  func(s *stage) { s.group = "g"; s.leased() },
	"expired":      func(s *stage) { s.leased(); s.endLease() },
	"expired head": func(s *stage) { s.group = "g"; s.leased(); s.endLease() },
	"guarded":      func(s *stage) { s.guarded(false) },
	"guarded, expired": func(s *stage) {
		s.guarded(false)
		s.endLease()
	},
	"releasing, expired": func(s *stage) {
		s.guarded(true)
		s.endLease()
	},
	"releasing": func(s *stage) { s.guarded(true) },
	"dead": func(s *stage) {
		s.leased()
		s.do("fail")
	},
	"dead of a group": func(s *stage) {
		s.group = "g"
		s.leased()
		s.do("fail")
	},
	"done": func(s *stage) {
		s.leased()
		s.do("ack")
	},
	"done long ago": func(s *stage) {
		s.leased()
		s.do("ack")
		s.age()
	},
}

func (s *stage) do(name string) {
	s.Helper()
	for _, op := range operations {
		if op.name == name {
			_, err := op.do(s.Context(), s, s.store)
			s.must(err)
		}
	}
}

func (s *stage) leased() {
	s.do("receive")
	got, err := s.store.Claim(s.Context(), box.ClaimRequest{Consumer: s.consumer, Owner: "holder", Lease: leaseTime, Limit: 1})
	s.must(err)
	s.lease = got[0].Lease
}

func (s *stage) guarded(release bool) {
	p := put(box.Guard, s.message("first"))
	p.ReleaseOnError = release
	res, err := s.store.Put(s.Context(), nil, []box.Put{p})
	s.must(err)
	s.lease = res[0].Lease
}

// stands describes the message as it is left, without numbers and times.
func (s *stage) stands() string {
	rec, err := s.store.Get(s.Context(), s.key())
	if errors.Is(err, postroom.ErrNotFound) {
		return "none"
	}
	s.must(err)
	if rec.State == postroom.StateDone {
		d := rec.Done
		return fmt.Sprintf("done after %d runs by %q, revision %d, superseded %v, discarded %v, fence %d: %s",
			d.Runs, d.Handler, d.Revision, d.Superseded, d.Discarded, d.Fence, rec.Payload)
	}
	where := rec.Stage.String()
	if rec.Group != "" && (rec.Stage == postroom.StageArrived || rec.Stage == postroom.StageQueued || rec.Stage == postroom.StageReady) {
		where = "waiting" // how far it has come in its lane is for workers alone
	}
	return fmt.Sprintf("%s, attempt %d, lost %d, revision %d, guard %d, fence %d, owner %s, error %q: %s",
		where, rec.Attempt, rec.Lost, rec.Revision, rec.Guard, rec.Lease.Fence, rec.Lease.Owner, rec.LastError, rec.Payload)
}

// model makes a stage in memory.
func model(t testing.TB, scene func(*stage)) *stage {
	now := time.Now()
	s := &stage{TB: t, store: memstore.New(memstore.Options{Now: func() time.Time { return now }}), consumer: "model", lease: noLease}
	s.endLease = func() { now = now.Add(leaseTime + 2*time.Hour) }
	s.age = func() { now = now.Add(2 * time.Hour) }
	scene(s)
	return s
}

// noLease is a lease that nobody ever held.
var noLease = postroom.Lease{Seq: 1 << 40, Owner: "holder", Fence: 1, Revision: 1}

// serial runs operations one after the other on the model.
func serial(t testing.TB, scene func(*stage), ops ...operation) (answers []string, stands string) {
	s := model(t, scene)
	for _, op := range ops {
		a, err := op.do(t.Context(), s, s.store)
		s.must(err)
		answers = append(answers, a)
	}
	return answers, s.stands()
}

// allowed gives what a and b may lead to when they run at once. quiet: b changes
// nothing and sees no difference, so that there is nothing to see.
func allowed(t testing.TB, scene func(*stage), a, b operation) (results []string, quiet bool) {
	ab, standsAB := serial(t, scene, a, b)
	ba, standsBA := serial(t, scene, b, a)
	_, before := serial(t, scene)
	aAlone, onlyA := serial(t, scene, a)
	bAlone, onlyB := serial(t, scene, b)
	results = []string{result(ab[0], ab[1], standsAB), result(ba[1], ba[0], standsBA)}
	if a.misses != "" {
		results = append(results, result(a.misses, bAlone[0], onlyB))
	}
	if b.misses != "" {
		results = append(results, result(aAlone[0], b.misses, onlyA))
	}
	// An expired lease is ended first, as a reaper would: the other may come
	// between the one and the other.
	rab, standsRAB := serial(t, scene, reap, a, b)
	rba, standsRBA := serial(t, scene, reap, b, a)
	results = append(results, result(rab[1], rab[2], standsRAB), result(rba[2], rba[1], standsRBA))
	return results, onlyB == before && standsAB == onlyA && standsBA == onlyA && ab[1] == ba[0]
}

func result(a, b, stands string) string { return fmt.Sprintf("%s | %s | %s", a, b, stands) }

// TestNever23 lets each two operations meet on one message, in each state: the
// first stops before one of its statements, the second runs as far as it can, the
// first goes on. What comes out must be what one of the two orders gives, by the
// store in memory.
func TestNever23_two_operations_on_one_key_give_what_one_order_of_them_gives(t *testing.T) {
	onAll(t, func(t *testing.T, w *world) {
		a, b := w.join(sqlstore.Options{}), w.join(sqlstore.Options{})
		var names []string
		for name := range scenes {
			names = append(names, name)
		}
		slices.Sort(names)
		cells, parked := 0, 0
		for _, name := range names {
			for _, opA := range operations {
				for _, opB := range operations {
					want, quiet := allowed(t, scenes[name], opA, opB)
					if quiet || !chosen(w, name+opA.name+opB.name) {
						continue
					}
					cells++
					if w.meet(a, b, scenes[name], opA, opB, name, want) {
						parked++
					}
				}
			}
		}
		t.Logf("%d pairs met, %d of them in the midst of the first", cells, parked)
		if cells < 50 || parked < cells/2 {
			t.Errorf("too few pairs met")
		}
	})
}

// chosen leaves out a part of the pairs where all of them would take too long;
// POSTROOM_TEST_ALL asks for all.
func chosen(w *world, pair string) bool {
	if os.Getenv("POSTROOM_TEST_ALL") != "" {
		return true
	}
	return hash(pair)%parts == uint32(w.part) //nolint:gosec // a small number
}

// parts is into how many parts the pairs are split; each kind of database takes
// another one.
const parts = 32

func hash(s string) uint32 {
	h := fnv.New32()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

var stages atomic.Int64

// stage makes a stage in the world's database.
func (w *world) stage(scene func(*stage)) *stage {
	s := &stage{TB: w.TB, store: w.store, consumer: fmt.Sprint("c", stages.Add(1)), lease: noLease}
	earlier := func(table string, columns ...string) {
		for _, c := range columns {
			w.exec("UPDATE postroom_" + table + " SET " + fmt.Sprintf(w.minus, c, (leaseTime+2*time.Hour).Microseconds()) + " WHERE consumer = '" + s.consumer + "'")
		}
	}
	s.endLease = func() {
		earlier("work", "lease_until", "retry", "next")
		if w.notesClaims() {
			earlier("claim", "until")
		}
	}
	s.age = func() { earlier("done", "done_at") }
	scene(s)
	return s
}

// meet lets two operations meet, and reports whether the first was stopped.
func (w *world) meet(a, b *party, scene func(*stage), opA, opB operation, name string, want []string) bool {
	s := w.stage(scene)
	// Where to stop: some statement of the first, another one for each pair.
	nth := 1 + int(hash(opB.name+name+opA.name)>>8)%9
	spot := a.lot.ParkNth(park.Before, park.Any, nth)
	defer spot.Cancel()
	var answerA, answerB string
	var errA, errB error
	doneA, doneB := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(doneA)
		answerA, errA = opA.do(w.Context(), s, a.store)
	}()
	parked := false
	select {
	case <-doneA: // it had fewer statements
	case <-spot.Arrived():
		parked = true
	}
	before := b.lot.Count(park.Begin)
	go func() {
		defer close(doneB)
		answerB, errB = opB.do(w.Context(), s, b.store)
	}()
	w.eventually("the second has ended or waits for the first", func() bool {
		select {
		case <-doneB:
			return true
		default:
			return b.lot.Count(park.Begin) >= before+tries || (!w.sqlite() && w.blocked())
		}
	})
	spot.Release()
	<-doneA
	<-doneB
	got := result(answerA, answerB, s.stands())
	if err := errors.Join(errA, errB); err != nil {
		w.Errorf("on %s: %s, stopped before its statement %d, and %s: %v", name, opA.name, nth, opB.name, err)
	} else if !slices.Contains(want, got) {
		w.Errorf("on %s: %s, stopped before its statement %d, and %s gave\n\t%s\nwant one of\n\t%s", name, opA.name, nth, opB.name, got, want)
	}
	return parked
}

// tries is how many transactions an operation begins before it is clear that it
// waits for something.
const tries = 4

// blocked reports whether a session waits for another one's lock.
func (w *world) blocked() bool {
	if w.mysql() {
		return w.count(`SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
			WHERE p.db = DATABASE() AND t.trx_state = 'LOCK WAIT'`) > 0
	}
	if w.sqlserver() {
		return w.count(`SELECT count(*) FROM sys.dm_exec_requests WHERE database_id = DB_ID() AND blocking_session_id <> 0`) > 0
	}
	return w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
}
