package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// handleTTL is the life of a handle, and so how long the broker pushes it.
	handleTTL = 120 * time.Second
	// overlap is how long the earlier token lives after the task has confirmed a rotation.
	overlap = 10 * time.Second
	// sweepInterval is how often ECS is asked about the tasks of all tokens. A token ends
	// within two of them after ECS has shown its task as stopped.
	sweepInterval = time.Minute
	// redeemLimit is how long the redemption may be missing after the push was answered
	// with 200.
	redeemLimit = 10 * time.Second
	// clockGrace is how long a record outlives its token: the clock of the broker that made
	// the token may differ from this one's.
	clockGrace = 10 * time.Minute
	// alarmPause is the time between two alarms of one cause.
	alarmPause = time.Hour
	// retention is how long the status of a finished request can be read.
	retention = 10 * time.Minute
)

// Options are what a Broker needs. Rules have clusters, networks, policies, and valid patterns.
type Options struct {
	Rules  Rules
	Source TaskSource
	// Backend makes the tokens, and BackendName is its name for tasks and the audit log.
	Backend     backend.Backend
	BackendName string
	// Ceiling returns an error for policies that are missing or too powerful, as
	// backend.UnderCeiling; nil where the backend alone decides.
	Ceiling func(ctx context.Context, policies []string) error
	Store   Store
	// Dial connects to tasks.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TrustedProxies may send requests for tasks. X-Forwarded-For, if they send it, has
	// the task's address last.
	TrustedProxies []netip.Prefix
	// AllowUnknownAddress permits requests of TrustedProxies without X-Forwarded-For: their
	// address is not compared with the task's.
	AllowUnknownAddress bool
	// AllowUnsealed permits requests without a key, and GET /token.
	AllowUnsealed bool
	// Audit gets one line of JSON per transition.
	Audit   io.Writer
	Metrics *Metrics
	Log     hclog.Logger
}

// Broker answers requests while it leads. Its methods are safe for concurrent use.
type Broker struct {
	Options
	audit     *audit
	addresses *addresses
	refusals  *refusals
	pusher    pusher
	term      atomic.Pointer[term]
	// leader is the URL of the broker that leads, empty if it names none; nil if none leads.
	leader atomic.Pointer[string]
	// faults are those of calls of ECS, unnamed those of proxies, and unwritten those of the
	// audit log.
	faults, unnamed, unwritten retry.Causes
}

// New makes a broker that does nothing until lead.
func New(o Options) *Broker {
	b := &Broker{Options: o, pusher: newPusher(o.Dial), addresses: newAddresses(addressRate, addressBurst), refusals: newRefusals()}
	b.audit = newAudit(o.Audit, o.BackendName, func(err error) {
		b.Metrics.auditFailures.Add(1)
		if b.unwritten.Level(err) == hclog.Warn { // a new cause, or a reminder
			b.Log.Error("the audit log cannot be written: no tokens until it can", logkey.Error, err)
		}
	})
	return b
}

// auditable returns an error while the audit log cannot be written.
func (b *Broker) auditable() error {
	if err := b.audit.resume(); err != nil {
		return later(http.StatusServiceUnavailable, "audit", busyPause, "the broker cannot write its audit log: no tokens until it can").because(err)
	}
	return nil
}

