package box

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom"
)

// Settings outside these bounds work, but are warned of once.
const (
	minLease = 10 * time.Second
	maxLease = 300 * time.Second
	maxBatch = 100
)

// Claim leases messages, and says so to logs and observers. The request's
// consumer is that of the box.
func (b *Box) Claim(ctx context.Context, req ClaimRequest) ([]*postroom.Message, error) {
	if err := b.checkOwner(req.Owner); err != nil {
		return nil, err
	}
	if err := b.checkLease(ctx, req.Lease); err != nil {
		return nil, err
	}
	if req.Limit <= 0 {
		return nil, &postroom.ArgumentError{Argument: "limit", Reason: fmt.Sprintf("is %d, it must be positive", req.Limit)}
	}
	began := time.Now()
	msgs, err := b.store.Claim(ctx, b.claiming(ctx, req))
	b.observe.Claimed(ctx, postroom.ClaimedEvent{Scope: b.scope, Asked: req.Limit, Got: len(msgs), Took: time.Since(began), Err: err})
	if err != nil {
		return nil, fmt.Errorf("claim from %s: %w", b.scope.Store, err)
	}
	b.log.DebugContext(ctx, "messages claimed", "messages", len(msgs), "asked", req.Limit)
	return msgs, nil
}

// claiming completes a request with what is this box's to say.
func (b *Box) claiming(ctx context.Context, req ClaimRequest) ClaimRequest {
	req.Consumer, req.Hold = b.consumer, b.opts.HoldGroup
	req.Expired = func(m *postroom.Message) { b.died(ctx, m.Key(), m.Topic, Expired, m) }
	return req
}

// exchanger gives the store if settling and claiming are cheaper together there.
func (b *Box) exchanger() Exchanger {
	if ex, ok := b.store.(Exchanger); ok && ex.Exchanges() {
		return ex
	}
	return nil
}

// exchange is Settle and Claim of what is ready, together.
func (b *Box) exchange(ctx context.Context, ex Exchanger, ends []*End, req ClaimRequest) ([]Settled, []*postroom.Message, error) {
	settlements, err := b.settlements(ends)
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	results, msgs, err := ex.Exchange(ctx, settlements, b.claiming(ctx, req))
	b.observe.Claimed(ctx, postroom.ClaimedEvent{Scope: b.scope, Asked: req.Limit, Got: len(msgs), Took: time.Since(began), Err: err})
	if err != nil {
		return nil, nil, fmt.Errorf("settle and claim in %s: %w", b.scope.Store, err)
	}
	b.Report(ctx, ends, results)
	b.log.DebugContext(ctx, "messages claimed", "messages", len(msgs), "asked", req.Limit)
	return results, msgs, nil
}

// An End is the settlement of a message. The message is for logs and totals; it
// may be nil where only the lease is known.
type End struct {
	Settlement
	Message *postroom.Message
}

// Settle ends leases and commits. Results run parallel to the ends; rows that
// were locked were tried again for a short while.
func (b *Box) Settle(ctx context.Context, ends []*End) ([]Settled, error) {
	settlements, err := b.settlements(ends)
	if err != nil || len(ends) == 0 {
		return nil, err
	}
	results, err := b.store.Settle(ctx, nil, settlements)
	if err != nil {
		return nil, fmt.Errorf("settle in %s: %w", b.scope.Store, err)
	}
	b.settleLocked(ctx, settlements, results)
	b.Report(ctx, ends, results)
	return results, nil
}

// SettleTx ends leases inside a transaction. Report it after the commit.
func (b *Box) SettleTx(ctx context.Context, tx postroom.Tx, ends []*End) ([]Settled, error) {
	if err := checkTx(tx); err != nil {
		return nil, err
	}
	settlements, err := b.settlements(ends)
	if err != nil || len(ends) == 0 {
		return nil, err
	}
	results, err := b.store.Settle(ctx, tx, settlements)
	if err != nil {
		return nil, fmt.Errorf("settle in %s: %w", b.scope.Store, err)
	}
	return results, nil
}

// lockedTries and lockedPause bound the wait for a row that another transaction
// holds, which is a renewal or a reaper, and short.
const (
	lockedTries = 5
	lockedPause = 20 * time.Millisecond
)

// settleLocked tries locked rows again, apart from those that are settled. What
// stays locked, or meets an error, keeps its mark: the others are settled, and the
// caller must learn of that.
func (b *Box) settleLocked(ctx context.Context, settlements []Settlement, results []Settled) {
	for try := range lockedTries {
		var (
			again []Settlement
			at    []int
		)
		for i := range results {
			if results[i].Locked {
				again, at = append(again, settlements[i]), append(at, i)
			}
		}
		if len(again) == 0 || !pause(ctx, lockedPause<<try) {
			return
		}
		retried, err := b.store.Settle(ctx, nil, again)
		if err != nil {
			b.log.WarnContext(ctx, "locked messages not settled", "messages", len(again), "error", err)
			return
		}
		for j, i := range at {
			results[i] = retried[j]
		}
	}
}

