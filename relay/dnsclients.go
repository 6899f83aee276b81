package relay

import (
	"net"
	"slices"
	"sync"
)

// clients are the connections over TCP.
type clients struct {
	mu sync.Mutex
	// pending are the queries of each that wait for an answer, and idle those without any, the one
	// that has been idle longest first.
	pending map[net.Conn]int
	idle    []net.Conn
	// wanted reports that a new connection waits for a place.
	wanted bool
}

// add adds queries to those of a connection that wait for an answer, or takes some away.
func (c *clients) add(conn net.Conn, queries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[conn] += queries
	c.idle = slices.DeleteFunc(c.idle, func(other net.Conn) bool { return other == conn })
	if c.pending[conn] == 0 {
		c.idle = append(c.idle, conn)
		c.close()
	}
}

// remove forgets a connection.
func (c *clients) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, conn)
	c.idle = slices.DeleteFunc(c.idle, func(other net.Conn) bool { return other == conn })
	c.wanted = false
}

// evict closes the connection that has been idle longest, or the next that becomes idle.
func (c *clients) evict() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = true
	c.close()
}

// close closes a connection if a place is wanted and one is idle.
func (c *clients) close() {
	if c.wanted && len(c.idle) > 0 {
		c.idle[0].Close()
		c.idle, c.wanted = c.idle[1:], false
	}
}
