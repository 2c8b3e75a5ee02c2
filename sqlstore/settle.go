package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Settle ends leases. See box.Store.
func (s *Store) Settle(ctx context.Context, tx postroom.Tx, settlements []box.Settlement) ([]box.Settled, error) {
	if len(settlements) == 0 {
		return nil, nil
	}
	q, err := s.session(tx)
	if err != nil {
		return nil, err
	}
	var (
		settled []box.Settled
		vacated map[string]bool
	)
	if q != nil {
		err := s.inCaller("settle", q, func() (err error) {
			settled, vacated, err = q.settleWaiting(ctx, settlements)
			return err
		})
		if own, ok := tx.(*Transaction); ok && err == nil {
			own.vacated = merge(own.vacated, vacated)
		}
		return settled, err
	}
	settled, rest, err := s.ack(ctx, settlements)
	if err != nil {
		return nil, err
	}
	if err := s.settleRest(ctx, settlements, settled, rest); err != nil && len(rest) == len(settlements) {
		return nil, err
	}
	return settled, nil
}

// settleRest ends the leases that need more than one statement. When that fails,
// they count as locked, since others may be settled already.
func (s *Store) settleRest(ctx context.Context, settlements []box.Settlement, settled []box.Settled, rest []int) error {
	if len(rest) == 0 {
		return nil
	}
	var (
		more    []box.Settled
		vacated map[string]bool
	)
	left := pick(settlements, rest)
	err := s.write(ctx, "settle", func(q *session) (err error) {
		more, vacated, err = q.settle(ctx, left)
		return err
	})
	for i, at := range rest {
		settled[at] = box.Settled{Locked: true}
		if err == nil {
			settled[at] = more[i]
		}
	}
	if err == nil {
		s.fillAll(ctx, vacated)
	}
	return err
}

// fillAll fills lanes that were vacated. Only time is lost if that fails: the
// next claim does the same.
func (s *Store) fillAll(ctx context.Context, vacated map[string]bool) {
	for consumer := range vacated {
		_ = s.fillLanes(ctx, consumer)
	}
}

// acks are settlements that are nothing but success, as the statements
// "ack_numbers", "ack_grouped" and "ack" take them.
type acks struct {
	// plain and grouped are those that end like the first of them; rows are others.
	plain, grouped alikes
	rows           [][]any
	// settled holds what the statements gave back, at the place that at has by Seq.
	settled []box.Settled
	at      map[int64]int
}

// alikes are numbers of messages that end alike, with their places among the
// settlements.
type alikes struct {
	like    *alike
	numbers [][]any
	at      []int
}

// acks finds them among settlements. In a pipeline those in groups are among them.
func (s *Store) acks(settlements []box.Settlement, pipeline bool) *acks {
	a := &acks{settled: make([]box.Settled, len(settlements)), at: make(map[int64]int, len(settlements))}
	q := &session{store: s}
	single, together := q.has("ack") && !s.dialect.SingleWriter, q.has("ack_numbers")
	lanes := pipeline && q.has("ack_grouped")
	var owner, handler boxed
	values := make([]any, 0, len(settlements)) // grows where they do not end alike
	row := func(v ...any) []any {
		values = append(values, v...)
		return values[len(values)-len(v) : len(values) : len(values)]
	}
	for i := range settlements {
		l := &settlements[i].Lease
		_, twice := a.at[l.Seq] // then the first one counts, whatever it is
		if !twice {
			a.at[l.Seq] = i
		}
		grouped := settlements[i].Grouped
		if !single || settlements[i].Verb != box.Ack || settlements[i].Forget || twice || (grouped && !lanes) {
			continue
		}
		same := &a.plain
		if grouped {
			same = &a.grouped
		}
		like := likeOf(&settlements[i])
		if same.like == nil && together {
			first := like // only this one outlives the loop
			same.like = &first
		}
		if same.like != nil && like == *same.like {
			same.numbers, same.at = append(same.numbers, row(l.Seq)), append(same.at, i)
		} else if !grouped {
			a.rows = append(a.rows, row(
				l.Seq, owner.of(l.Owner), l.Fence, int64(l.Revision), handler.of(like.handler), like.discarded, like.note,
			))
		}
	}
	return a
}

