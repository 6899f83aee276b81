package consulutil

import (
	"net"
	"time"
)

const (
	// silenceLimit is how long a server may acknowledge nothing. The address of one that was
	// terminated answers nothing, and a request that may not be sent twice would wait for its
	// whole time.
	silenceLimit = 5 * time.Second
	// probeAfter is the silence after which the kernel asks whether the server is there.
	probeAfter = 15 * time.Second
)

func newDialer() *net.Dialer {
	return &net.Dialer{
		Control:         limitSilence,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: silenceLimit, Count: 2},
	}
}
