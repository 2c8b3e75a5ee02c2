package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Put takes messages in. See box.Store.
func (s *Store) Put(ctx context.Context, tx postroom.Tx, puts []box.Put) ([]box.PutResult, error) {
	if len(puts) == 0 {
		return nil, nil
	}
	results := make([]box.PutResult, len(puts))
	q, err := s.session(tx)
	if err != nil {
		return nil, err
	}
	if q != nil {
		err := s.inCaller("put", q, func() error { return s.putCaller(ctx, q, puts, results) })
		return results, err
	}
	return results, s.putOwn(ctx, puts, results)
}

// An intake is one Put on its way to a result.
type intake struct {
	put    *box.Put
	result *box.PutResult
	// order is the place in the batch.
	order int
}

// rounds splits puts so that no key comes twice in one round, in order: done one
// after the other, they give what single calls would; a group never goes back to
// an earlier round, so that it keeps the order of the batch. A repetition with
// the same content as the one before needs no round: its result follows from
// that one's.
func rounds(puts []box.Put, results []box.PutResult) (list [][]intake, follow func()) {
	if distinct(puts) {
		all := make([]intake, len(puts))
		for i := range puts {
			all[i] = intake{&puts[i], &results[i], i}
		}
		return [][]intake{all}, func() {}
	}
	type last struct{ round, put int }
	seen := make(map[postroom.Key]last, len(puts))
	groups := map[string]int{}
	followers := map[int]int{}
	list = [][]intake{make([]intake, 0, len(puts))}
	for i := range puts {
		key := puts[i].Message.Key()
		before, again := seen[key]
		if again && sameAgain(&puts[before.put], &puts[i]) {
			followers[i] = before.put
			seen[key] = last{before.round, i}
			continue
		}
		round := 0
		if again {
			round = before.round + 1
		}
		if group := puts[i].Message.Group; group != "" {
			round = max(round, groups[group])
			groups[group] = round
		}
		if round == len(list) {
			list = append(list, nil)
		}
		list[round] = append(list[round], intake{&puts[i], &results[i], i})
		seen[key] = last{round, i}
	}
	return list, func() {
		for i := range puts {
			if before, ok := followers[i]; ok {
				results[i] = repeated(results[before], puts[i].Keep)
			}
		}
	}
}

// distinct reports whether no ID comes twice. Where one does, its source may differ.
func distinct(puts []box.Put) bool {
	ids := make(map[string]struct{}, len(puts))
	for i := range puts {
		ids[puts[i].Message.ID] = struct{}{}
	}
	return len(ids) == len(puts)
}

// sameAgain reports whether b, right after a, finds what a left behind unchanged.
// Only queueing can be answered without asking the store again.
func sameAgain(a, b *box.Put) bool {
	return a.Mode == box.Queue && b.Mode == box.Queue && a.Keep == b.Keep && a.Dead == b.Dead && a.Message.Group == b.Message.Group &&
		bytes.Equal(a.Digest(), b.Digest()) && bytes.Equal(a.Message.Hash, b.Message.Hash) && a.Message.HashAlg == b.Message.HashAlg
}

// repeated is the result of doing again what led to r.
func repeated(r box.PutResult, keep bool) box.PutResult {
	switch {
	case r.Outcome == postroom.Accepted || r.Outcome == postroom.Replaced:
		r.Outcome, r.Mismatch = postroom.Duplicate, false
	case r.Outcome == postroom.Dead && !keep:
		r.Mismatch = false
	}
	r.Died, r.Lost = "", false
	return r
}

// putCaller works inside the caller's transaction. Keys that sit in another
// open transaction are waited for, up to the bound.
func (s *Store) putCaller(ctx context.Context, q *session, puts []box.Put, results []box.PutResult) error {
	list, follow := rounds(puts, results)
	for _, round := range list {
		if err := q.holdKeys(ctx, round); err != nil {
			return err
		}
		deadline := time.Now().Add(s.wait)
		for try := 1; ; try++ {
			left, err := q.putRound(ctx, round)
			if err != nil {
				return err
			}
			if len(left) == 0 {
				break
			}
			if !time.Now().Before(deadline) {
				return fmt.Errorf("message %s: %w", left[0].put.Message.Key(), postroom.ErrInProgress)
			}
			if err := pause(ctx, try); err != nil {
				return err
			}
			round = left
		}
	}
	follow()
	return nil
}

