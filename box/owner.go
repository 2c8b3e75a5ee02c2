package box

import (
	"crypto/rand"
	"fmt"
	"os"
)

// NewOwner names a holder of leases, so that people can tell processes apart. It
// is written with every claim: ten letters of chance do, fifty bits.
func NewOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	return fmt.Sprintf("%.60s/%d/%.10s", host, os.Getpid(), rand.Text())
}
