// Package tcp makes dialers whose connections end when the other end is silent: the address of
// a server that was terminated answers nothing, not even with a refusal.
//
// Never does: limit the dial, or how long an answer may take; the caller's context does.
// Start reading at: NewDialer.
package tcp

import (
	"net"
	"time"
)

// NewDialer returns a dialer. The kernel ends a connection whose peer does not answer the
// probes of keepAlive, or acknowledges nothing for that long: while data are on the way, there
// are no probes. Systems other than Linux have the probes alone; no task runs there.
func NewDialer(keepAlive net.KeepAliveConfig, unacknowledged time.Duration) *net.Dialer {
	return &net.Dialer{Control: limitUnacknowledged(unacknowledged), KeepAliveConfig: keepAlive}
}