// putOwn commits rounds in transactions of the store's own. Messages whose rows
// or keys are held elsewhere go apart, each by itself, so that they don't hold
// up their neighbours.
//
// Once some are in, an error is told in the results of the others.
func (s *Store) putOwn(ctx context.Context, puts []box.Put, results []box.PutResult) error {
	list, follow := rounds(puts, results)
	held := map[any]bool{}
	for n, round := range list {
		if n > 0 {
			round = behindHeld(held, list[n-1], round)
		}
		left, err := s.putOwnRound(ctx, round)
		if err == nil {
			continue
		}
		if n == 0 && len(left) == len(round) {
			return err
		}
		for _, rest := range append([][]intake{left}, list[n+1:]...) {
			for _, in := range rest {
				*in.result = box.PutResult{Err: err}
			}
		}
		break
	}
	follow()
	return nil
}

// behindHeld lets nothing overtake a held message of an earlier round, by its key
// or its group: it is held too. It gives the others. held is kept by the caller
// from round to round.
func behindHeld(held map[any]bool, before, round []intake) (ahead []intake) {
	for _, in := range before {
		if errors.Is(in.result.Err, box.ErrHeld) {
			held[in.put.Message.Key()] = true
			held[in.put.Message.Group] = in.put.Message.Group != ""
		}
	}
	for _, in := range round {
		if held[in.put.Message.Key()] || held[in.put.Message.Group] {
			*in.result = box.PutResult{Err: box.ErrHeld}
		} else {
			ahead = append(ahead, in)
		}
	}
	return ahead
}

// putOwnRound takes in messages with distinct keys. With an error it gives those
// that have no result.
func (s *Store) putOwnRound(ctx context.Context, round []intake) (left []intake, err error) {
	if left, err = s.putNew(ctx, round); err != nil {
		return left, err
	}
	if len(left) > 1 || (len(left) == 1 && left[0].put.Divert) {
		open := left
		if left, err = s.putShared(ctx, open); err != nil {
			return open, err
		}
	}
	for i, in := range left {
		if in.put.Divert {
			*in.result = box.PutResult{Err: box.ErrHeld}
			continue
		}
		if err := s.putAlone(ctx, in); err != nil {
			return left[i:], err
		}
	}
	return nil, nil
}

func byKeys(round []intake) map[postroom.Key]intake {
	m := make(map[postroom.Key]intake, len(round))
	for _, in := range round {
		m[in.put.Message.Key()] = in
	}
	return m
}

// putShared takes a round in with one commit, and gives those that were held.
func (s *Store) putShared(ctx context.Context, round []intake) ([]intake, error) {
	var left []intake
	err := s.write(ctx, "put", func(q *session) error {
		free, held, err := q.withoutHeld(ctx, round)
		if err != nil {
			return err
		}
		left = held
		blocked, err := q.putRound(ctx, free)
		left = append(left, blocked...)
		if err != nil {
			return err
		}
		return q.touch(ctx, free)
	})
	if err != nil && s.dialect.Classify(err) == Busy && (len(round) > 1 || round[0].put.Divert) && !s.dialect.SingleWriter {
		if _, ok := s.statements["probe_keys"]; ok && len(round) > 1 {
			return s.putHalves(ctx, round)
		}
		// Someone took one of the keys between the look and the insert.
		return round, nil
	}
	return left, err
}

