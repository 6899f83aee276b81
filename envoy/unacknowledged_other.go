//go:build !linux

package envoy

import "syscall"

// limitUnacknowledged does nothing: other systems have other options, and no task runs there.
func limitUnacknowledged(_, _ string, _ syscall.RawConn) error { return nil }