// lead answers requests until the context ends, or another broker is found to have
// written a record. All handles end with it. It must not be called twice at once.
func (b *Broker) lead(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	records, err := b.Store.Load(ctx)
	if err != nil {
		return err
	}
	t := &term{
		Broker: b, jobs: make(chan func(context.Context)), done: ctx.Done(), stop: stop,
		id: rand.Text(), tasks: map[string]*entry{}, requests: map[string]*request{}, holders: map[string]*entry{}, alarmed: map[string]time.Time{},
		revoking: map[string]bool{}, firstTurns: make(turns, revokesAtOnce), laterTurns: make(turns, laterRevokesAtOnce),
	}
	t.lookups = newLookups(b.Source, t.run, func() { b.Metrics.describes.Add(1) }, b.notDescribed)
	for _, r := range records {
		e := newEntry(Record{TaskARN: r.TaskARN, Cluster: r.Cluster})
		t.keep(e, r)
		t.tasks[r.TaskARN] = e
	}
	var running sync.WaitGroup
	defer func() {
		running.Wait()
		b.Metrics.tokens.Set(0) // the next leader counts them
	}()
	running.Go(func() { t.resume(ctx) })
	running.Go(func() {
		for retry.Sleep(ctx, sweepInterval) == nil {
			t.sweep(ctx)
		}
	})
	b.term.Store(t)
	b.Metrics.leader.Set(1)
	b.Log.Info("leadership acquired", logkey.Tasks, len(records))
	defer func() {
		b.term.Store(nil)
		b.Metrics.leader.Set(0)
	}()
	for {
		select {
		case job := <-t.jobs:
			running.Go(func() { job(ctx) })
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// notDescribed logs a call of ECS that failed. Tasks wait for less time than a call may take.
func (b *Broker) notDescribed(err error) {
	b.Log.Log(b.faults.Level(err), "ECS does not describe tasks", logkey.Error, err)
}

// term is the state of a broker while it leads.
type term struct {
	*Broker
	lookups *lookups
	// jobs run until the term ends, even if the request that started them has ended.
	jobs chan func(context.Context)
	done <-chan struct{}
	stop context.CancelCauseFunc
	// id is in the records that this term has written.
	id string

	mu       sync.Mutex
	tasks    map[string]*entry
	requests map[string]*request
	holders  map[string]*entry    // of tokens, by the hashes of their secrets
	alarmed  map[string]time.Time // when an alarm of a key was given, see due
	revoking map[string]bool      // requests whose token a job revokes

	// firstTurns are for revocations that were requested within revokeQuick, laterTurns for the
	// others, so that those that are refused for long do not hold them back.
	firstTurns, laterTurns turns
}

// run starts a job. It returns false when the term has ended.
func (t *term) run(job func(context.Context)) bool {
	select {
	case t.jobs <- job:
		return true
	case <-t.done:
		return false
	}
}

// ended reports whether the term has ended.
func (t *term) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// save changes a task's record and writes it. When another broker has written it, this
// one leads no longer.
func (t *term) save(ctx context.Context, e *entry, change func(*Record)) error {
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer e.release()
	return t.write(ctx, e, change)
}

// write is save for a caller that has acquired the entry.
func (t *term) write(ctx context.Context, e *entry, change func(*Record)) error {
	err := t.tryWrite(ctx, e, change)
	if errors.Is(err, ErrStale) && e.unsure { // the write whose answer was lost has landed only now
		err = t.tryWrite(ctx, e, change)
	}
	if errors.Is(err, ErrStale) {
		t.stop(err)
	}
	return err
}

func (t *term) tryWrite(ctx context.Context, e *entry, change func(*Record)) error {
	if e.unsure {
		if err := t.reread(ctx, e); err != nil {
			return err
		}
	}
	t.mu.Lock()
	next := e.record.Clone()
	t.mu.Unlock()
	change(&next)
	if slices.Equal(next.Tokens, e.record.Tokens) {
		return nil
	}
	next.Writer = t.id
	var err error
	if next.Version, err = t.Store.Save(ctx, next); err != nil {
		e.unsure = e.unsure || !errors.Is(err, ErrStale)
		return err
	}
	e.unsure = false
	t.keep(e, next)
	return nil
}

// reread takes over what is stored if this term has written it: then a write has landed
// whose answer was lost. A record that is gone has no writer; what is saved in its place is
// saved under the lock only.
func (t *term) reread(ctx context.Context, e *entry) error {
	stored, err := t.Store.Read(ctx, e.record.TaskARN)
	switch {
	case err != nil:
		return err
	case stored.Version == e.record.Version:
		return nil
	case stored.Version != 0 && stored.Writer != t.id:
		return ErrStale
	}
	t.keep(e, stored)
	return nil
}

// keep sets a task's record to what is stored.
func (t *term) keep(e *entry, stored Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range e.record.Tokens {
		delete(t.holders, k.SecretHash)
	}
	for _, k := range stored.Tokens {
		if k.SecretHash != "" {
			t.holders[k.SecretHash] = e
		}
	}
	e.record.Tokens, e.record.Version = stored.Tokens, stored.Version
}
