package broker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/secret"
)

// caller is where a request comes from.
type caller struct {
	// peer is the address of the connection, and client that of the caller behind a
	// trusted proxy: not valid when the proxy does not name it.
	peer, client netip.Addr
}

// from reports whether the caller may be at an address.
func (c caller) from(ip netip.Addr) bool { return !c.known() || c.client == ip }

// known reports whether the address of the caller is known.
func (c caller) known() bool { return c.client.IsValid() }

// request is one request for a token. The table's lock guards what changes.
type request struct {
	id      string
	in      receiver.TokenRequest
	cluster awsutil.Cluster
	caller  caller
	// bearer is the hash of the current token, for a rotation.
	bearer  string
	started time.Time
	// fromTask is set when the caller is where ECS has the task.
	fromTask bool

	state    state
	subject  subject
	grant    backend.Grant
	handle   [sha256.Size]byte
	accessor string
	attempts int
	reason   string
	// claimed is set while the handle is being exchanged, and after it was.
	claimed bool
	// confirmed is set when the task has answered a push with 200.
	confirmed bool
	ended     time.Time
	// over is closed when the state is final.
	over chan struct{}
}

// entry is one task.
type entry struct {
	// saving is held during a change of the record and of the task's tokens.
	saving chan struct{}
	// unsure is set while a write may have landed whose answer was lost. The holder of
	// saving has it.
	unsure bool

	// The table's lock guards the rest, but for the task's ARN and cluster, which stay.
	record Record
	live   *request
	// unknown limits requests of callers whose address is not known: they use up no limit of
	// those that come from the task.
	requests, rotates, unknown *rate.Limiter

	nonces   map[string]time.Time
	regrants []time.Time
	unseen   time.Time // when ECS first did not know the task
	used     time.Time
}

func newEntry(r Record) *entry {
	return &entry{
		saving: make(chan struct{}, 1), record: r, used: time.Now(), nonces: map[string]time.Time{},
		requests: rate.NewLimiter(rate.Every(taskEvery), taskBurst), rotates: rate.NewLimiter(rate.Every(rotateEvery),
			rotateBurst),
		unknown: rate.NewLimiter(rate.Every(taskEvery), taskBurst),
	}
}

