//go:build !linux

package tcp

import (
	"syscall"
	"time"
)

// limitUnacknowledged returns nil: there is nothing to set.
func limitUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}
