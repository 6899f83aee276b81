package cluster

import (
	"errors"
	"sync"
)

// ErrClosed means that what was to begin came after Close.
var ErrClosed = errors.New("the cluster is closed")

// Gate counts what has begun. The zero value is open.
type Gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

// Enter begins something, which ends with leave, called once. The error is ErrClosed.
func (g *Gate) Enter() (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	g.inside.Add(1)
	return g.inside.Done, nil
}

// Close lets nothing begin any more. wait returns when all that has begun has ended.
func (g *Gate) Close() (wait func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return g.inside.Wait
}