// putAlone takes one message in, waiting for whoever holds it.
func (s *Store) putAlone(ctx context.Context, in intake) error {
	deadline := time.Now().Add(s.wait)
	for try := 1; ; try++ {
		left, err := s.putShared(ctx, []intake{in})
		if err != nil && s.dialect.Classify(err) != Busy {
			return err
		}
		if err == nil && len(left) == 0 {
			return nil
		}
		if !time.Now().Before(deadline) {
			*in.result = box.PutResult{Err: postroom.ErrInProgress}
			return nil
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// putRound takes in messages with distinct keys, and gives those whose work row
// another transaction has locked, or that changed under its hands: try them
// again.
func (q *session) putRound(ctx context.Context, round []intake) ([]intake, error) {
	byKey := map[postroom.Key]intake{}
	for _, in := range round {
		byKey[in.put.Message.Key()] = in
	}
	absent, err := q.absent(ctx, round, byKey)
	if err != nil {
		return nil, err
	}
	writes, err := q.insert(ctx, absent, byKey)
	if err != nil {
		return nil, err
	}
	known, left, err := q.putKnown(ctx, round, byKey)
	if err != nil {
		return nil, err
	}
	writes, err = q.queueWide(ctx, writes, known)
	if err != nil {
		return nil, err
	}
	_, err = q.apply(ctx, inOrder(append(writes, known...)))
	return left, err
}

// insert stores the messages that are new, takes them out of byKey, and gives
// what belongs to them besides.
func (q *session) insert(ctx context.Context, round []intake, byKey map[postroom.Key]intake) ([]write, error) {
	if len(round) > 0 && q.store.dialect.Widths != nil {
		return q.insertWide(ctx, round, byKey)
	}
	rows, err := q.messageRows(ctx, round)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	var writes []write
	err = q.insertRows(ctx, rows, func(r Rows) error {
		var (
			seq int64
			key postroom.Key
			now time.Time
		)
		if err := r.Scan((*intCell)(&seq), (*textCell)(&key.Consumer), (*textCell)(&key.Source), (*textCell)(&key.ID), (*timeCell)(&now)); err != nil {
			return err
		}
		in, ok := byKey[key]
		if !ok {
			return fmt.Errorf("inserted key %s was not asked for", key)
		}
		delete(byKey, key)
		result, change := in.put.Arrive(seq, now)
		*in.result = result
		writes = append(writes, write{change, in.put, in.order})
		if q.fresh == nil {
			q.fresh = map[int64]bool{}
		}
		q.fresh[seq] = true
		return nil
	})
	return writes, err
}

// messageRows are the rows to insert, in the order of their keys. The first
// value is the message's number, or its rank of arrival where the statement
// itself takes the number.
func (q *session) messageRows(ctx context.Context, round []intake) ([][]any, error) {
	var numbers []int64
	if !q.store.dialect.NumbersInserts {
		var err error
		if numbers, err = q.positions(ctx, len(round)); err != nil {
			return nil, err
		}
	}
	rows := make([][]any, len(round))
	for i, in := range round {
		number := int64(i)
		if numbers != nil {
			number = numbers[i]
		}
		rows[i] = append([]any{number}, messageValues(storedMessage(in.put), in.put.Digest())...)
	}
	if numbers != nil {
		sortByKey(rows)
	}
	return rows, nil
}

// storedMessage leaves out what a mode does not keep: a check leaves its key and
// its hash, and no content.
func storedMessage(p *box.Put) *postroom.Message {
	m := &p.Message
	if p.Mode != box.Check {
		return m
	}
	return &postroom.Message{Consumer: m.Consumer, Source: m.Source, ID: m.ID, Hash: m.Hash, HashAlg: m.HashAlg}
}

// putKnown decides for the messages that are already there. What changes nothing
// is answered from a plain read; the rest is locked, read again, and is to be
// written.
func (q *session) putKnown(ctx context.Context, round []intake, byKey map[postroom.Key]intake) ([]write, []intake, error) {
	if len(byKey) == 0 {
		return nil, nil, nil
	}
	found, err := q.lookupNow(ctx, keysOf(byKey))
	if err != nil {
		return nil, nil, err
	}
	var lock []int64
	for key, in := range byKey {
		f, ok := found[key]
		if !ok || (f.work == nil && f.done == nil) || (f.work != nil && in.put.Changes(f.known(), f.now)) {
			if ok && f.work != nil {
				lock = append(lock, f.seq)
			}
			continue
		}
		if err := q.answer(ctx, in, f); err != nil {
			return nil, nil, err
		}
		delete(byKey, key)
	}
	if len(byKey) == 0 {
		return nil, nil, nil
	}
	return q.putLocked(ctx, round, byKey, lock)
}

// answer gives the result of a Put that changes no work row.
func (q *session) answer(ctx context.Context, in intake, f *found) error {
	result, change := in.put.Decide(f.known(), f.now)
	*in.result = result
	in.result.Seq = f.seq
	if !change.AdoptHash {
		return nil
	}
	change.Work.Seq = f.seq
	_, err := q.apply(ctx, []write{{Change: change, put: in.put}})
	return err
}

// putLocked locks the work rows, reads again what it found, and gives what the
// rules decide. Those that can't be locked now, or that went away, are left.
func (q *session) putLocked(ctx context.Context, round []intake, byKey map[postroom.Key]intake, lock []int64) (writes []write, left []intake, err error) {
	slices.Sort(lock)
	locked, err := q.lockWork(ctx, lock)
	if err != nil {
		return nil, nil, err
	}
	found, err := q.lookupLocked(ctx, byKey, locked)
	if err != nil {
		return nil, nil, err
	}
	var forgotten []intake
	var forget []write
	for _, in := range round {
		key := in.put.Message.Key()
		if _, open := byKey[key]; !open {
			continue
		}
		f, ok := found[key]
		if !ok || f.work == nil || locked[f.seq] == nil {
			left = append(left, in)
			continue
		}
		var change box.Change
		*in.result, change = in.put.Decide(f.known(), f.now)
		change.Work.Seq = f.seq
		if change.Fate == box.Forget {
			forgotten, forget = append(forgotten, in), append(forget, write{Change: change})
			continue
		}
		writes = append(writes, write{change, in.put, in.order})
	}
	if len(forgotten) == 0 {
		return writes, left, nil
	}
	if _, err := q.apply(ctx, forget); err != nil {
		return nil, nil, err
	}
	again, err := q.arriveAgain(ctx, forgotten)
	return append(writes, again...), left, err
}

// arriveAgain takes in messages whose guarded run was lost and forgotten: they
// are new, and the lost lease is told.
func (q *session) arriveAgain(ctx context.Context, forgotten []intake) ([]write, error) {
	byKey := map[postroom.Key]intake{}
	ended := make([]box.PutResult, len(forgotten))
	for i, in := range forgotten {
		byKey[in.put.Message.Key()], ended[i] = in, *in.result
	}
	writes, err := q.insert(ctx, forgotten, byKey)
	for i, in := range forgotten {
		in.result.Lost = ended[i].Lost
	}
	return writes, err
}

// touch brings last_seen of known messages up to date, where it is older than a
// second. Rows that are locked are left.
func (q *session) touch(ctx context.Context, round []intake) error {
	var work, done []int64
	for _, in := range round {
		switch r := in.result; {
		case r.Seq == 0 || q.fresh[r.Seq]:
		case r.State == postroom.StateDone:
			done = append(done, r.Seq)
		default:
			work = append(work, r.Seq)
		}
	}
	if q.has("stale_work") {
		var err, more error
		work, err = q.sorted(ctx, "stale_work", work)
		done, more = q.sorted(ctx, "stale_done", done)
		if err := errors.Join(err, more); err != nil {
			return err
		}
	}
	return errors.Join(q.each(ctx, "touch_work", seqRows(work), nil), q.each(ctx, "touch_done", seqRows(done), nil))
}

func compareKeys(a, b postroom.Key) int {
	return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Source, b.Source), cmp.Compare(a.ID, b.ID))
}
