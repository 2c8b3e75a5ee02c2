package inbox

import (
	"context"
	"time"

	"github.com/postroom/postroom/box"
)

// A CleanupResult counts the payloads emptied and the records forgotten.
type CleanupResult = box.CleanupResult

// Cleanup removes what is past its retention, in batches, until nothing is left.
// Only done messages are ever removed. It can be cancelled and run again.
func (in *Inbox) Cleanup(ctx context.Context) (CleanupResult, error) {
	return in.box.Cleanup(ctx, age(in.opts.PayloadRetention), age(in.opts.RecordRetention))
}

// age turns Forever into what the engine calls never.
func age(d time.Duration) time.Duration { return max(d, 0) }

// RunCleanup cleans up now and then every CleanupEvery, until ctx is done. A
// pass that fails is logged, and the next one runs. The error is nil unless the
// store can't clean up.
func (in *Inbox) RunCleanup(ctx context.Context) error {
	return in.box.CleanupEvery(ctx, in.opts.CleanupEvery, age(in.opts.PayloadRetention), age(in.opts.RecordRetention))
}