func (e *entry) acquire(ctx context.Context) error {
	select {
	case e.saving <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *entry) release() { <-e.saving }

// settled reports whether no write is under way or uncertain. It does not wait.
func (e *entry) settled() bool {
	select {
	case e.saving <- struct{}{}:
		defer e.release()
		return !e.unsure
	default:
		return false
	}
}

// submit verifies a request, reserves the task, and starts the delivery. Without the audit log
// there are no tokens.
func (l *leadership) submit(
	ctx context.Context, in receiver.TokenRequest, from caller, bearer secret.Value,
) (*request, error) {
	r := &request{
		id: rand.Text(), in: in, caller: from, started: time.Now(), state: state{Phase: Received},
		over: make(chan struct{}),
	}
	if !bearer.Empty() {
		r.bearer = hashOf(bearer)
	}
	err := l.identify(r)
	if err == nil {
		err = l.broker.auditable()
	}
	if err == nil {
		err = l.verify(ctx, r)
	}
	if err == nil {
		err = l.reserve(r, bearer)
	}
	if err == nil && l.opt.Ceiling != nil { // after the limits of the task, since it reads the policies
		err = l.backendRefusal(r, "compare the policies with the ceiling", l.opt.Ceiling(ctx, r.subject.policies))
	}
	if err != nil {
		l.on(r, refused, err.Error())
		return r, err
	}
	l.on(r, taskConfirmed, "")
	if err = l.broker.auditable(); err == nil {
		err = l.issue(ctx, r)
	}
	if err != nil {
		l.on(r, faulted, err.Error())
		return r, err
	}
	if !l.jobs.start((&delivery{l, r}).run) {
		l.on(r, faulted, errNotLeader.Error())
		return r, errNotLeader
	}
	return r, nil
}

// reserve makes the request the task's only one. The request does not keep the bearer.
func (l *leadership) reserve(r *request, bearer secret.Value) error {
	l.table.mu.Lock()
	ended, err := l.insert(r, bearer, time.Now())
	l.table.mu.Unlock()
	if ended != nil {
		ended()
	}
	return err
}

// insert does what reserve does, for a caller that holds mu. It returns what follows from the end of the
// request before, which is for after the lock.
func (l *leadership) insert(r *request, bearer secret.Value, now time.Time) (ended func(), err error) {
	e := l.table.tasks[r.in.TaskARN]
	if e == nil {
		e = newEntry(Record{TaskARN: r.in.TaskARN, Cluster: r.cluster.ARN})
		l.table.tasks[r.in.TaskARN] = e
	}
	e.used = now
	if err := e.admit(r, now); err != nil {
		return nil, err
	}
	if e.live != nil && e.live.state.live() {
		ended = l.change(e.live, replaced, "a later request of the task took its place")
	}
	if k, found := e.record.Proven(r.bearer); found {
		l.revoker.adopt(k, bearer)
	}
	if r.in.Nonce != nil {
		e.nonces[r.in.Nonce.String()] = now
	}
	e.live = r
	l.table.requests[r.id] = r
	return ended, nil
}

// replaceable reports whether another request of the task may take this one's place: the task
// has not answered its push.
func (r *request) replaceable() bool {
	return r.state.Phase == Pushing && !r.state.Redeemed && !r.claimed
}

// admit applies the limits of one task.
func (e *entry) admit(r *request, now time.Time) error {
	_, holds := e.record.Proven(r.bearer)
	if r.bearer != "" && !holds {
		return refuse(http.StatusUnauthorized, receiver.UnknownToken,
			"the bearer is not the task's current token: request a new one")
	}
	if _, replayed := e.nonces[r.in.Nonce.String()]; replayed && r.in.Nonce != nil {
		return refuse(http.StatusConflict, "replayed", "the nonce was used before")
	}
	if err := e.limit(r, holds, now); err != nil {
		return err
	}
	current, held := e.record.Live(now)
	if !held || holds {
		return nil
	}
	if current.Port != r.in.CallbackPort {
		return refuse(http.StatusConflict, "delivered", "the task has its token already, delivered to port %d",
			current.Port)
	}
	e.regrants = slices.DeleteFunc(e.regrants, func(at time.Time) bool { return now.Sub(at) >= regrantWindow })
	if len(e.regrants) >= maxRegrants {
		return later(http.StatusTooManyRequests, "regrants", time.Minute, "the task got %d more tokens within %s",
			maxRegrants, regrantWindow)
	}
	return nil
}

// limit bounds the requests of a task. One that comes from the task, by its address or by
// holding its token, takes the place of another that may be replaced.
func (e *entry) limit(r *request, holds bool, now time.Time) error {
	limiter, ofTask := e.requests, holds || r.caller.known()
	switch {
	case holds:
		limiter = e.rotates
	case !ofTask:
		limiter = e.unknown
	}
	if !limiter.AllowN(now, 1) {
		return later(http.StatusTooManyRequests, "rate", 10*time.Second, "too many requests of this task")
	}
	if e.live != nil && e.live.state.live() && !(ofTask && e.live.replaceable()) {
		return later(http.StatusTooManyRequests, "in_progress", busyPause, "another request of this task is under way")
	}
	return nil
}

// issue gets a grant from the backend. A backend that makes the token now has it
// recorded, so that it can be revoked after a crash.
func (l *leadership) issue(ctx context.Context, r *request) error {
	g, err := l.opt.Backend.Issue(ctx, backend.Request{
		RequestID: r.id, Task: r.subject.task, Policies: r.subject.policies, TTL: r.subject.ttl,
	})
	if err != nil {
		return l.backendRefusal(r, "issue the token", err)
	}
	l.table.mu.Lock()
	r.grant, r.accessor = g, g.Accessor
	l.table.mu.Unlock()
	if !g.Handle.Empty() {
		if err := l.records.save(ctx, l.table.entry(r), func(rec *Record) { r.addTo(rec) }); err != nil {
			return later(http.StatusServiceUnavailable, "store", busyPause, "%v", err)
		}
	}
	l.on(r, issued, "")
	return nil
}

// addTo adds the token of a request to a record as pending, if it is not there, and returns
// it for a change.
func (r *request) addTo(rec *Record) *IssuedToken {
	if rec.Find(r.id) == nil {
		k := IssuedToken{
			RequestID: r.id, Accessor: r.grant.Accessor, Status: TokenPending, Address: r.subject.task.Address.String(),
			Port: r.in.CallbackPort,
		}
		if r.subject.ttl > 0 {
			k.Expires = time.Now().Add(r.subject.ttl + handleTTL)
		}
		rec.Tokens = append(rec.Tokens, k)
	}
	return rec.Find(r.id)
}

// on applies an event, writes the audit log and starts what follows. It reports whether
// the event changed the state.
func (l *leadership) on(r *request, e event, reason string) bool {
	l.table.mu.Lock()
	follow := l.change(r, e, reason)
	l.table.mu.Unlock()
	if follow == nil {
		return false
	}
	follow()
	return true
}

// change applies an event for a caller that holds mu, and returns what follows, which is for
// after the lock: nil if the event does not change the state.
func (l *leadership) change(r *request, e event, reason string) (follow func()) {
	next, actions, changed := r.state.next(e)
	if !changed {
		return nil
	}
	before := r.state
	r.state, r.reason = next, reason
	r.confirmed = r.confirmed || e == answeredOK
	accessor := r.accessor
	if next.final() {
		r.ended = time.Now()
		close(r.over)
	}
	return func() {
		l.log(r, next.Phase, reason, slices.Contains(actions, doAlarm))
		if next.Phase == Accepted && before.Phase != Accepted {
			l.opt.Metrics.delivery.Observe(time.Since(r.started).Seconds())
		}
		for _, a := range actions {
			l.act(r, a, accessor, reason)
		}
	}
}

// act carries out an action of a change of state, which had this accessor and reason.
func (l *leadership) act(r *request, a action, accessor, reason string) {
	switch a {
	case doRevoke:
		revocation := revocation{entry: l.table.entry(r), requestID: r.id, accessor: accessor, reason: reason}
		if accessor != "" && !l.revoker.start(revocation) {
			l.revoker.revokeNow(&revocation)
		}
	case doAlarm:
		l.opt.Metrics.alarms.Add(1)
		l.opt.Log.Error("a handle was misused, its token is revoked", logkey.TaskARN, r.in.TaskARN, logkey.Reason,
			reason)
	case doAwait:
		l.jobs.start(func(ctx context.Context) { l.awaitRedemption(ctx, r) })
	case doRecheck:
		l.jobs.start(func(ctx context.Context) { l.recheckTask(ctx, r) })
	case doReplace:
		l.jobs.start(func(ctx context.Context) { l.replace(ctx, l.table.entry(r), r.id) })
	}
}

// log writes a line of the audit log, and of the log. Those of refused requests are bounded.
func (l *leadership) log(r *request, phase Phase, reason string, alarm bool) {
	l.opt.Metrics.transitions.Add(1, string(phase))
	omitted := 0
	if phase == Rejected {
		var logged bool
		if omitted, logged = l.broker.refusals.allow(r); !logged {
			l.opt.Metrics.omitted.Add(1)
			return
		}
	}
	l.table.mu.Lock()
	s := r.subject
	out := line{
		Request: r.id, Task: r.in.TaskARN, Peer: r.caller.peer.String(), Policies: s.policies, Accessor: r.accessor,
		Handle: l.broker.audit.handle(r.handle), Decision: string(phase), Reason: reason,
		Alarm: alarm, Rotation: r.bearer != "", Attempt: r.attempts, Duration: time.Since(r.started).Milliseconds(),
		ContradictingTags: s.contradicting,
		Omitted:           omitted,
	}
	if s.task.Address.IsValid() {
		out.IP, out.Revision, out.TTL = s.task.Address.String(), s.task.Family+":"+strconv.Itoa(s.task.Revision),
			taskLife
		if s.ttl > 0 {
			out.TTL = s.ttl.String()
		}
	}
	l.table.mu.Unlock()
	l.broker.audit.write(out)
	level := hclog.Debug
	if phase == Active || (state{Phase: phase}).final() {
		level = hclog.Info
	}
	l.opt.Log.Log(level, "request "+string(phase), logkey.TaskARN, r.in.TaskARN, logkey.Reason, reason)
}
