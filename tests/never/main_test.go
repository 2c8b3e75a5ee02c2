package never

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/postroom/postroom/tests/services"
)

func TestMain(m *testing.M) {
	code := m.Run()
	run.end()
	os.Exit(code)
}

// A process stands in for a test where something lasts for the whole run.
type process struct {
	testing.TB
	mu        sync.Mutex
	databases map[string]string
	cleanups  []func()
}

var run = &process{databases: map[string]string{}}

// database gives the database of this run on a server.
func (p *process) database(server string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.databases[server] == "" {
		p.databases[server] = services.FreshDatabase(p, server)
	}
	return p.databases[server]
}

func (p *process) end() {
	for _, f := range p.cleanups {
		f()
	}
}

func (p *process) Helper()                  {}
func (p *process) Context() context.Context { return context.Background() }
func (p *process) Cleanup(f func())         { p.cleanups = append(p.cleanups, f) }

func (p *process) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