// boxed keeps a text that repeats as an interface value, which is made anew only
// when it changes.
type boxed struct {
	text  string
	value any
}

func (b *boxed) of(text string) any {
	if b.value == nil || b.text != text {
		b.text, b.value = text, text
	}
	return b.value
}

// An ackStep is one statement of acks.
type ackStep struct {
	name string
	rows [][]any
	more []any
	scan func(Rows) error
}

// steps are the statements that acks take.
func (a *acks) steps() (steps []ackStep) {
	steps = a.plain.step(steps, "ack_numbers", a)
	if len(a.rows) > 0 {
		steps = append(steps, ackStep{"ack", a.rows, nil, a.scan})
	}
	return a.grouped.step(steps, "ack_grouped", a) // last: no work row is waited for with a lane in hand
}

func (s *alikes) step(steps []ackStep, name string, a *acks) []ackStep {
	l := s.like
	if l == nil {
		return steps
	}
	more := []any{l.owner, l.fence, int64(l.revision), l.handler, l.discarded, l.note}
	return append(steps, ackStep{name, s.numbers, more, func(r Rows) error { return a.scanNumbers(r, s) }})
}

func (a *acks) scanNumbers(r Rows, same *alikes) error {
	var (
		n    int
		some string
	)
	if err := r.Scan((*countCell)(&n), (*textCell)(&some)); err != nil {
		return err
	}
	if n == len(same.numbers) { // it is one statement: nothing bounds the bytes of a batch there
		for _, i := range same.at {
			a.apply(i, false)
		}
		return nil
	}
	seqs, err := parseNumbers(some)
	for _, seq := range seqs {
		a.apply(a.at[seq], false)
	}
	return err
}

func (a *acks) scan(r Rows) error {
	var (
		seq int64
		old bool
	)
	if err := r.Scan((*intCell)(&seq), (*boolCell)(&old)); err != nil {
		return err
	}
	a.apply(a.at[seq], old)
	return nil
}

func (a *acks) apply(i int, old bool) {
	a.settled[i] = box.Settled{Applied: true, State: postroom.StateDone, Superseded: old}
}

// ack ends with single statements what is nothing but success, where the dialect
// has them, and gives the rest.
func (s *Store) ack(ctx context.Context, settlements []box.Settlement) (settled []box.Settled, rest []int, err error) {
	a := s.acks(settlements, false)
	for i, step := range a.steps() {
		before := slices.Clone(a.settled)
		failed := s.one(ctx, "settle", func(q *session) error {
			copy(a.settled, before) // it may be repeated
			return q.each(ctx, step.name, step.rows, step.scan, step.more...)
		})
		if failed == nil {
			continue
		}
		// Somebody holds one of them: the slow way leaves out just that one. It also
		// takes over where something is settled already.
		copy(a.settled, before)
		if s.dialect.Classify(failed) != Busy && i == 0 {
			return nil, nil, failed
		}
	}
	return a.settled, unapplied(a.settled), nil
}

func pick(settlements []box.Settlement, at []int) []box.Settlement {
	picked := make([]box.Settlement, len(at))
	for i, n := range at {
		picked[i] = settlements[n]
	}
	return picked
}

func merge(a, b map[string]bool) map[string]bool {
	if a == nil {
		return b
	}
	for k := range b {
		a[k] = true
	}
	return a
}

// settle ends the leases whose rows it can lock now.
func (q *session) settle(ctx context.Context, settlements []box.Settlement) ([]box.Settled, map[string]bool, error) {
	if q.store.dialect.SingleWriter && q.has("ack") {
		return q.settleTogether(ctx, settlements)
	}
	if q.acksAlike() {
		return q.settleAlike(ctx, settlements)
	}
	return q.settleEach(ctx, settlements)
}

// unapplied gives where nothing is settled yet.
func unapplied(settled []box.Settled) (rest []int) {
	for i := range settled {
		if !settled[i].Applied {
			rest = append(rest, i)
		}
	}
	return rest
}

// settleOthers settles the rest one by one, beside what is settled already.
func (q *session) settleOthers(ctx context.Context, settlements []box.Settlement, settled []box.Settled, rest []int) ([]box.Settled, map[string]bool, error) {
	if len(rest) == 0 {
		return settled, nil, nil
	}
	more, vacated, err := q.settleEach(ctx, pick(settlements, rest))
	if err != nil {
		return nil, nil, err
	}
	for i, n := range rest {
		settled[n] = more[i]
	}
	return settled, vacated, nil
}

