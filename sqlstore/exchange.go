package sqlstore

import (
	"context"
	"fmt"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Exchanges reports whether settling and claiming can share a commit here: with
// one writer always, else where the driver has pipelines, or where leases can be
// acknowledged together without waiting for anybody.
func (s *Store) Exchanges() bool {
	q := &session{store: s}
	p, ok := s.db.(Pipeliner)
	return s.dialect.SingleWriter || q.acksAlike() || (ok && p.Pipelines() && q.has("ack"))
}

// Exchange settles and claims what is ready. See box.Exchanger.
func (s *Store) Exchange(ctx context.Context, settlements []box.Settlement, req box.ClaimRequest) ([]box.Settled, []*postroom.Message, error) {
	if s.closed.Load() {
		return nil, nil, postroom.ErrClosed
	}
	if s.dialect.SingleWriter {
		return s.exchangeInOne(ctx, settlements, req)
	}
	if (&session{store: s}).has("ack_alike") {
		return s.exchangeInSteps(ctx, settlements, req)
	}
	return s.exchangeInPipeline(ctx, settlements, req)
}

// exchangeInOne does both in one transaction.
func (s *Store) exchangeInOne(ctx context.Context, settlements []box.Settlement, req box.ClaimRequest) ([]box.Settled, []*postroom.Message, error) {
	var (
		settled []box.Settled
		vacated map[string]bool
		found   []claimed
	)
	err := s.write(ctx, "exchange", func(q *session) (err error) {
		if settled, vacated, err = q.settle(ctx, settlements); err != nil {
			return err
		}
		for consumer := range vacated {
			if _, err := q.fill(ctx, consumer); err != nil {
				return err
			}
		}
		found, err = q.claim(ctx, "claim", req.Limit, req)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return settled, s.delivered(ctx, found, req), nil
}

// exchangeInSteps acknowledges and claims in one transaction. What is not plainly
// acknowledged may have to wait, and is settled after it.
func (s *Store) exchangeInSteps(ctx context.Context, settlements []box.Settlement, req box.ClaimRequest) ([]box.Settled, []*postroom.Message, error) {
	var (
		settled []box.Settled
		rest    []int
		found   []claimed
	)
	err := s.write(ctx, "exchange", func(q *session) (err error) {
		if settled, rest, err = q.acknowledge(ctx, settlements); err != nil {
			return err
		}
		found, err = q.claim(ctx, "claim", req.Limit, req)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	_ = s.settleRest(ctx, settlements, settled, rest) // what failed is marked
	return settled, s.delivered(ctx, found, req), nil
}

// exchangeInPipeline acknowledges, fills the lanes that this vacates, and claims
// with one round trip. What is not plainly acknowledged is settled after it.
func (s *Store) exchangeInPipeline(ctx context.Context, settlements []box.Settlement, req box.ClaimRequest) ([]box.Settled, []*postroom.Message, error) {
	var (
		a    = s.acks(settlements, true)
		q    = &session{store: s}
		c    = newClaims(req)
		left int // lanes that were vacated and could not be filled
	)
	from, note := s.floors.of(req)
	defer func() { note(c.all) }()
	claim := Step{Query: q.text("claim"), Args: q.claimArgs(req.Limit, req, from), Scan: c.scan}
	var steps []Step
	for _, step := range a.steps() {
		steps = append(steps, Step{Query: q.text(step.name), Args: append(s.dialect.Batch(step.rows), q.values(step.more)...), Scan: step.scan})
	}
	if len(a.grouped.numbers) > 0 {
		fill := func(r Rows) error { return r.Scan((*countCell)(&left)) }
		steps = append(steps, Step{Query: q.text("fill_vacated"), Args: q.values([]any{req.Consumer}), Scan: fill})
	}
	steps = append(steps, claim)
	err := s.one(ctx, "exchange", func(*session) error {
		clear(a.settled)
		c.all = nil
		if err := s.db.(Pipeliner).Pipeline(ctx, steps); err != nil {
			return fmt.Errorf("exchange: %w", err)
		}
		return nil
	})
	if err != nil && s.dialect.Classify(err) == Busy {
		// Somebody holds one of them: the slow way leaves out just that one.
		return s.exchangeApart(ctx, settlements, req)
	}
	if err != nil {
		return nil, nil, err
	}
	_ = s.settleRest(ctx, settlements, a.settled, unapplied(a.settled)) // what failed is marked
	if left > 0 {
		_ = s.fillLanes(ctx, req.Consumer) // only time is lost if that fails
	}
	return a.settled, s.delivered(ctx, c.all, req), nil
}

// exchangeApart settles and then claims.
func (s *Store) exchangeApart(ctx context.Context, settlements []box.Settlement, req box.ClaimRequest) ([]box.Settled, []*postroom.Message, error) {
	settled := make([]box.Settled, len(settlements))
	all := make([]int, len(settlements))
	for i := range all {
		all[i] = i
	}
	if err := s.settleRest(ctx, settlements, settled, all); err != nil {
		return nil, nil, err
	}
	// They are settled: a claim that fails now only gives nothing.
	claimed, _ := s.Claim(ctx, req)
	return settled, claimed, nil
}
