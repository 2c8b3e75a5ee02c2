package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// A Range selects messages that were sent. At least one field must be set.
type Range struct {
	// From and Until bound when a message was sent, by the database's clock: from
	// the first on, before the second. Zero: no bound.
	From, Until time.Time
	// Topic, Group and Source are those of the message. Empty: any.
	Topic, Group, Source string
}

// RewindOptions of a Rewind.
type RewindOptions struct {
	// DryRun only counts.
	DryRun bool
	// Actor and Reason are kept in the audit, with each message.
	Actor, Reason string
}

// A Rewound says what a Rewind did, or would do.
type Rewound struct {
	// Messages are those that are sent again.
	Messages int
	// Purged are those that can't be: their payload is past its retention.
	Purged int
}

// Rewind sends messages again, under the same IDs, after a broker lost them or
// for a subscriber that came later. Receivers that still have them recognise the
// duplicates. Those of a group go in the order in which they were added, behind
// what already waits in it.
//
// Messages whose payload was purged are refused: the others are rewound, and the
// error is postroom.ErrPurged. Messages that an operator discarded were never
// sent, and are passed over. A rewind that was cut off can be run again.
func (o *Outbox) Rewind(ctx context.Context, r Range, opts RewindOptions) (Rewound, error) {
	var res Rewound
	if r == (Range{}) {
		return res, argument("range", "is empty: give a time, a topic, a group or a source")
	}
	f := Filter{
		State: postroom.StateDone, Topic: r.Topic, Group: r.Group, Source: r.Source,
		DoneFrom: r.From, DoneUntil: r.Until, Limit: rewindPage,
	}
	for {
		page, err := o.box.List(ctx, f)
		if err != nil {
			return res, fmt.Errorf("rewind: %w", err)
		}
		if len(page) == 0 {
			break
		}
		if err := o.rewind(ctx, page, opts, &res); err != nil {
			return res, fmt.Errorf("rewind: %w", err)
		}
		f.After = page[len(page)-1].Seq
	}
	if res.Purged > 0 && !opts.DryRun {
		return res, fmt.Errorf("rewind: %d messages can't be sent again: %w", res.Purged, postroom.ErrPurged)
	}
	return res, nil
}

// rewindPage keeps one transaction of an operator short.
const rewindPage = 200

func (o *Outbox) rewind(ctx context.Context, page []*Record, opts RewindOptions, res *Rewound) error {
	var moves []box.Move
	for _, rec := range page {
		switch {
		case rec.Done.Discarded && rec.Done.Handler == "":
		case rec.Done.Purged:
			res.Purged++
		default:
			moves = append(moves, Order{Actor: opts.Actor, Reason: opts.Reason}.Move(rec.Key(), box.Replay))
		}
	}
	if opts.DryRun {
		res.Messages += len(moves)
		return nil
	}
	results, err := o.box.Moves(ctx, moves)
	if err != nil {
		return err
	}
	for _, r := range results {
		switch {
		case r.Err == nil && r.Changed:
			res.Messages++
		case errors.Is(r.Err, postroom.ErrPurged): // on the way
			res.Purged++
		}
	}
	return nil
}
