package healthsync

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// probePause is the time between two looks at a port while the metadata endpoint is
	// away, probeTimeout bounds one.
	probePause, probeTimeout = time.Second, 500 * time.Millisecond
	// deadAfter is how many looks in a row fail at a container that has ended. The second
	// comes half a second after the first.
	deadAfter = 2
	// vouchFor is how long a status is kept without a port that vouches for it.
	vouchFor = 5 * time.Minute
	// explainAfter is when the output of the checks names the outage: the restart of an ECS
	// agent, with many tasks, must cause no write.
	explainAfter = time.Minute
)

// evidence is what takes the place of the metadata while their endpoint is away: that the
// task's ports accept connections. The last status is kept as long as they do.
type evidence struct {
	accepts func(ctx context.Context, address string) error
	// app is the port of the service, proxy that of its proxy or of the gateway.
	app, proxy taskPort
	// since is when the endpoint was first seen to be away, zero while it is not.
	since time.Time
}

// taskPort is a port of the task, by the addresses at which it may listen.
type taskPort struct {
	addresses []string
	// accepted reports that it has accepted a connection. One that never has proves nothing:
	// it may be for UDP.
	accepted bool
	failures int // in a row
	looked   time.Time
}

// state is what a port shows about its containers.
type state int

const (
	dead state = iota
	unknown
	alive
)

func (p *taskPort) state() state {
	switch {
	case !p.accepted:
		return unknown
	case p.failures >= deadAfter:
		return dead
	}
	return alive
}

// newEvidence returns the evidence of a workload by the first answer of its metadata.
func newEvidence(
	cfg *config.Config, w workload.Workload, t workload.Task, accepts func(context.Context, string) error,
) evidence {
	const loopback = "127.0.0.1"
	own := ""
	if !w.Transparent { // else it may be the proxy that accepts
		own, _ = t.NodeIP() // loopback is left
	}
	at := func(number int, hosts ...string) (addresses []string) {
		for _, host := range hosts {
			if host != "" && number > 0 {
				addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(number)))
			}
		}
		return addresses
	}
	e := evidence{accepts: accepts}
	if !w.IsGateway() {
		e.app.addresses = at(w.Port, cmp.Or(w.Proxy.LocalServiceAddress, loopback), own)
	}
	if cfg.Agentless() {
		e.proxy.addresses = append(at(cfg.ReadyPort(), loopback), at(w.Proxy.Port, loopback, own)...)
	}
	return e
}

// prepare looks at the ports once when a check has passed, so that a container that ends
// together with the endpoint is noticed.
func (e *evidence) prepare(ctx context.Context, last map[string]written) {
	for _, written := range last {
		if written.observed.status() != api.HealthPassing {
			return
		}
	}
	for _, p := range []*taskPort{&e.app, &e.proxy} {
		if p.looked.IsZero() && len(last) > 0 {
			e.look(ctx, p)
		}
	}
}

// look asks a port, unless it was asked a moment ago.
func (e *evidence) look(ctx context.Context, p *taskPort) {
	pause := probePause
	if p.failures == 1 {
		pause = tick
	}
	// Half a tick early, as in diff.
	if len(p.addresses) == 0 || time.Since(p.looked) < pause-tick/2 {
		return
	}
	p.looked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, address := range p.addresses {
		if e.accepts(ctx, address) == nil {
			p.accepted, p.failures = true, 0
			return
		}
	}
	p.failures++
}

// beginOutage records that the endpoint is away, and looks at the ports.
func (e *evidence) beginOutage(ctx context.Context) {
	if e.since.IsZero() {
		e.since = time.Now()
	}
	e.look(ctx, &e.app)
	e.look(ctx, &e.proxy)
}

// endOutage drops the failures when the endpoint is back.
func (e *evidence) endOutage() {
	e.since = time.Time{}
	e.app.failures, e.proxy.failures = 0, 0
}

// state returns what is known about a check: an aggregate is as bad as the proxy or the
// containers that have checks.
func (e *evidence) state(check workload.SyncCheck, checks []workload.SyncCheck) state {
	switch {
	case !check.Aggregate:
		return e.app.state()
	case slices.ContainsFunc(checks, func(c workload.SyncCheck) bool { return !c.Aggregate }):
		return min(e.app.state(), e.proxy.state())
	}
	return e.proxy.state()
}

// explanation returns what follows the output of a check in a long outage, unless that names it already.
func (e *evidence) explanation(now time.Time, s state) string {
	if s == dead || now.Sub(e.since) < explainAfter {
		return ""
	}
	text := "; the ECS metadata endpoint has not answered since " + e.since.UTC().Format("15:04:05Z")
	if s == alive {
		text += ", the port accepts connections"
	}
	return text
}

// changes returns the writes to make without metadata, and whether what is kept is vouched for.
// What failed to be written is written still. Checks that are critical stay so.
func (e *evidence) changes(
	now time.Time, refresh time.Duration, checks []workload.SyncCheck, last map[string]written,
	failing map[string]failure,
) (changes []change, vouched bool) {
	vouched = true
	for _, check := range checks {
		before, ok := last[check.ID]
		c := change{check: check, container: before.container, observed: before.observed, previous: before.observed}
		failed, fails := failing[check.ID]
		s := e.state(check, checks)
		passing := before.observed.status() == api.HealthPassing
		switch {
		case fails && !failed.change.refresh:
			c = failed.change
		case !ok:
			continue
		case passing && s == dead:
			c.observed = refusing
		case before.observed == refusing && s == alive:
			c.observed = healthy
		case passing && s == unknown && now.Sub(e.since) >= vouchFor:
			vouched = false
			continue
		case now.Sub(before.at) < refresh-tick/2:
			continue
		default:
			c.refresh, c.explanation = true, e.explanation(now, s)
		}
		changes = append(changes, c)
	}
	return changes, vouched
}

// withoutMetadata keeps the checks in line with the task's ports.
func (s *syncer) withoutMetadata(ctx context.Context) {
	s.evidence.beginOutage(ctx)
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	refresh, readBack := s.checks.refresh(now)
	s.checks.dropContradicted(now, &s.evidence)
	changes, vouched := s.evidence.changes(now, refresh, s.task.workload.SyncChecks, s.checks.last, s.checks.failing)
	if s.vouched.Swap(vouched) && !vouched {
		s.task.log.Warn("no task metadata for five minutes and no port to check, the checks are not refreshed any more")
	}
	s.checks.apply(ctx, now, readBack, changes)
}
