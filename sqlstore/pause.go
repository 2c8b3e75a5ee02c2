package sqlstore

import (
	"context"

	"github.com/postroom/postroom"
)

// Pause lets no worker handle a topic. See box.Pauser.
func (s *Store) Pause(ctx context.Context, consumer, topic, actor, reason string) error {
	return s.write(ctx, "pause", func(q *session) error {
		changed, err := q.setPause(ctx, "pause", consumer, topic, actor, postroom.ErrorText(reason))
		if err != nil || !changed || actor == "" {
			return err
		}
		return q.each(ctx, "insert_audit", [][]any{{actor, "pause", postroom.ErrorText(reason), consumer, "", "", topic}}, nil)
	})
}

// setPause reports whether a pause was made or ended. Where the database can't
// give the rows that a statement changed, a look before it tells.
func (q *session) setPause(ctx context.Context, name string, args ...any) (bool, error) {
	if !q.has("find_pause") {
		changed, err := q.groups(ctx, name, args...)
		return len(changed) > 0, err
	}
	before, err := q.groups(ctx, "find_pause", args[:2]...)
	if err != nil {
		return false, err
	}
	return (len(before) == 0) == (name == "pause"), q.exec(ctx, name, args...)
}

// Resume lets workers handle a topic again. See box.Pauser.
func (s *Store) Resume(ctx context.Context, consumer, topic, actor string) error {
	err := s.write(ctx, "resume", func(q *session) error {
		changed, err := q.setPause(ctx, "resume", consumer, topic)
		if err != nil || !changed || actor == "" {
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
