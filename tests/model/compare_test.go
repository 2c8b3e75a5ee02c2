package model

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A moment is a time by how far it is from now. Two are the same when they are
// as far, but for what a slow machine takes.
type moment struct {
	set  bool
	away time.Duration
}

const slack = 25 * time.Second

func (s *side) moment(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return moment{true, t.Sub(s.now())}
}

func (m moment) String() string {
	if !m.set {
		return "never"
	}
	return m.away.Round(time.Second).String()
}

// equal compares two values that moments may be in.
func (p *pair) equal(what string, got, want any) {
	p.tb.Helper()
	if diff := difference("", reflect.ValueOf(got), reflect.ValueOf(want)); diff != "" {
		p.tb.Fatalf("%s: %s\nstore %+v\nmodel %+v", what, diff, got, want)
	}
}

func (p *pair) count(got, want int) {
	p.tb.Helper()
	if got != want {
		p.tb.Fatalf("store gave %d results, model %d", got, want)
	}
}

var momentType = reflect.TypeFor[moment]()

// difference names the first part in which two values differ. Nil and empty are
// the same, except for payloads, which are compared as text.
func difference(at string, a, b reflect.Value) string {
	if a.IsValid() != b.IsValid() {
		return at + ": only one is there"
	}
	if !a.IsValid() {
		return ""
	}
	if a.Type() == reflect.TypeFor[time.Time]() {
		return "" // views have moments instead
	}
	if a.Type() == momentType {
		x, y := a.Interface().(moment), b.Interface().(moment)
		if x.set != y.set || (x.away-y.away).Abs() > slack {
			return fmt.Sprintf("%s: store %v, model %v", at, x, y)
		}
		return ""
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if d := difference(at+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); d != "" {
				return d
			}
		}
		return ""
	case reflect.Slice:
		if a.Len() != b.Len() {
			return fmt.Sprintf("%s: store has %d, model %d", at, a.Len(), b.Len())
		}
		for i := range a.Len() {
			if d := difference(fmt.Sprintf("%s[%d]", at, i), a.Index(i), b.Index(i)); d != "" {
				return d
			}
		}
		return ""
	}
	if x, y := a.Interface(), b.Interface(); !reflect.DeepEqual(x, y) {
		return fmt.Sprintf("%s: store %v, model %v", at, x, y)
	}
	return ""
}

var sentinels = []error{
	postroom.ErrInProgress, postroom.ErrDead, postroom.ErrLeased, postroom.ErrNotFound, postroom.ErrDone, postroom.ErrPurged,
}

func errorName(err error) string {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return s.Error()
		}
	}
	return fmt.Sprint(err)
}

// A lease as both stores should give it; the numbers of messages are their own.
type leaseView struct {
	Owner    string
	Fence    int64
	Revision int
	Until    moment
}

func (s *side) lease(l postroom.Lease) leaseView {
	return leaseView{l.Owner, l.Fence, l.Revision, s.moment(l.Until)}
}

type putView struct {
	box.PutResult
	Seq, Err string
	Lease    leaseView
}

// putResult names a message by its key instead of its number, where it can be
// seen.
func (p *pair) putResult(s *side, r box.PutResult, inTx bool) putView {
	v := putView{PutResult: r, Err: errorName(r.Err), Lease: s.lease(r.Lease)}
	v.Seq = fmt.Sprint(r.Seq > 0)
	if r.Seq > 0 && !inTx {
		records, err := s.Store.List(p.ctx, box.Filter{After: r.Seq - 1, Limit: 1})
		p.must(err)
		if len(records) == 1 && records[0].Seq == r.Seq {
			v.Seq = records[0].Key().String()
		}
	}
	v.PutResult.Seq, v.PutResult.Err, v.PutResult.Lease = 0, nil, postroom.Lease{}
	return v
}

type extensionView struct {
	Extended, Locked bool
	Until            moment
}

func (p *pair) extension(s *side, e box.Extension) extensionView {
	return extensionView{e.Extended, e.Locked, s.moment(e.Until)}
}

func moveResults(results []box.MoveResult) []string {
	var out []string
	for _, r := range results {
		name := errorName(r.Err)
		r.Err = nil
		out = append(out, fmt.Sprintf("%+v %s", r, name))
	}
	return out
}

type messageView struct {
	Key                    postroom.Key
	Topic, Group, Payload  string
	Headers                string
	Hash, HashAlg          string
	CorrelationID          string
	Due, Expires, Occurred moment
	Attempt, Revision      int
	FirstSeen, LastSeen    moment
	LastError              string
	Lease                  leaseView
}