// settleEach locks the work rows, and lets the rules decide for each.
func (q *session) settleEach(ctx context.Context, settlements []box.Settlement) ([]box.Settled, map[string]bool, error) {
	settled := make([]box.Settled, len(settlements))
	seqs := make([]int64, 0, len(settlements))
	for i := range settlements {
		seqs = append(seqs, settlements[i].Lease.Seq)
	}
	slices.Sort(seqs)
	seqs = slices.Compact(seqs)
	locked, err := q.lockWork(ctx, seqs)
	if err != nil {
		return nil, nil, err
	}
	busy, err := q.missing(ctx, seqs, locked)
	if err != nil {
		return nil, nil, err
	}
	var writes []write
	for i := range settlements {
		s := &settlements[i]
		l := locked[s.Lease.Seq]
		if l == nil {
			settled[i].Locked = busy[s.Lease.Seq]
			continue
		}
		result, change := s.Decide(l.Work, l.now)
		settled[i] = result
		if result.Applied {
			writes = append(writes, write{Change: change})
			delete(locked, s.Lease.Seq) // a lease named twice ends once
		}
	}
	vacated, err := q.apply(ctx, writes)
	return settled, vacated, err
}

// missing tells of rows that were not locked, which are there all the same.
func (q *session) missing(ctx context.Context, seqs []int64, locked map[int64]*lockedWork) (map[int64]bool, error) {
	var rest []int64
	for _, seq := range seqs {
		if locked[seq] == nil {
			rest = append(rest, seq)
		}
	}
	if q.snapshot && len(rest) > 0 {
		q = &session{store: q.store, conn: q.store.db}
	}
	return q.seqs(ctx, "exists_work", rest)
}

// settleWaiting ends leases inside a transaction, waiting for rows that others
// have locked, up to the bound; what is still locked then counts as lost.
func (q *session) settleWaiting(ctx context.Context, settlements []box.Settlement) ([]box.Settled, map[string]bool, error) {
	all := make([]box.Settled, len(settlements))
	open := make([]int, len(settlements))
	for i := range open {
		open[i] = i
	}
	var vacated map[string]bool
	deadline := time.Now().Add(q.store.wait)
	for try := 1; ; try++ {
		settled, more, err := q.settle(ctx, pick(settlements, open))
		if err != nil {
			return nil, nil, err
		}
		vacated = merge(vacated, more)
		var still []int
		for i, at := range open {
			all[at] = settled[i]
			if settled[i].Locked {
				still = append(still, at)
			}
		}
		if len(still) == 0 || !time.Now().Before(deadline) {
			return all, vacated, nil
		}
		if err := pause(ctx, try); err != nil {
			return nil, nil, err
		}
		open = still
	}
}

// Extend lets leases end later. See box.Store.
func (s *Store) Extend(ctx context.Context, leases []postroom.Lease, d time.Duration) ([]box.Extension, error) {
	if len(leases) == 0 {
		return nil, nil
	}
	extensions := make([]box.Extension, len(leases))
	err := s.write(ctx, "extend", func(q *session) error {
		clear(extensions)
		seqs := make([]int64, len(leases))
		for i, l := range leases {
			seqs[i] = l.Seq
		}
		slices.Sort(seqs)
		seqs = slices.Compact(seqs)
		locked, err := q.lockWork(ctx, seqs)
		if err != nil {
			return err
		}
		busy, err := q.missing(ctx, seqs, locked)
		if err != nil {
			return err
		}
		var rows [][]any
		for i, lease := range leases {
			l := locked[lease.Seq]
			if l == nil {
				extensions[i].Locked = busy[lease.Seq]
				continue
			}
			if l.Current(lease) {
				extensions[i] = box.Extension{Extended: true, Until: l.now.Add(d)}
				rows = append(rows, []any{lease.Seq, timeValue(l.now.Add(d))})
			}
		}
		return q.each(ctx, "extend", rows, nil)
	})
	if err != nil {
		return nil, err
	}
	return extensions, nil
}
