package tcp

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged returns what sets the limit for a socket.
func limitUnacknowledged(limit time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var set error
		err := c.Control(func(fd uintptr) {
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
		})
		return errors.Join(err, set)
	}
}
