package envoy

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged makes the kernel end a connection whose peer has not acknowledged data for as long as
// it waits for that of a probe: while data are on the way, there are no probes.
func limitUnacknowledged(_, _ string, c syscall.RawConn) error {
	const limit = keepAliveIdle + keepAliveCount*keepAliveInterval
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
	return errors.Join(err, set)
}
