package box

import (
	"crypto/rand"
	"fmt"
	"os"
)

// NewOwner names a holder of leases, so that people can tell processes apart. It
// is written with every claim: four letters of chance do, since a lease is told
// apart by its fence besides.
func NewOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	return fmt.Sprintf("%.60s/%d/%.4s", host, os.Getpid(), rand.Text())
}
