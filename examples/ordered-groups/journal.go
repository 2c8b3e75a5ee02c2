package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom"
)

// A journal handles messages and writes down what it saw.
type journal struct {
	mu      sync.Mutex
	left    int
	done    func()
	running map[string]string // account: the message that runs
	seen    map[string][]string
	faults  []string
}

// newJournal calls done after so many messages.
func newJournal(messages int, done func()) *journal {
	return &journal{left: messages, done: done, running: map[string]string{}, seen: map[string][]string{}}
}

// stumbles is the message that fails until the other accounts are through, which
// they never would be if they waited for it.
const stumbles = "bob-2"

func (j *journal) handle(_ context.Context, m *postroom.Message) error {
	j.begin(m)
	time.Sleep(5 * time.Millisecond) // the work
	return j.end(m)
}

func (j *journal) begin(m *postroom.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if other := j.running[m.Group]; other != "" {
		j.faults = append(j.faults, fmt.Sprintf("%s began while %s ran", m.ID, other))
	}
	j.running[m.Group] = m.ID
}

func (j *journal) end(m *postroom.Message) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.running, m.Group)
	if m.ID == stumbles && len(j.seen["ann"])+len(j.seen["eve"]) < 2*each {
		return postroom.RetryAfter(200*time.Millisecond, errNotYet)
	}
	j.seen[m.Group] = append(j.seen[m.Group], string(m.Payload))
	if j.left--; j.left == 0 {
		j.done()
	}
	return nil
}

// audit prints each account's order, and says what is wrong with it.
func (j *journal) audit() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, account := range accounts {
		fmt.Printf("%s: %s\n", account, strings.Join(j.seen[account], " "))
		if n := len(j.seen[account]); n != each || !slices.IsSorted(j.seen[account]) {
			j.faults = append(j.faults, account+" is out of order, or not complete")
		}
	}
	if len(j.faults) > 0 {
		return fmt.Errorf("order was not kept: %s", strings.Join(j.faults, "; "))
	}
	fmt.Printf("%s failed until ann and eve were through: its account waited for it, theirs did not\n", stumbles)
	return nil
}
