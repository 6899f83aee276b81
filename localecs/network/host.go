package network

import (
	"fmt"
	"net"
	"time"
)

const dialTimeout = 5 * time.Second

// checkLoopback checks by a connection that loopback addresses work: where the interface is down, listening may still
// succeed.
func checkLoopback(gateway Addressing) error {
	l, err := net.Listen("tcp4", net.JoinHostPort(gateway.IP.String(), "0"))
	if err == nil {
		defer l.Close()
		var c net.Conn
		if c, err = net.DialTimeout("tcp4", l.Addr().String(), dialTimeout); err == nil {
			c.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("host networking needs the loopback interface, up and with all of %s: %w", loopback, err)
	}
	return nil
}

// share returns the network of this process, shared by tasks and the simulator.
func (f *Fabric) share(a Addressing) *Namespace {
	n := &Namespace{Addressing: a, ports: &f.ports}
	n.close = func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		f.ports.Release(n.claimed...)
		return nil
	}
	return n
}
