package relay

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// dialled makes connections to nothing, or fails.
type dialled struct {
	mu    sync.Mutex
	count int
	err   error
	takes time.Duration
}

// connect makes a connection.
func (d *dialled) connect(ctx context.Context, _ string) (*http.ClientConn, error) {
	d.mu.Lock()
	d.count++
	err, takes := d.err, d.takes
	d.mu.Unlock()
	<-time.After(takes)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	go func() {
		buf := make([]byte, 1024)
		for _, err := far.Read(buf); err == nil; _, err = far.Read(buf) {
		}
	}()
	return newTransport(near, time.Hour).NewClientConn(ctx, "http", "server:8502")
}

// TestConnectionsAreShared: by queries that come while it is made, and later.
func TestConnectionsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &dialled{takes: time.Second}
		l := newLinks(d.connect)
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				if _, _, err := l.get(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		conn, fresh, err := l.get(t.Context(), "a")
		if err != nil || fresh {
			t.Errorf("another one, %v", err)
		}
		if d.count != 1 {
			t.Errorf("%d connections for 101 queries", d.count)
		}
		<-time.After(idleAfter)
		synctest.Wait()
		if conn.Err() == nil {
			t.Error("the connection is kept without queries")
		}
		if _, fresh, err := l.get(t.Context(), "a"); err != nil || !fresh {
			t.Errorf("after that: no new connection, %v", err)
		}
		l.retain(nil)
	})
}

// TestConnectionIsMadeAfterTheQueryHasEnded: the next query has it.
func TestConnectionIsMadeAfterTheQueryHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLinks((&dialled{takes: 2 * time.Second}).connect)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := l.get(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if _, fresh, err := l.get(t.Context(), "a"); err != nil || fresh {
			t.Errorf("no connection, or another one: %v", err)
		}
		l.retain(nil)
	})
}

// TestRefusedConnectionsAreRare: whatever clients ask, for an hour.
func TestRefusedConnectionsAreRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &dialled{err: errors.New("connection refused")}
		l := newLinks(d.connect)
		for range 36000 {
			if _, _, err := l.get(t.Context(), "a"); !errors.Is(err, d.err) {
				t.Fatalf("got %v", err)
			}
			<-time.After(100 * time.Millisecond)
		}
		t.Logf("%d connections in an hour of 10 queries a second", d.count)
		if most := int(2*time.Hour/mostRest) + 20; d.count > most {
			t.Errorf("%d connections, more than %d", d.count, most)
		}
		d.err = nil
		<-time.After(mostRest)
		if _, _, err := l.get(t.Context(), "a"); err != nil {
			t.Errorf("the server is not tried again: %v", err)
		}
		l.retain(nil)
	})
}

// TestConnectionsToRemovedServersEnd: those that are being made, too.
func TestConnectionsToRemovedServersEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLinks((&dialled{takes: time.Second}).connect)
		remaining, _, err := l.get(t.Context(), "remaining")
		if err != nil {
			t.Fatal(err)
		}
		removed, _, err := l.get(t.Context(), "removed")
		if err != nil {
			t.Fatal(err)
		}
		var late *http.ClientConn
		var waiting sync.WaitGroup
		waiting.Go(func() { late, _, _ = l.get(t.Context(), "late") })
		synctest.Wait()
		l.retain([]string{"remaining"})
		waiting.Wait()
		synctest.Wait()
		if remaining.Err() != nil {
			t.Errorf("the connection to a server that remains has ended: %v", remaining.Err())
		}
		if removed.Err() == nil {
			t.Error("the connection to a removed server is kept")
		}
		if late != nil && late.Err() == nil {
			t.Error("a connection that was made after its server's removal is kept")
		}
		l.retain(nil)
	})
}
