package cluster

import (
	"errors"
	"sync"
)

// errClosed means that an operation was to begin after Close.
var errClosed = errors.New("the cluster is closed")

// operations counts operations in progress, so that Close can wait for them. The zero
// value is ready for use.
type operations struct {
	mu         sync.Mutex
	closed     bool
	inProgress sync.WaitGroup
}

// begin counts an operation until end is called. The error is ErrClosed.
func (o *operations) begin() (end func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, errClosed
	}
	o.inProgress.Add(1)
	return o.inProgress.Done, nil
}

// close makes begin fail. wait returns when no operation is in progress.
func (o *operations) close() (wait func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return o.inProgress.Wait
}
