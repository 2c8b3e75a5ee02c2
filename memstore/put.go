package memstore

import (
	"context"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// seenEvery is how often the last_seen of a message is written at most.
const seenEvery = time.Second

// Put takes messages in.
func (s *Store) Put(ctx context.Context, tx postroom.Tx, puts []box.Put) ([]box.PutResult, error) {
	results := make([]box.PutResult, len(puts))
	err := s.write(ctx, tx, func(now time.Time) {
		for i := range puts {
			p := intake(puts[i])
			results[i] = s.put(&p, now)
			if tx == nil {
				s.seen(results[i].Seq, now)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (s *Store) put(p *box.Put, now time.Time) box.PutResult {
	seq, ok := s.keys.get(p.Message.Key())
	if !ok {
		return s.arrive(p, now)
	}
	res, c := p.Decide(s.known(seq), now)
	if c.Fate == box.Forget {
		s.apply(seq, &c)
		arrived := s.arrive(p, now)
		arrived.Lost = res.Lost
		return arrived
	}
	s.content(seq, p, &c)
	s.apply(seq, &c)
	return res
}

func (s *Store) arrive(p *box.Put, now time.Time) box.PutResult {
	seq := s.next()
	res, c := p.Arrive(seq, now)
	s.keys.put(p.Message.Key(), seq)
	s.messages.put(seq, newMessage(p, now))
	s.apply(seq, &c)
	return res
}

func (s *Store) known(seq int64) box.Known {
	row, _ := s.messages.get(seq)
	k := box.Known{Seq: seq, Digest: row.digest, Hash: row.hash, HashAlg: row.hashAlg, Group: row.group}
	if w, ok := s.work.get(seq); ok {
		k.Work = &w
	}
	return k
}

// content writes what a change says of the message row.
func (s *Store) content(seq int64, p *box.Put, c *box.Change) {
	if !c.Content && !c.AdoptHash {
		return
	}
	row, _ := s.messages.get(seq)
	if c.Content {
		row.setContent(p, c.Work.Revision)
		if c.Regroup {
			row.group = p.Message.Group
		}
	} else {
		row.adoptHash(p)
	}
	s.messages.put(seq, row)
}

// seen notes that a message came again.
func (s *Store) seen(seq int64, now time.Time) {
	if w, ok := s.work.get(seq); ok {
		if now.Sub(w.LastSeen) >= seenEvery {
			w.LastSeen = now
			s.work.put(seq, w)
		}
		return
	}
	if d, ok := s.done.get(seq); ok && now.Sub(d.LastSeen) >= seenEvery {
		d.LastSeen = now
		s.done.put(seq, d)
	}
}

// apply writes what a change says of the work, done and lane rows.
func (s *Store) apply(seq int64, c *box.Change) {
	w := c.Work
	w.Due, w.Retry, w.Expires, w.Until = instant(w.Due), instant(w.Retry), instant(w.Expires), instant(w.Until)
	if w.Position == box.NewPosition {
		w.Position = s.next()
	}
	if w.ReadyPosition == box.NewPosition {
		w.ReadyPosition = s.next()
	}
	switch c.Fate {
	case box.Insert, box.Update:
		s.work.put(seq, w)
	case box.InsertDone:
		s.done.put(seq, c.Done)
	case box.ToDone:
		s.work.delete(seq)
		s.done.put(seq, c.Done)
	case box.Reopen:
		s.done.delete(seq)
		s.work.put(seq, w)
	case box.Forget:
		s.work.delete(seq)
		s.forget(seq)
	}
	if c.Vacate {
		s.vacate(lane{w.Consumer, w.Group}, seq)
	}
}

// forget removes the message itself, so that its key is unknown again.
func (s *Store) forget(seq int64) {
	row, _ := s.messages.get(seq)
	s.keys.delete(row.key)
	s.messages.delete(seq)
}
