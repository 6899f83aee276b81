package network

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// dialTimeout is for a connection to this very process.
const dialTimeout = 5 * time.Second

// shared is the host's network, which all tasks and the simulator share.
type shared struct{ book Book }

// newShared makes sure that there are loopback addresses. A connection is the
// test: where the interface is down, listening may do all the same.
func newShared(gateway Addressing) (*shared, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort(gateway.IP.String(), "0"))
	if err == nil {
		defer l.Close()
		var c net.Conn
		if c, err = net.DialTimeout("tcp4", l.Addr().String(), dialTimeout); err == nil {
			c.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("host networking needs the loopback interface, up and with all of %s: %w", loopback, err)
	}
	return &shared{}, nil
}

func (s *shared) infra() place { return &outside{shared: s} }

// add has nothing to do: Linux answers at every loopback address.
func (s *shared) add(netip.Addr) error { return nil }

func (s *shared) attach(string, Addressing) (place, *Task, func() error, error) {
	o := &outside{shared: s}
	return o, nil, o.release, nil
}

func (s *shared) close() error { return nil }

// outside is the namespace of this process, as one task or the simulator uses
// it.
type outside struct {
	shared *shared

	mu      sync.Mutex
	claimed []Port
}

func (o *outside) file() *os.File { return nil }

func (o *outside) do(fn func() error) error { return fn() }

// listenMetadata listens at the one loopback address that every AWS SDK takes
// for credentials: the one for JavaScript knows no other (GREENGRASS_HOSTS in
// its container provider).
func (o *outside) listenMetadata() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

func (o *outside) servicePort() string { return "0" }

func (o *outside) reserve(p Port, owner string) error {
	if err := o.shared.book.Take(p, owner); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claimed = append(o.claimed, p)
	return nil
}

func (o *outside) release() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shared.book.Release(o.claimed...)
	return nil
}