func (s *side) message(m *postroom.Message) messageView {
	payload := "none"
	if m.Payload != nil {
		payload = fmt.Sprintf("%q", m.Payload)
	}
	var headers []string
	for k, v := range m.Headers {
		headers = append(headers, k+"="+v)
	}
	slices.Sort(headers)
	return messageView{
		Key: m.Key(), Topic: m.Topic, Group: m.Group, Payload: payload, Headers: strings.Join(headers, " "),
		Hash: string(m.Hash), HashAlg: m.HashAlg, CorrelationID: m.CorrelationID,
		Due: s.moment(m.DueAt), Expires: s.moment(m.ExpiresAt), Occurred: s.moment(m.OccurredAt),
		Attempt: m.Attempt, Revision: m.Revision,
		FirstSeen: s.moment(m.FirstSeen), LastSeen: s.moment(m.LastSeen), LastError: m.LastError,
		Lease: s.lease(m.Lease),
	}
}

func (p *pair) messages(s *side, messages []*postroom.Message) []messageView {
	var views []messageView
	for _, m := range messages {
		views = append(views, s.message(m))
	}
	return views
}

type recordView struct {
	messageView
	State postroom.State
	Stage postroom.Stage
	Next  moment
	Lost  int
	Guard box.GuardMode
	Done  doneView
}

type doneView struct {
	At, LastSeen                  moment
	Runs, Revision                int
	Handler, Note                 string
	Superseded, Discarded, Purged bool
	Fence                         int64
}

func (s *side) record(r *box.Record) recordView {
	d := &r.Done
	return recordView{
		messageView: s.message(&r.Message),
		State:       r.State, Stage: r.Stage, Next: s.moment(r.NextAt), Lost: r.Lost, Guard: r.Guard,
		Done: doneView{
			s.moment(d.At), s.moment(d.LastSeen), d.Runs, d.Revision, d.Handler, d.Note,
			d.Superseded, d.Discarded, d.Purged, d.Fence,
		},
	}
}

// A world is all that can be seen of a store.
type world struct {
	Records []recordView
	States  []string
	Live    []box.LiveCount
	Oldest  moment
	Audit   []string
	Paused  []string
}

// same compares all that can be seen of both.
func (p *pair) same() {
	p.tb.Helper()
	p.equal("state", p.world(&p.store), p.world(&p.model))
}

func (p *pair) world(s *side) world {
	p.tb.Helper()
	var w world
	records, err := s.Store.List(p.ctx, box.Filter{WithPayload: true, Limit: 1000})
	p.must(err)
	for i, r := range records {
		if i > 0 && r.Seq <= records[i-1].Seq {
			p.tb.Fatalf("list is not in ascending order of seq")
		}
		w.Records = append(w.Records, s.record(r))
		p.reached["state "+r.State.String()]++
		p.reached["stage "+r.Stage.String()]++
		got, err := s.Store.Get(p.ctx, r.Key())
		p.must(err)
		p.equal("get and list of "+r.ID, s.record(got), s.record(r))
	}
	// Numbers may differ in order after a message was forgotten and came again.
	slices.SortFunc(w.Records, func(a, b recordView) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	for state := postroom.StateSeen; state <= postroom.StateDead; state++ {
		records, err := s.Store.List(p.ctx, box.Filter{State: state, Consumer: consumers[0], Limit: 1000})
		p.must(err)
		for _, r := range records {
			w.States = append(w.States, fmt.Sprint(state, r.Key(), r.State, len(r.Payload)))
		}
	}
	slices.Sort(w.States)
	stats, err := s.Store.Stats(p.ctx, "")
	p.must(err)
	w.Live, w.Oldest = stats.Live, s.moment(stats.OldestWaiting)
	slices.SortFunc(w.Live, func(a, b box.LiveCount) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Stage, b.Stage))
	})
	audit, err := s.Store.Audit(p.ctx, box.AuditFilter{Limit: 1000})
	p.must(err)
	for _, e := range audit {
		w.Audit = append(w.Audit, fmt.Sprint(e.Actor, e.Action, e.Reason, e.Key, e.Detail))
	}
	for _, c := range consumers {
		paused, err := s.Store.Paused(p.ctx, c)
		p.must(err)
		w.Paused = append(w.Paused, fmt.Sprint(c, paused))
	}
	return w
}
