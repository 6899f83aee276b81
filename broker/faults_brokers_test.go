package broker

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// brokerSkew is the difference of the clocks of two brokers.
	brokerSkew = 3 * time.Second
	// mostUnnoticed is how long a broker may not notice that it has lost the lock.
	mostUnnoticed = 15 * time.Second
)

// brokerProcess is one process of the broker, which crashes at any of its steps: from then on
// nothing of it has an effect. Of two the one that leads also loses the lock at any step.
type brokerProcess struct {
	s       *schedule
	url     string
	skew    time.Duration // of its clock
	handler http.Handler
	stop    func()
	dead    atomic.Bool
	kill    func()

	mu    sync.Mutex
	known map[string]bool // accessors whose secret the process knows
}

// startBroker starts a process, which is started again when it was killed.
func (s *schedule) startBroker(place int) {
	p := &brokerProcess{
		s: s, url: fmt.Sprintf("https://broker-%d", place), skew: s.skew + time.Duration(place)*brokerSkew,
		known: map[string]bool{},
	}
	o := s.options
	o.Source, o.Backend, o.Store, o.Dial = p, p, p, p.dial
	p.kill = sync.OnceFunc(func() {
		s.mu.Lock()
		stop := p.stop
		s.mu.Unlock()
		stop()
		s.chance.pause(3 * time.Second)
		s.startBroker(place)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	var b *Broker
	b, p.stop = runBroker(s.t, o, p)
	p.handler = b.Handler()
	s.brokers[place] = p
}

// serving returns the process that gets the requests to a host.
func (s *schedule) serving(host string) *brokerProcess {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.brokers, func(p *brokerProcess) bool { return p.url == "https://"+host }); i >= 0 {
		return s.brokers[i]
	}
	if len(s.brokers) == 1 {
		return s.brokers[0]
	}
	return s.brokers[s.chance.n(len(s.brokers))]
}

// step may kill the process, or take the lock from it. It returns an error if the process
// is dead.
func (p *brokerProcess) step() error {
	c, steps := p.s.chance, 400/(len(p.s.brokers)*len(p.s.brokers))
	if !p.dead.Load() && c.oneIn(steps) {
		dies := len(p.s.brokers) == 1 || c.n(2) == 0
		if dies || !p.s.lock.handOver(p, nil) {
			p.dead.Store(true)
			go p.kill()
		}
	}
	if p.dead.Load() {
		return &backend.Error{Op: "act", Err: consulutil.WithClass(errFault, retry.Permanent)}
	}
	return nil
}

// lock is that of the leader.
type lock struct {
	mu      sync.Mutex
	holder  *brokerProcess
	changed chan struct{} // closed by the next change
}

// handOver gives the lock from a holder to another one, or returns false if it has another one.
func (l *lock) handOver(from, to *brokerProcess) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder != from {
		return false
	}
	if l.changed != nil {
		close(l.changed)
	}
	l.holder, l.changed = to, make(chan struct{})
	return true
}

func (l *lock) state() (holder *brokerProcess, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder, l.changed
}

func (l *lock) heldBy(p *brokerProcess) bool {
	holder, _ := l.state()
	return holder == p
}

// Lead implements Elector.
func (p *brokerProcess) Lead(ctx context.Context, standby func(string) error, lead func(context.Context) error) error {
	l := &p.s.lock
	for !l.handOver(nil, p) {
		holder, changed := l.state()
		if holder == nil {
			continue
		}
		if err := standby(holder.url); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer l.handOver(p, nil)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for {
			holder, changed := l.state()
			if holder != p {
				_ = retry.Sleep(ctx, time.Duration(p.s.chance.n(int(mostUnnoticed))))
				cancel(&consulutil.LeadershipLostError{Err: errFault})
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lead(ctx)
}

// shift moves the times of tokens by the skew of a clock.
func shift(tokens []IssuedToken, skew time.Duration) {
	for i := range tokens {
		if !tokens[i].Expires.IsZero() {
			tokens[i].Expires = tokens[i].Expires.Add(skew)
		}
	}
}

// recorded reports whether the store has a token.
func (s *schedule) recorded(accessor string) bool {
	records, err := s.store.Load(context.Background())
	return err == nil && slices.ContainsFunc(records, func(r Record) bool {
		return slices.ContainsFunc(r.Tokens, func(k IssuedToken) bool { return k.Accessor == accessor })
	})
}
