package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// exchange is a listener that many share, each for the connections of one client address.
type exchange struct {
	listener net.Listener
	done     chan struct{}

	mu    sync.Mutex
	lines map[netip.Addr]*line
}

// newExchange owns the listener from here on, until Close.
func newExchange(l net.Listener) *exchange {
	e := &exchange{listener: l, done: make(chan struct{}), lines: map[netip.Addr]*line{}}
	go e.run()
	return e
}

func (e *exchange) run() {
	defer close(e.done)
	for {
		c, err := e.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors; it may pass
			<-time.After(10 * time.Millisecond)
		default:
			e.connect(c)
		}
	}
}

func (e *exchange) connect(c net.Conn) {
	from, err := netip.ParseAddrPort(c.RemoteAddr().String())
	e.mu.Lock()
	l := e.lines[from.Addr().Unmap()]
	e.mu.Unlock()
	if err != nil || l == nil {
		c.Close()
		return
	}
	go l.put(c)
}

// Listen returns a listener for the connections of one address. There is one at a time.
func (e *exchange) Listen(from netip.Addr) (net.Listener, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lines[from] != nil {
		return nil, fmt.Errorf("listen at %s for %s: in use by another listener", e.listener.Addr(), from)
	}
	l := &line{exchange: e, from: from, waiting: make(chan net.Conn), closed: make(chan struct{})}
	e.lines[from] = l
	return l, nil
}

// Close ends the exchange. Listeners of Listen stay, and get nothing more.
func (e *exchange) Close() error {
	err := e.listener.Close()
	<-e.done
	return err
}

// line is what one client's connections come out of. It is a net.Listener.
type line struct {
	exchange *exchange
	from     netip.Addr
	waiting  chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *line) put(c net.Conn) {
	select {
	case l.waiting <- c:
	case <-l.closed:
		c.Close()
	}
}

// Accept implements net.Listener.
func (l *line) Accept() (net.Conn, error) {
	select {
	case c := <-l.waiting:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener; it is the same for all clients.
func (l *line) Addr() net.Addr { return l.exchange.listener.Addr() }

// Close implements net.Listener.
func (l *line) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.exchange.mu.Lock()
		defer l.exchange.mu.Unlock()
		delete(l.exchange.lines, l.from)
	})
	return nil
}
