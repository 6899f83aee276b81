package consulutil

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence ends a connection whose peer acknowledges nothing for silenceLimit, whether data
// or a probe.
func limitSilence(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceLimit.Milliseconds()))
	})
	if failed != nil {
		return failed
	}
	return err
}
