package sqlstore

import (
	"context"

	"github.com/postroom/postroom"
)

// Pause lets no worker handle a topic. See box.Pauser.
func (s *Store) Pause(ctx context.Context, consumer, topic, actor, reason string) error {
	return s.write(ctx, "pause", func(q *session) error {
		changed, err := q.groups(ctx, "pause", consumer, topic, actor, postroom.ErrorText(reason))
		if err != nil || len(changed) == 0 || actor == "" {
			return err
		}
		return q.each(ctx, "insert_audit", [][]any{{actor, "pause", postroom.ErrorText(reason), consumer, "", "", topic}}, nil)
	})
}

// Resume lets workers handle a topic again. See box.Pauser.
func (s *Store) Resume(ctx context.Context, consumer, topic, actor string) error {
	err := s.write(ctx, "resume", func(q *session) error {
		changed, err := q.groups(ctx, "resume", consumer, topic)
		if err != nil || len(changed) == 0 || actor == "" {
			return err
		}
		return q.each(ctx, "insert_audit", [][]any{{actor, "resume", "", consumer, "", "", topic}}, nil)
	})
	if err != nil {
		return err
	}
	return s.write(ctx, "resume", func(q *session) error { return q.promote(ctx, "parked", consumer, unparkAtOnce) })
}

// unparkAtOnce bounds what Resume itself makes ready; claims do the rest.
const unparkAtOnce = 10_000

// Paused gives the topics that are paused. See box.Pauser.
func (s *Store) Paused(ctx context.Context, consumer string) (topics []string, err error) {
	err = s.read("list paused topics", func(q *session) (err error) {
		topics, err = q.groups(ctx, "paused", consumer)
		return err
	})
	return topics, err
}
