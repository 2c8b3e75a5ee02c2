//go:build unix

package demo

import (
	"os"
	"syscall"
)

// canStall: processes can be stopped and continued.
const canStall = true

func stall(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
