package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/controller/wanted"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// TTL is how long a lease lasts after a renewal. It is the shortest that
	// Consul takes (session_ttl_min).
	TTL = 10 * time.Second
	// LockDelay is how long Consul gives the lock to no session after it has
	// invalidated the session that held it. It is longer than TTL: even a session
	// that ended right after a renewal leaves no two leaders.
	LockDelay = 15 * time.Second
	// TakeOver is how long a leader that was killed is missed at most: two TTL
	// until Consul ends its session, the lock's delay, and a pause. The rest is
	// for slow requests.
	TakeOver = 2*TTL + LockDelay + 5*time.Second

	// watch is the longest that a read waits for a change of the key.
	watch = 5 * time.Second
	// contendPause lies between two attempts to lock the key while its delay
	// lasts, give or take a quarter.
	contendPause = time.Second
	// requestLimit bounds each of the lock's requests: a client for large lists
	// may wait for longer than a standby can.
	requestLimit = 10 * time.Second
	// releaseLimit bounds the end: the command has 5 s for everything.
	releaseLimit = 2 * time.Second
)

// Options are what a lock needs.
type Options struct {
	// Client is of consulutil.NewClient, with Guard's transport or without.
	Client *api.Client
	// Key is the KV key, see Key.
	Key string
	// Partition is the admin partition of key and session, in its namespace
	// default; empty without Consul Enterprise.
	Partition string
	// Holder is the value of the key: it names the leader for operators.
	Holder string
	Guard  *Guard
	Log    hclog.Logger
}

// Key is the key of a cluster's lock. Partition is that of the controller's
// objects, empty without Consul Enterprise; the key itself is in the default
// partition, as the controller's may not exist yet.
func Key(clusterARN, partition string) string {
	if partition != "" {
		clusterARN += "/" + partition
	}
	return wanted.KeyPrefix + "controller/" + clusterARN + "/leader"
}

// Lock is the lock of one cluster. Lead may be called again after it has
// returned, and by one goroutine at a time.
type Lock struct {
	Options
	session string // of the last time, if it may be alive
}

// New does no I/O.
func New(o Options) *Lock { return &Lock{Options: o} }

// Lead waits for the lock, calls lead while this process holds it, and unlocks
// it. The context of lead ends with the lease. While another process
// leads, standby is called with its name about every 5 s; an error of it ends the wait. The
// result is that error, the context's, one of Consul (consulutil.Classify), a
// *LostError, or lead's.
func (l *Lock) Lead(ctx context.Context, standby func(holder string) error, lead func(context.Context) error) error {
	if err := l.acquire(ctx, standby); err != nil {
		if ctx.Err() != nil && l.session != "" {
			l.release(ctx) // it may have got the lock, and not heard of it
		}
		return err
	}
	return l.hold(ctx, lead)
}

// acquire returns when this process has the lock and the guard its lease.
func (l *Lock) acquire(ctx context.Context, standby func(string) error) error {
	var index uint64
	for {
		pair, next, err := l.read(ctx, index)
		if err != nil {
			return err
		}
		if next < index { // the servers were restored: begin anew
			next = 0
		}
		index = next
		if pair != nil && pair.Session != "" && pair.Session != l.session {
			if err := standby(string(pair.Value)); err != nil {
				return err
			}
			continue
		}
		if ok, err := l.contend(ctx); ok || err != nil {
			return err
		}
		index = 0
		if err := retry.Sleep(ctx, contendPause*3/4+rand.N(contendPause/2)); err != nil {
			return err
		}
	}
}

// contend tries once to lock the key, within requestLimit. It fails while the
// lock's delay lasts, or when another was quicker.
func (l *Lock) contend(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	sent := l.Guard.clock()
	if l.session != "" {
		known, err := l.renewSession(ctx)
		if err != nil {
			return false, err
		}
		if !known {
			l.session = ""
		}
	}
	if l.session == "" {
		// Without the checks that Consul adds by itself: the session would end
		// with the server that made it.
		id, _, err := l.Client.Session().CreateNoChecks(&api.SessionEntry{
			Name:      "consul-ecs controller",
			TTL:       TTL.String(),
			LockDelay: LockDelay,
			Behavior:  api.SessionBehaviorRelease,
		}, l.write(ctx))
		if err != nil {
			return false, fmt.Errorf("make the leader's session: %w", explain(err, wanted.SessionRule))
		}
		l.session = id
	}
	ok, _, err := l.Client.KV().Acquire(&api.KVPair{Key: l.Key, Value: []byte(l.Holder), Session: l.session}, l.write(ctx))
	if err != nil {
		return false, fmt.Errorf("lock %q: %w", l.Key, explain(err, wanted.KeyRule))
	}
	if ok {
		l.Guard.begin(sent + TTL)
	}
	return ok, nil
}

// read reads the key. With an index of an earlier read it waits for a change,
// about 5 s at most.
func (l *Lock) read(ctx context.Context, index uint64) (*api.KVPair, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	q := (&api.QueryOptions{WaitIndex: index, WaitTime: watch, Partition: l.Partition, Namespace: l.namespace()}).WithContext(ctx)
	pair, meta, err := l.Client.KV().Get(l.Key, q)
	if err != nil {
		return nil, 0, fmt.Errorf("read the lock %q: %w", l.Key, explain(err, wanted.KeyRule))
	}
	return pair, meta.LastIndex, nil
}

// renewSession reports whether Consul still knows the session. Raw, as the API
// client's own renewal does not distinguish a refusal from a fault.
func (l *Lock) renewSession(ctx context.Context) (known bool, err error) {
	_, err = l.Client.Raw().Write("/v1/session/renew/"+l.session, nil, nil, l.write(ctx))
	switch {
	case consulutil.Classify(err) == retry.Gone:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("renew the leader's session: %w", explain(err, wanted.SessionRule))
	}
	return true, nil
}

// write are the options of the lock's own writes.
func (l *Lock) write(ctx context.Context) *api.WriteOptions {
	o := &api.WriteOptions{Partition: l.Partition, Namespace: l.namespace()}
	return o.WithContext(context.WithValue(ctx, ownRequest{}, true))
}

func (l *Lock) namespace() string {
	if l.Partition == "" {
		return ""
	}
	return "default"
}

// explain says what to do about a refusal of Consul.
func explain(err error, rule string) error { return consulutil.Advise(consulutil.Needs(err, rule)) }
