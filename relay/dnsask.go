package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// askLimit bounds a query at the servers. Clients ask the next name server after 5 s,
	// mesh-init and health-sync after 2 s.
	askLimit = 1500 * time.Millisecond
	// shortLimit bounds the wait for an answer while no server is known to answer.
	shortLimit = 150 * time.Millisecond
	// anotherAfter is how long a server has until the next one gets the query, too.
	anotherAfter = 500 * time.Millisecond
	// lastFor is how long a server that was late, or did not answer, is the last to be asked.
	lastFor = 30 * time.Second
)

// errNoServer is why nothing was asked.
var errNoServer = errors.New("no Consul server is known yet")

// asker asks the servers, one after the other.
type asker struct {
	// known returns the addresses of the servers, the one to ask first; none while none is known.
	known func() []string
	// exchange asks one server. The error is nil when the server gave a valid answer.
	exchange func(ctx context.Context, address string, q query) (reply, error)
	// silent reports that no server has answered since a query was in vain.
	silent atomic.Bool

	mu   sync.Mutex
	late map[string]time.Time
}

// reply is what a server answered: a message, or that it refuses the query.
type reply struct {
	message []byte
	code    dnsmessage.RCode
	refusal error
}

// serves reports whether the server could do what was asked. Another one may: it knows the token
// earlier, or has another version.
func (r reply) serves() bool { return r.refusal == nil && r.code != dnsmessage.RCodeServerFailure }

// limit returns how long a client should wait for an answer of the servers.
func (a *asker) limit() time.Duration {
	if a.silent.Load() {
		return shortLimit
	}
	return askLimit
}

// outcome is how an attempt with one server ended.
type outcome struct {
	address string
	reply   reply
	err     error
}

// ask returns the first answer of a server that can serve, or the last of those that cannot.
// The next server is asked when one fails, or is late.
func (a *asker) ask(ctx context.Context, q query) (reply, error) {
	servers := a.order(a.known(), time.Now())
	if len(servers) == 0 {
		return reply{}, errNoServer
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	outcomes := make(chan outcome, len(servers))
	pending, next := 0, 0
	begin := func() {
		if next == len(servers) {
			return
		}
		address := servers[next]
		pending, next = pending+1, next+1
		go func() {
			got, err := a.exchange(ctx, address, q)
			outcomes <- outcome{address, got, err}
		}()
	}
	begin()
	late := time.NewTicker(anotherAfter)
	defer late.Stop()
	last := outcome{err: errors.New("no Consul server has answered in time")}
	for pending > 0 {
		select {
		case o := <-outcomes:
			pending--
			switch {
			case a.record(o):
				return o.reply, nil
			case ctx.Err() == nil:
				last = worse(last, o)
				begin()
			}
		case <-late.C:
			a.putLast(servers[next-1])
			begin()
		case <-ctx.Done():
			pending = 0
		}
	}
	if last.err != nil {
		a.silent.Store(true)
	}
	return last.reply, last.err
}

// worse returns what is to be reported of two outcomes that do not serve: an answer, or else
// the later error.
func worse(last, o outcome) outcome {
	if o.err != nil && last.err == nil {
		return last
	}
	return o
}

// record records an outcome, and reports whether it serves.
func (a *asker) record(o outcome) bool {
	if o.err == nil {
		a.silent.Store(false)
	}
	if o.err != nil || !o.reply.serves() {
		a.putLast(o.address)
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.late, o.address)
	return true
}

// putLast moves a server behind the others for some time.
func (a *asker) putLast(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.late == nil {
		a.late = map[string]time.Time{}
	}
	a.late[address] = time.Now()
}

// order returns the servers in the order in which to ask them.
func (a *asker) order(known []string, now time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var first, last []string
	for _, address := range known {
		if at, late := a.late[address]; late && now.Sub(at) < lastFor {
			last = append(last, address)
			continue
		}
		first = append(first, address)
	}
	for address := range a.late {
		if !slices.Contains(known, address) {
			delete(a.late, address)
		}
	}
	return append(first, last...)
}
