package box

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom"
)

// Reap ends all leases that have expired and gives how many there were.
func (b *Box) Reap(ctx context.Context) (int, error) {
	sweeper, err := ability[Sweeper](b, "reap leases")
	if err != nil {
		return 0, err
	}
	req := ReapRequest{
		Consumer:  b.consumer,
		Limit:     reapLimit,
		ReapRules: b.rules(),
	}
	total := 0
	for {
		reaped, err := sweeper.Reap(ctx, req)
		if err != nil {
			return total, fmt.Errorf("reap in %s: %w", b.scope.Store, err)
		}
		for i := range reaped {
			r := &reaped[i]
			b.lost(ctx, r.Key, r.Topic, r.Lost)
			if r.State == postroom.StateDead {
				b.died(ctx, r.Key, r.Topic, r.Error, nil)
			}
		}
		total += len(reaped)
		if len(reaped) < reapLimit {
			break
		}
	}
	if total == 0 {
		b.log.DebugContext(ctx, "leases reaped", "messages", 0)
		return 0, nil
	}
	b.log.InfoContext(ctx, "leases reaped", "messages", total)
	b.Wake()
	return total, nil
}

const reapLimit = 500

// Cleanup removes what is past its retention, batch by batch, until nothing is
// left or the context ends. What was removed by then stays removed.
func (b *Box) Cleanup(ctx context.Context, payloads, records time.Duration) (CleanupResult, error) {
	var total CleanupResult
	sweeper, err := ability[Sweeper](b, "clean up")
	if err != nil {
		return total, err
	}
	// A payload that goes with its record needs no write of its own.
	if records > 0 && payloads >= records {
		payloads = 0
	}
	if payloads <= 0 && records <= 0 {
		return total, nil
	}
	req := CleanupRequest{Consumer: b.consumer, Payloads: payloads, Records: records, Limit: cleanupLimit}
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		began := time.Now()
		res, err := sweeper.Cleanup(ctx, req)
		if err != nil {
			return total, fmt.Errorf("clean up %s: %w", b.scope.Store, err)
		}
		total.Payloads += res.Payloads
		total.Records += res.Records
		b.observe.CleanedUp(ctx, postroom.CleanedUpEvent{
			Scope: b.scope, Payloads: res.Payloads, Records: res.Records, Took: time.Since(began),
		})
		b.log.DebugContext(ctx, "batch cleaned up", "payloads", total.Payloads, "records", total.Records)
		if !res.More {
			break
		}
	}
	b.log.InfoContext(ctx, "cleaned up", "payloads", total.Payloads, "records", total.Records)
	return total, nil
}

const cleanupLimit = 1000

// CleanupEvery cleans up now and then at each interval, until ctx is done. A pass
// that fails is logged, and the next one runs. The error is nil unless the store
// can't clean up.
func (b *Box) CleanupEvery(ctx context.Context, interval, payloads, records time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		_, err := b.Cleanup(ctx, payloads, records)
		if errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			b.log.ErrorContext(ctx, "cleanup failed, the next pass will go on", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Stats gives the overview of this consumer, with the totals up to now.
func (b *Box) Stats(ctx context.Context) (*Stats, error) {
	counter, err := ability[Counter](b, "count messages")
	if err != nil {
		return nil, err
	}
	if err := b.tally.flush(ctx); err != nil {
		return nil, err
	}
	return counter.Stats(ctx, b.consumer)
}

// Pause keeps all workers from handling a topic until Resume. Its messages wait.
func (b *Box) Pause(ctx context.Context, topic, actor, reason string) error {
	p, err := b.pauser(topic)
	if err != nil {
		return err
	}
	if err := p.Pause(ctx, b.consumer, topic, postroom.ErrorText(actor), postroom.ErrorText(reason)); err != nil {
		return fmt.Errorf("pause topic in %s: %w", b.scope.Store, err)
	}
	b.log.WarnContext(ctx, "topic paused", "topic", topic, "actor", actor, "reason", reason)
	return nil
}

// Resume lets workers handle a topic again.
func (b *Box) Resume(ctx context.Context, topic, actor string) error {
	p, err := b.pauser(topic)
	if err != nil {
		return err
	}
	if err := p.Resume(ctx, b.consumer, topic, postroom.ErrorText(actor)); err != nil {
		return fmt.Errorf("resume topic in %s: %w", b.scope.Store, err)
	}
	b.log.InfoContext(ctx, "topic resumed", "topic", topic, "actor", actor)
	b.Wake()
	return nil
}

// Paused gives the topics that are paused; none on a store that can't pause.
func (b *Box) Paused(ctx context.Context) ([]string, error) {
	p, ok := b.store.(Pauser)
	if !ok {
		return nil, nil
	}
	return p.Paused(ctx, b.consumer)
}

func (b *Box) pauser(topic string) (Pauser, error) {
	if topic == "" {
		return nil, &postroom.ArgumentError{Argument: "topic", Reason: "is empty"}
	}
	return ability[Pauser](b, "pause topics")
}

// rules say what becomes of a message whose lease has expired.
func (b *Box) rules() ReapRules {
	return ReapRules{Hold: b.opts.HoldGroup, NeverDead: b.opts.NeverDead}
}
