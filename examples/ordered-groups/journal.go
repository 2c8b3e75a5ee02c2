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
	all     []string // in the order of their ends
	faults  []string
}

// newJournal calls done after so many messages.
func newJournal(messages int, done func()) *journal {
	return &journal{left: messages, done: done, running: map[string]string{}, seen: map[string][]string{}}
}

// stumbles is the message whose first run fails.
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
	if m.ID == stumbles && m.Attempt == 0 {
		return postroom.RetryAfter(200*time.Millisecond, errNotYet)
	}
	j.seen[m.Group] = append(j.seen[m.Group], string(m.Payload))
	j.all = append(j.all, m.ID)
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
	// The others went on while bob's second message waited for its retry.
	for _, id := range []string{"ann-5", "eve-5"} {
		if slices.Index(j.all, id) > slices.Index(j.all, stumbles) {
			j.faults = append(j.faults, id+" waited for "+stumbles)
		}
	}
	if len(j.faults) > 0 {
		return fmt.Errorf("order was not kept: %s", strings.Join(j.faults, "; "))
	}
	fmt.Printf("%s failed once: its account waited for it, the others did not\n", stumbles)
	return nil
}
