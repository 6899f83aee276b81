//go:build !linux

package setup

import "time"

var processStart = time.Now()

// sinceBoot reads Go's monotonic clock, which may stop while the machine sleeps:
// controllers run on Linux.
func sinceBoot() time.Duration { return time.Since(processStart) }
