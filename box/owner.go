package box

import (
	"fmt"
	"os"

	"github.com/postroom/postroom"
)

// NewOwner names a holder of leases, so that people can tell processes apart.
func NewOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	return fmt.Sprintf("%.60s/%d/%s", host, os.Getpid(), postroom.NewID())
}