// pause waits, and reports whether the context lasted as long.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// settlements checks ends and gives them the form that stores keep.
func (b *Box) settlements(ends []*End) ([]Settlement, error) {
	settlements := make([]Settlement, len(ends))
	for i := range ends {
		s := ends[i].Settlement
		if err := b.checkOwner(s.Lease.Owner); err != nil {
			return nil, err
		}
		if s.Delay < 0 {
			return nil, &postroom.ArgumentError{Argument: "delay", Reason: fmt.Sprintf("is %s, it must not be negative", s.Delay)}
		}
		s.Error, s.Note = postroom.ErrorText(s.Error), postroom.ErrorText(s.Note)
		s.Hold = s.Hold || b.opts.HoldGroup
		settlements[i] = s
	}
	return settlements, nil
}

// Report tells logs, totals and observers what settling did, once it is
// committed.
func (b *Box) Report(ctx context.Context, ends []*End, results []Settled) {
	var counts [Park + 1]int
	late, wake := 0, false
	for i := range ends {
		e, r := ends[i], &results[i]
		m, topic := e.Message, ""
		if m != nil {
			topic = m.Topic
		}
		if r.Locked {
			continue
		}
		b.observe.Settled(ctx, postroom.SettledEvent{
			Scope: b.scope, Message: m, Verb: e.Verb.String(), Applied: r.Applied, State: r.State, Superseded: r.Superseded,
		})
		if !r.Applied {
			late++
			if m != nil {
				b.LogAbout(ctx, slog.LevelWarn, "lease was lost before the message was settled", m, slog.String("verb", e.Verb.String()))
			}
			continue
		}
		counts[e.Verb]++
		wake = wake || (e.Verb == Release && e.Delay == 0)
		if m != nil {
			b.LogMessage(ctx, "message settled", m, slog.String("verb", e.Verb.String()), slog.String("state", r.State.String()))
		}
		b.reportEnd(ctx, e, r, topic)
	}
	if wake {
		b.Wake()
	}
	attrs := []slog.Attr{slog.Int("messages", len(ends))}
	for v := Ack; v <= Park; v++ {
		if counts[v] > 0 {
			attrs = append(attrs, slog.Int(v.String(), counts[v]))
		}
	}
	if late > 0 {
		attrs = append(attrs, slog.Int("lost", late))
	}
	b.log.LogAttrs(ctx, slog.LevelInfo, "messages settled", attrs...)
}

func (b *Box) reportEnd(ctx context.Context, e *End, r *Settled, topic string) {
	switch r.State {
	case postroom.StateDone:
		b.count(topic, CountDone, 1)
	case postroom.StateDead:
		text := e.Error
		if e.Verb == Expire {
			text = Expired
		}
		var key postroom.Key
		if e.Message != nil {
			key = e.Message.Key()
		}
		b.died(ctx, key, topic, postroom.ErrorText(text), e.Message)
	}
	if r.Superseded {
		b.count(topic, CountSuperseded, 1)
		if e.Message != nil {
			b.LogAbout(ctx, slog.LevelWarn, "a newer content had been received when the message was done", e.Message)
		}
	}
}

// Extend lets leases end d from now instead.
func (b *Box) Extend(ctx context.Context, leases []postroom.Lease, d time.Duration) ([]Extension, error) {
	if err := b.checkLease(ctx, d); err != nil {
		return nil, err
	}
	for _, l := range leases {
		if err := b.checkOwner(l.Owner); err != nil {
			return nil, err
		}
	}
	if len(leases) == 0 {
		return nil, nil
	}
	extensions, err := b.store.Extend(ctx, leases, d)
	if err != nil {
		return nil, fmt.Errorf("extend leases in %s: %w", b.scope.Store, err)
	}
	return extensions, nil
}

// CheckBatch warns of a batch that is larger than is good for others. It is asked
// where people say how large.
func (b *Box) CheckBatch(ctx context.Context, n int) {
	if n > maxBatch {
		b.warnOnce(ctx, "batch is larger than recommended", "limit", n, "recommended", maxBatch)
	}
}

func (b *Box) checkOwner(owner string) error {
	if owner == "" {
		return &postroom.ArgumentError{Argument: "owner", Reason: "is empty"}
	}
	if len(owner) > maxOwner {
		return &postroom.ArgumentError{Argument: "owner", Reason: fmt.Sprintf("is %d bytes long, at most %d are allowed", len(owner), maxOwner)}
	}
	return nil
}

const maxOwner = 128

func (b *Box) checkLease(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return &postroom.ArgumentError{Argument: "lease", Reason: fmt.Sprintf("is %s, it must be positive", d)}
	}
	if d < minLease || d > maxLease {
		b.warnOnce(ctx, "lease is outside the recommended range", "lease", d, "min", minLease, "max", maxLease)
	}
	return nil
}
