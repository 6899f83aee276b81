package relay

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// idleAfter is how long a connection is kept without a query.
	idleAfter = time.Minute
	// leastRest and mostRest bound the time in which a server that could not be reached is not
	// tried again: clients ask at any rate.
	leastRest, mostRest = 250 * time.Millisecond, 15 * time.Second
)

// links are the connections to servers, by address.
type links struct {
	// connect makes a connection, within its own limit.
	connect func(ctx context.Context, address string) (*http.ClientConn, error)

	mu  sync.Mutex
	all map[string]*link
}

// link is the connection to one server.
type link struct {
	conn *http.ClientConn
	idle *time.Timer // closes conn
	// made is closed when the connection that is being made is there, or has failed; nil while
	// none is.
	made chan struct{}
	// failure is why the last one could not be made; none is tried until rest.
	failure error
	rest    time.Time
	pauses  retry.Backoff
}

// newLinks returns links without a connection.
func newLinks(connect func(ctx context.Context, address string) (*http.ClientConn, error)) *links {
	return &links{connect: connect, all: map[string]*link{}}
}

// get returns a connection to the server, and reports whether it was made for this call. All
// calls wait for the same one. It continues to be made when ctx ends.
func (l *links) get(ctx context.Context, address string) (conn *http.ClientConn, fresh bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.all[address]
	if k == nil {
		k = &link{pauses: retry.Backoff{Base: leastRest, Max: mostRest}}
		l.all[address] = k
	}
	if k.conn != nil && k.conn.Err() == nil {
		k.idle.Reset(idleAfter)
		return k.conn, false, nil
	}
	if k.made == nil && time.Now().Before(k.rest) {
		return nil, false, k.failure
	}
	if k.made == nil {
		k.made = make(chan struct{})
		go l.make(context.WithoutCancel(ctx), address, k)
	}
	made := k.made
	l.mu.Unlock()
	select {
	case <-made:
	case <-ctx.Done():
	}
	l.mu.Lock()
	switch {
	case ctx.Err() != nil:
		return nil, true, ctx.Err()
	case k.failure != nil:
		return nil, true, k.failure
	}
	return k.conn, true, nil
}

// make makes the connection of a link.
func (l *links) make(ctx context.Context, address string, k *link) {
	conn, err := l.connect(ctx, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(k.made)
	k.made, k.conn, k.failure = nil, conn, err
	if err != nil {
		k.rest = time.Now().Add(k.pauses.Next())
		return
	}
	k.pauses.Reset()
	if l.all[address] != k { // the server was removed meanwhile
		conn.Close()
		return
	}
	k.idle = time.AfterFunc(idleAfter, func() { conn.Close() })
}

// retain closes the connections to other servers than these.
func (l *links) retain(addresses []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for address, k := range l.all {
		if !slices.Contains(addresses, address) {
			k.close()
			delete(l.all, address)
		}
	}
}

// close closes the connection, if there is one.
func (k *link) close() {
	if k.conn != nil {
		k.idle.Stop()
		k.conn.Close()
	}
}
