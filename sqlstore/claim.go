package sqlstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// leasesAtOnce bounds the numbers that a statement names one by one.
const leasesAtOnce = 1000

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
	var found []claimed
	claim := func(q *session) (err error) {
		found, err = q.claim(ctx, name, limit, req)
		return err
	}
	if err := s.writeAlone(ctx, "claim", claim); err != nil {
		return nil, err
	}
	return s.delivered(ctx, found, req), nil
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
	if err != nil || len(seqs) == 0 {
		return err
	}
	if q.has(name + "_following") {
		return q.each(ctx, name+"_following", seqRows(seqs), nil, numbers[0])
	}
	rows := make([][]any, len(seqs))
	for i, seq := range seqs {
		rows[i] = []any{seq, numbers[i]}
	}
	return q.each(ctx, name, rows, nil)
}

// A claimed message has its lease.
type claimed struct {
	*postroom.Message
	turn int64
	// expired: its time is over. stale: its content was replaced during the claim.
	expired, stale bool
}

// claims are what a claim gives. All rows are read through the same cells.
type claims struct {
	all     []claimed
	message postroom.Message
	work    box.Work
	now     time.Time
	cells   []any
}

func newClaims(req box.ClaimRequest) *claims {
	c := &claims{work: box.Work{Owner: req.Owner}}
	c.cells = append(append(messageCells(&c.message), claimCells(&c.work)...), (*timeCell)(&c.now))
	return c
}

func (c *claims) scan(r Rows) error {
	c.message = postroom.Message{}
	if err := r.Scan(c.cells...); err != nil {
		return err
	}
	m := new(postroom.Message)
	*m = c.message
	c.all = append(c.all, claimed{
		Message: deliver(m, &c.work),
		turn:    c.work.ReadyPosition,
		expired: !c.work.Expires.IsZero() && !c.work.Expires.After(c.now),
		stale:   m.Revision != c.work.Revision,
	})
	return nil
}

func (q *session) claimArgs(limit int, req box.ClaimRequest, from int64) []any {
	return q.values([]any{req.Consumer, int64(limit), req.Owner, micros(req.Lease), from})
}

func (q *session) claim(ctx context.Context, name string, limit int, req box.ClaimRequest) ([]claimed, error) {
	from, note := q.store.floors.of(req)
	if q.store.dialect.SingleWriter {
		all, err := q.claimAlone(ctx, name, limit, req, from)
		note(all)
		return all, err
	}
	c := newClaims(req)
	defer func() { note(c.all) }()
	args := q.claimArgs(limit, req, from)
	if !q.has("claimed") {
		err := q.query(ctx, name, c.scan, args...)
		return c.all, err
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
		for rows := range slices.Chunk(seqRows(seqs), leasesAtOnce) {
			if err := q.each(ctx, "lease", rows, nil, args[2], args[3]); err != nil {
				return nil, err
			}
		}
	}
	err = q.each(ctx, "claimed", seqRows(seqs), c.scan)
	return c.all, err
}

// delivered completes claimed messages, in the order of their turns. Those that have expired end here, and
// those whose content was replaced while they were being claimed are read again.
// Where that fails, their leases lapse and they come again: the others are
// leased, and must reach the caller.
func (s *Store) delivered(ctx context.Context, all []claimed, req box.ClaimRequest) []*postroom.Message {
	var (
		expired  []*postroom.Message
		stale    map[int64]*postroom.Message
		messages = make([]*postroom.Message, 0, len(all))
	)
	slices.SortFunc(all, func(a, b claimed) int { return cmp.Compare(a.turn, b.turn) })
	for _, c := range all {
		if c.expired {
			expired = append(expired, c.Message)
			continue
		}
		if c.stale {
			if stale == nil {
				stale = map[int64]*postroom.Message{}
			}
			stale[c.Lease.Seq] = c.Message
		}
		messages = append(messages, c.Message)
	}
	s.expire(ctx, expired, req)
	if err := s.reread(ctx, stale); err != nil {
		messages = slices.DeleteFunc(messages, func(m *postroom.Message) bool { return stale[m.Lease.Seq] != nil })
	}
	return messages
}

// expire makes messages Dead whose time is over.
func (s *Store) expire(ctx context.Context, expired []*postroom.Message, req box.ClaimRequest) {
	settlements := make([]box.Settlement, len(expired))
	for i, m := range expired {
		settlements[i] = box.Settlement{Lease: m.Lease, Verb: box.Expire, Hold: req.Hold}
	}
	settled, err := s.Settle(ctx, nil, settlements)
	if err != nil || req.Expired == nil {
		return
	}
	for i, m := range expired {
		if settled[i].Applied {
			req.Expired(m)
		}
	}
}

// reread brings in the content that a replacement committed during the claim.
func (s *Store) reread(ctx context.Context, stale map[int64]*postroom.Message) error {
	if len(stale) == 0 {
		return nil
	}
	return s.read("claim", func(q *session) error {
		return q.each(ctx, "messages", seqRows(slices.Sorted(maps.Keys(stale))), func(r Rows) error {
			var (
				fresh postroom.Message
				seq   int64
			)
			if err := r.Scan(append(messageCells(&fresh), (*intCell)(&seq))...); err != nil {
				return err
			}
			m := stale[seq]
			fresh.Attempt, fresh.LastSeen, fresh.LastError, fresh.Lease = m.Attempt, m.LastSeen, m.LastError, m.Lease
			fresh.Lease.Revision = fresh.Revision
			*m = fresh
			return nil
		})
	})
}
