//go:build !unix

package demo

import (
	"errors"
	"os"
)

// canStall: processes can be stopped and continued, which this system can't.
const canStall = false

func stall(*os.Process) error  { return errors.ErrUnsupported }
func resume(*os.Process) error { return errors.ErrUnsupported }
