// Package inflight counts operations in progress, so that a Close can refuse new ones and wait for the others.
//
// Never does: end an operation.
// Start reading at: Group.
package inflight

import "sync"

// Group counts operations in progress. The zero value is ready for use.
type Group struct {
	mu     sync.Mutex
	closed bool
	active sync.WaitGroup
}

// Begin counts an operation until end is called. ok is false after Close.
func (g *Group) Begin() (end func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false
	}
	g.active.Add(1)
	return g.active.Done, true
}

// Close makes Begin fail. first reports whether this is the first call; wait returns when no operation is in progress.
func (g *Group) Close() (first bool, wait func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	first, g.closed = !g.closed, true
	return first, g.active.Wait
}
