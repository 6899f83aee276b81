//go:build !linux

package lease

import "time"

// NewClock is Go's monotonic clock, which may stand still while the machine
// sleeps: a desk is no place for a controller that shares its work.
func NewClock() Clock {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
