package setup

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads a clock that runs while the machine is suspended, unlike Go's: the
// sessions of a suspended process end meanwhile.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // Linux has had it since 2.6.39
	}
	return time.Duration(t.Nano())
}
