package consulutil

import (
	"net"
	"time"

	"github.com/meshtask/consul-ecs/internal/tcp"
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
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: silenceLimit, Count: 2}
	return tcp.NewDialer(keepAlive, silenceLimit)
}
