package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom"
)

// A system is what is measured: Postroom, or something beside it, with a
// database of its own.
type system interface {
	name() string
	// reset makes the tables anew.
	reset(ctx context.Context) error
	// fill writes n messages straight into the tables.
	fill(ctx context.Context, kind rows, n int) error
	// open connects, with connections that nobody used before.
	open(ctx context.Context) (session, error)
	// beside gives the same system on a second, empty database.
	beside(ctx context.Context) (system, error)
	// written counts the bytes that the database wrote to be durable.
	written(ctx context.Context) (int64, error)
	// hold keeps a snapshot of the database open until it is released.
	hold(ctx context.Context) (release func(), err error)
	// child names the worker that "bench worker" is to start, and its database.
	child() (kind, dsn string)
	close(ctx context.Context) error
}

// A session is a system in use.
type session interface {
	// receive returns when the message is durable.
	receive(ctx context.Context, m message) error
	receiveAll(ctx context.Context, ms []message) error
	// work handles messages until ctx is done.
	work(ctx context.Context, w work) error
	close()
}

// rows says what fill writes.
type rows int

const (
	ready     rows = iota // waiting to be handled now
	grouped               // waiting, in groups, each in order
	finished              // handled before
	scheduled             // due next week
	queued                // in one group, behind a message that is due next week
)

// work says how a session is to work.
type work struct {
	concurrency int
	// lease is how long a message outlives its worker. 0: the default.
	lease time.Duration
	// inserting lets the handler insert a row, in one transaction with the
	// outcome of the message.
	inserting bool
	// holding says that started never returns, so that each message needs a
	// goroutine of its own.
	holding bool
	// started is called when the handler starts, settled after the commit.
	started func(m message)
	settled func(n int)
}

// A message is what every system gets: a name and 256 bytes.
type message struct {
	id      string
	group   string
	payload []byte
}

const (
	payloadSize = 256
	groups      = 1000
)

// newMessage makes a message whose payload remembers when that was.
func newMessage() message {
	m := message{id: postroom.NewID(), payload: bytes.Clone(filling)}
	stamp(m.payload)
	return m
}

// filling is a payload without its time.
var filling = bytes.Repeat([]byte("abcdefgh"), payloadSize/8)

// stamp writes the time as text, which every system can carry.
func stamp(payload []byte) {
	var now [8]byte
	binary.BigEndian.PutUint64(now[:], uint64(time.Now().UnixNano()))
	hex.Encode(payload, now[:])
}

// age is how long ago the message was made.
func (m message) age() (time.Duration, error) {
	var nanos uint64
	if _, err := fmt.Sscanf(string(m.payload[:16]), "%016x", &nanos); err != nil {
		return 0, fmt.Errorf("payload of %s has no time: %w", m.id, err)
	}
	return time.Since(time.Unix(0, int64(nanos))), nil
}

// A tally follows a drain: when the first handler started, and how many
// messages are done since.
type tally struct {
	first atomic.Int64
	n     atomic.Int64
	want  int64
	full  chan struct{}
}

func newTally(want int) *tally { return &tally{want: int64(want), full: make(chan struct{})} }

func (t *tally) started(message) {
	if t.first.Load() == 0 {
		t.first.CompareAndSwap(0, time.Now().UnixNano())
	}
}

func (t *tally) settled(n int) {
	if now := t.n.Add(int64(n)); now >= t.want && now-int64(n) < t.want {
		close(t.full)
	}
}

// rate gives messages per second since the first start.
func (t *tally) rate() float64 {
	first := t.first.Load()
	if first == 0 {
		return 0
	}
	return float64(t.n.Load()) / time.Since(time.Unix(0, first)).Seconds()
}

// patience is how long a system may take to handle anything at all.
const patience = 10 * time.Second

// over is closed when so much time has passed since the first start, and not
// before one message is done.
func (t *tally) over(span time.Duration) <-chan struct{} {
	closed, begin := make(chan struct{}), time.Now()
	go func() {
		defer close(closed)
		for t.first.Load() == 0 {
			select {
			case <-t.full:
				return
			case <-time.After(time.Millisecond):
			}
		}
		select {
		case <-t.full:
			return
		case <-time.After(span):
		}
		for t.n.Load() == 0 && time.Since(begin) < span+patience {
			time.Sleep(time.Millisecond)
		}
	}()
	return closed
}
