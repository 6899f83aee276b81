package broker

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/netip"
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
	// backend.CheckCeiling; nil where the backend alone decides.
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
	opt       Options
	audit     *audit
	addresses *addresses
	refusals  *refusals
	pusher    pusher
	// leadership is nil while the broker does not lead.
	leadership atomic.Pointer[leadership]
	// leader is the URL of the broker that leads, empty if it names none; nil if none leads.
	leader atomic.Pointer[string]
	// faults are those of calls of ECS, unnamed those of proxies, and unwritten those of the
	// audit log.
	faults, unnamed, unwritten retry.Causes
}

// New makes a broker that does nothing until lead.
func New(o Options) *Broker {
	b := &Broker{opt: o, pusher: newPusher(o.Dial), addresses: newAddresses(addressRate, addressBurst),
		refusals: newRefusals()}
	b.audit = newAudit(o.Audit, o.BackendName, func(err error) {
		b.opt.Metrics.auditFailures.Add(1)
		if b.unwritten.Level(err) == hclog.Warn { // a new cause, or a reminder
			b.opt.Log.Error("the audit log cannot be written: no tokens until it can", logkey.Error, err)
		}
	})
	return b
}

// auditable returns an error while the audit log cannot be written.
func (b *Broker) auditable() error {
	if err := b.audit.resume(); err != nil {
		return later(http.StatusServiceUnavailable, "audit", busyPause,
			"the broker cannot write its audit log: no tokens until it can").because(err)
	}
	return nil
}

// lead answers requests until the context ends, or another broker is found to have
// written a record. All handles end with it. It must not be called twice at once.
func (b *Broker) lead(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	records, err := b.opt.Store.Load(ctx)
	if err != nil {
		return err
	}
	lead := b.newLeadership(ctx, stop, records)
	defer func() {
		lead.jobs.wait()
		b.opt.Metrics.tokens.Set(0) // the next leader counts them
	}()
	b.leadership.Store(lead)
	b.opt.Metrics.leader.Set(1)
	b.opt.Log.Info("leadership acquired", logkey.Tasks, len(records))
	defer func() {
		b.leadership.Store(nil)
		b.opt.Metrics.leader.Set(0)
	}()
	lead.jobs.serve(ctx, sweeper{lead}.resume, sweeper{lead}.run)
	return context.Cause(ctx)
}

// notDescribed logs a call of ECS that failed. Tasks wait for less time than a call may take.
func (b *Broker) notDescribed(err error) {
	b.opt.Log.Log(b.faults.Level(err), "ECS does not describe tasks", logkey.Error, err)
}

// leadership is the state of a broker while it leads.
type leadership struct {
	broker  *Broker
	opt     *Options
	lookups *lookups
	jobs    *jobs
	table   *taskTable
	records *recorder
	alarms  *alarms
	revoker *revoker
}

// newLeadership makes a leadership that knows the stored records.
func (b *Broker) newLeadership(ctx context.Context, stop context.CancelCauseFunc, stored []Record) *leadership {
	l := &leadership{broker: b, opt: &b.opt, jobs: newJobs(ctx), table: newTaskTable(), alarms: &alarms{}}
	l.records = &recorder{store: b.opt.Store, table: l.table, writer: rand.Text(), stop: stop}
	l.revoker = &revoker{
		opt: l.opt, audit: b.audit, table: l.table, records: l.records, jobs: l.jobs, alarms: l.alarms,
		firstSlots: make(slots, revokesAtOnce), laterSlots: make(slots, laterRevokesAtOnce), claimed: map[string]bool{},
	}
	l.lookups = newLookups(b.opt.Source, l.jobs.start, func() { b.opt.Metrics.describes.Add(1) }, b.notDescribed)
	for _, r := range stored {
		e := newEntry(Record{TaskARN: r.TaskARN, Cluster: r.Cluster})
		l.table.setRecord(e, r)
		l.table.tasks[r.TaskARN] = e
	}
	return l
}
