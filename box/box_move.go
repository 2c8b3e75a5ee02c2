package box

import (
	"context"
	"fmt"
	"iter"

	"github.com/postroom/postroom"
)

// Move changes one message without a lease. Changed is false when it was
// already where the move leads.
func (b *Box) Move(ctx context.Context, m Move) (changed bool, err error) {
	results, err := b.Moves(ctx, []Move{m})
	if err != nil {
		return false, err
	}
	return results[0].Changed && results[0].Err == nil, results[0].Err
}

// Moves changes messages without a lease, each by itself.
func (b *Box) Moves(ctx context.Context, moves []Move) ([]MoveResult, error) {
	for i := range moves {
		m := &moves[i]
		m.Key.Consumer, m.Rules = b.consumer, b.rules()
		if err := m.Key.Validate(); err != nil {
			return nil, err
		}
		if m.Delay < 0 {
			return nil, &postroom.ArgumentError{Argument: "delay", Reason: fmt.Sprintf("is %s, it must not be negative", m.Delay)}
		}
		m.Actor, m.Reason = postroom.ErrorText(m.Actor), postroom.ErrorText(m.Reason)
	}
	results, err := b.store.Move(ctx, moves)
	if err != nil {
		return nil, fmt.Errorf("move in %s: %w", b.scope.Store, err)
	}
	for i := range moves {
		b.reportMove(ctx, &moves[i], &results[i])
	}
	return results, nil
}

func (b *Box) reportMove(ctx context.Context, m *Move, r *MoveResult) {
	if r.Lost {
		b.lost(ctx, m.Key, "", 0)
	}
	if r.Died != "" {
		b.died(ctx, m.Key, "", r.Died, nil)
	}
	if !r.Changed || r.Err != nil {
		return
	}
	b.log.InfoContext(ctx, "message moved", "source", m.Key.Source, "id", m.Key.ID,
		"action", m.Action.String(), "state", r.State.String(), "actor", m.Actor)
	switch {
	case r.State == postroom.StateDone:
		b.count("", CountDone, 1)
	case m.Action == MarkDead && r.State == postroom.StateDead:
		b.died(ctx, m.Key, "", m.Reason, nil)
	case r.State == postroom.StateProcessing:
		b.Wake()
	}
}

// MoveAll moves what a filter selects, page by page, and gives how many were
// changed. Messages that went elsewhere on the way are passed over.
func (b *Box) MoveAll(ctx context.Context, f Filter, m Move) (int, error) {
	f.Limit = movePage
	moved := 0
	for {
		page, err := b.List(ctx, f)
		if err != nil || len(page) == 0 {
			return moved, err
		}
		moves := make([]Move, len(page))
		for i, r := range page {
			moves[i] = m
			moves[i].Key = r.Key()
		}
		results, err := b.Moves(ctx, moves)
		if err != nil {
			return moved, err
		}
		for i := range results {
			if results[i].Changed && results[i].Err == nil {
				moved++
			}
		}
		f.After = page[len(page)-1].Seq
	}
}

// movePage keeps one transaction of an operator short.
const movePage = 200

// Get gives the whole record of a message, or postroom.ErrNotFound.
func (b *Box) Get(ctx context.Context, source, id string) (*Record, error) {
	key := b.Key(source, id)
	if err := key.Validate(); err != nil {
		return nil, err
	}
	return b.store.Get(ctx, key)
}

// maxList is the most that one page gives.
const maxList = 1000

// List gives one page of the messages of this consumer.
func (b *Box) List(ctx context.Context, f Filter) ([]*Record, error) {
	l, err := ability[Lister](b, "list messages")
	if err != nil {
		return nil, err
	}
	if f.Limit < 0 || f.Limit > maxList {
		return nil, &postroom.ArgumentError{Argument: "limit", Reason: fmt.Sprintf("is %d, allowed are 1 to %d, or 0 for 100", f.Limit, maxList)}
	}
	if f.State != postroom.StateDone && !(f.DoneFrom.IsZero() && f.DoneUntil.IsZero()) {
		return nil, &postroom.ArgumentError{Argument: "DoneFrom and DoneUntil", Reason: "select by an end that only done messages have"}
	}
	if f.State != postroom.StateProcessing && f.Overdue != 0 {
		return nil, &postroom.ArgumentError{Argument: "Overdue", Reason: "selects only messages that are processing"}
	}
	f.Consumer = b.consumer
	return l.List(ctx, f)
}

// All gives all messages that a filter selects, fetching pages of f.Limit as
// the caller goes on. It ends after an error.
func (b *Box) All(ctx context.Context, f Filter) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for {
			page, err := b.List(ctx, f)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
			f.After = page[len(page)-1].Seq
		}
	}
}

// Audit gives the newest operator actions first.
func (b *Box) Audit(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	l, err := ability[Lister](b, "list operator actions")
	if err != nil {
		return nil, err
	}
	f.Consumer = b.consumer
	return l.Audit(ctx, f)
}
