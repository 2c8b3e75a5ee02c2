package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Claim leases ready messages. See box.Store.
func (s *Store) Claim(ctx context.Context, req box.ClaimRequest) ([]*postroom.Message, error) {
	if !req.ReadyOnly {
		if err := s.prepare(ctx, req.Consumer, req.Limit); err != nil {
			return nil, err
		}
	}
	name, limit := "claim", req.Limit
	if req.Suspect {
		name, limit = "claim_suspect", 1
	}
	var claimed []*claimedMessage
	claim := func(q *session) (err error) {
		claimed, err = q.claim(ctx, name, limit, req)
		return err
	}
	if err := s.writeAlone(ctx, "claim", claim); err != nil {
		return nil, err
	}
	return s.delivered(ctx, claimed, req), nil
}

// prepare makes ready what can be: messages that fell due, topics that go on,
// and the heads of groups.
func (s *Store) prepare(ctx context.Context, consumer string, limit int) error {
	var due, parked, arrived, vacant bool
	err := s.read("claim", func(q *session) error {
		return q.query(ctx, "peek", func(r Rows) error {
			return r.Scan((*boolCell)(&due), (*boolCell)(&parked), (*boolCell)(&arrived), (*boolCell)(&vacant))
		}, consumer)
	})
	if err != nil {
		return err
	}
	// A few claims' worth, so that a great many falling due at once are taken
	// in steps.
	some := int64(max(4*limit, 200))
	if due || parked {
		err := s.write(ctx, "promote", func(q *session) error {
			if err := q.promote(ctx, "fallen", consumer, some); err != nil {
				return err
			}
			return q.promote(ctx, "parked", consumer, some)
		})
		if err != nil {
			return err
		}
	}
	if due || arrived {
		if err := s.sortLanes(ctx, consumer); err != nil {
			return err
		}
	}
	if due || arrived || vacant {
		return s.fillLanes(ctx, consumer)
	}
	return nil
}

// promote makes messages ready whose time has come, or lets them arrive in their
// group, in the order in which the named statement gives them.
func (q *session) promote(ctx context.Context, name, consumer string, limit int64) error {
	var ready, arrive []int64
	err := q.query(ctx, name, func(r Rows) error {
		var (
			seq   int64
			stage postroom.Stage
		)
		if err := r.Scan((*intCell)(&seq), (*stageCell)(&stage)); err != nil {
			return err
		}
		if stage == postroom.StageDeferred {
			arrive = append(arrive, seq)
		} else {
			ready = append(ready, seq)
		}
		return nil
	}, consumer, limit)
	if err != nil {
		return err
	}
	if err := q.numbered(ctx, "arrive", arrive); err != nil {
		return err
	}
	return q.numbered(ctx, "ready", ready)
}

// numbered runs a statement over numbers of messages, each with the next number
// of the sequence.
func (q *session) numbered(ctx context.Context, name string, seqs []int64) error {
	numbers, err := q.positions(ctx, len(seqs))
	if err != nil {
		return err
	}
	rows := make([][]any, len(seqs))
	for i, seq := range seqs {
		rows[i] = []any{seq, numbers[i]}
	}
	return q.each(ctx, name, rows, nil)
}

// claimedMessage is a message with the work row that it was claimed with.
type claimedMessage struct {
	postroom.Message
	work box.Work
	now  time.Time
}

func scanClaimed(r Rows, owner string, claimed *[]*claimedMessage) error {
	c := new(claimedMessage)
	*claimed = append(*claimed, c)
	c.work.Owner = owner
	return r.Scan(append(append(messageCells(&c.Message), claimCells(&c.work)...), (*timeCell)(&c.now))...)
}

func (q *session) claimArgs(limit int, req box.ClaimRequest, from int64) []any {
	return q.values([]any{req.Consumer, int64(limit), req.Owner, micros(req.Lease), from})
}

func (q *session) claim(ctx context.Context, name string, limit int, req box.ClaimRequest) ([]*claimedMessage, error) {
	var claimed []*claimedMessage
	from, note := q.store.floors.of(req)
	defer func() { note(claimed) }()
	scan := func(r Rows) error { return scanClaimed(r, req.Owner, &claimed) }
	args := q.claimArgs(limit, req, from)
	if !q.has("claimed") {
		return claimed, q.query(ctx, name, scan, args...)
	}
	// The database can't give rows of another table with an update.
	var seqs []int64
	err := q.query(ctx, name, func(r Rows) error {
		var seq int64
		defer func() { seqs = append(seqs, seq) }()
		return r.Scan((*intCell)(&seq))
	}, args...)
	if err != nil {
		return nil, err
	}
	if q.has("lease") {
		// Nor can it lock and update in one statement.
		if err := q.each(ctx, "lease", seqRows(seqs), nil, args[2], args[3]); err != nil {
			return nil, err
		}
	}
	err = q.each(ctx, "claimed", seqRows(seqs), scan)
	slices.SortFunc(claimed, func(a, b *claimedMessage) int { return cmp.Compare(a.work.ReadyPosition, b.work.ReadyPosition) })
	return claimed, err
}

// delivered completes claimed messages. Those that have expired end here, and
// those whose content was replaced while they were being claimed are read again.
// Where that fails, their leases lapse and they come again: the others are
// leased, and must reach the caller.
func (s *Store) delivered(ctx context.Context, claimed []*claimedMessage, req box.ClaimRequest) []*postroom.Message {
	var (
		expired  []*claimedMessage
		stale    = map[int64]bool{}
		messages []*postroom.Message
	)
	for _, c := range claimed {
		if !c.work.Expires.IsZero() && !c.work.Expires.After(c.now) {
			expired = append(expired, c)
			continue
		}
		stale[c.work.Seq] = c.Revision != c.work.Revision
		messages = append(messages, deliver(&c.Message, &c.work))
	}
	s.expire(ctx, expired, req)
	if err := s.reread(ctx, stale, messages); err != nil {
		messages = slices.DeleteFunc(messages, func(m *postroom.Message) bool { return stale[m.Lease.Seq] })
	}
	return messages
}

// expire makes messages Dead whose time is over.
func (s *Store) expire(ctx context.Context, expired []*claimedMessage, req box.ClaimRequest) {
	settlements := make([]box.Settlement, len(expired))
	for i, c := range expired {
		settlements[i] = box.Settlement{Lease: c.work.Lease(), Verb: box.Expire, Hold: req.Hold}
	}
	settled, err := s.Settle(ctx, nil, settlements)
	if err != nil || req.Expired == nil {
		return
	}
	for i, c := range expired {
		if settled[i].Applied {
			req.Expired(&c.Message)
		}
	}
}

// reread brings in the content that a replacement committed during the claim.
func (s *Store) reread(ctx context.Context, stale map[int64]bool, messages []*postroom.Message) error {
	bySeq := map[int64]*postroom.Message{}
	var seqs []int64
	for _, m := range messages {
		if stale[m.Lease.Seq] {
			bySeq[m.Lease.Seq] = m
			seqs = append(seqs, m.Lease.Seq)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	return s.read("claim", func(q *session) error {
		return q.each(ctx, "messages", seqRows(seqs), func(r Rows) error {
			var (
				fresh postroom.Message
				seq   int64
			)
			if err := r.Scan(append(messageCells(&fresh), (*intCell)(&seq))...); err != nil {
				return err
			}
			m := bySeq[seq]
			fresh.Attempt, fresh.LastSeen, fresh.LastError, fresh.Lease = m.Attempt, m.LastSeen, m.LastError, m.Lease
			fresh.Lease.Revision = fresh.Revision
			*m = fresh
			return nil
		})
	})
}
