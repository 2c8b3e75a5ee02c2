package box

import (
	"context"
	"errors"
	"time"
)

// reap ends expired leases now and then. After failures of the store it holds
// back for one lease: leases that lapsed because nobody could renew them are no
// sign of a process that died.
func (l *Loop) reap(ctx context.Context) {
	tick := time.NewTicker(l.opts.ReapEvery)
	defer tick.Stop()
	for {
		if !l.keeper.troubled() {
			_, err := l.box.Reap(ctx)
			if errors.Is(err, errors.ErrUnsupported) {
				return
			}
			if err != nil && ctx.Err() == nil {
				l.keeper.note(err)
				l.box.log.WarnContext(ctx, "reaping failed, will try again", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
