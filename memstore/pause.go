package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Pause stops the handling of a topic.
func (s *Store) Pause(ctx context.Context, consumer, name, actor, reason string) error {
	return s.write(ctx, nil, func(now time.Time) {
		if _, ok := s.paused.get(topic{consumer, name}); ok {
			return
		}
		s.paused.put(topic{consumer, name}, reason)
		s.noteTopic(now, "pause", consumer, name, actor, reason)
	})
}

// Resume lets the handling of a topic go on.
func (s *Store) Resume(ctx context.Context, consumer, name, actor string) error {
	return s.write(ctx, nil, func(now time.Time) {
		if _, ok := s.paused.get(topic{consumer, name}); ok {
			s.paused.delete(topic{consumer, name})
			s.noteTopic(now, "resume", consumer, name, actor, "")
		}
		s.unpark(consumer)
	})
}

// Paused gives the paused topics of a consumer in order.
func (s *Store) Paused(ctx context.Context, consumer string) ([]string, error) {
	var topics []string
	err := s.read(ctx, func() error {
		for t := range s.paused.all() {
			if t.consumer == consumer {
				topics = append(topics, t.topic)
			}
		}
		return nil
	})
	slices.Sort(topics)
	return topics, err
}

func (s *Store) noteTopic(now time.Time, action, consumer, name, actor, reason string) {
	if actor == "" {
		return
	}
	s.note(box.AuditEntry{
		At: now, Actor: actor, Reason: reason, Action: action,
		Key: postroom.Key{Consumer: consumer}, Detail: name,
	})
}
