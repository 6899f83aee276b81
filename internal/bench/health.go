package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/workload"
)

const (
	flips      = 24
	idleCopies = 3
	idleTime   = 20 * time.Second
	// settleTime passes before an idle program is looked at.
	settleTime = 2 * time.Second
	pollPause  = 5 * time.Millisecond
	waitLimit  = 10 * time.Second
)

// publicListener is where the agent expects the proxy of a task.
const publicListener = "127.0.0.1:20000"

// consulWithProxy starts an agent without ACLs, and the public listener of the proxies of all tasks.
func (s *fixture) consulWithProxy() (*consul, error) {
	c, err := s.consul(false)
	if err == nil {
		_, err = s.serve(publicListener, http.NotFoundHandler())
	}
	return c, err
}

// startHealthSync registers a new task, starts its health-sync, which talks to the agent
// through the counting proxy, and waits until the proxy passes. synced are the containers of
// healthSyncContainers.
func (s *fixture) startHealthSync(c *consul, t *task, synced ...string) (*child, error) {
	env, err := t.env(c.address, c, object{"healthSyncContainers": synced})
	if err != nil {
		return nil, err
	}
	if _, err := s.time(env, s.harness.program, "mesh-init"); err != nil {
		return nil, err
	}
	sync, err := s.start(env, s.harness.program, "health-sync")
	if err != nil {
		return nil, err
	}
	_, err = s.until("proxy passes", pollPause, waitLimit, func() bool { return c.passes(t.proxyID()) })
	return sync, err
}

// status returns the status of a check, as the agent has it.
func (c *consul) status(checkID string) string {
	checks, err := c.direct.Agent().ChecksWithFilter(fmt.Sprintf("CheckID == %q", checkID))
	if err != nil || checks[checkID] == nil {
		return ""
	}
	return checks[checkID].Status
}

// healthFigure changes a container's health at moments spread over
// health-sync's tick and waits for the check to follow.
func healthFigure(s *fixture) ([]row, error) {
	c, err := s.consulWithProxy()
	if err != nil {
		return nil, err
	}
	t, err := s.newTask("bench", workload.ContainerHealthSync, "app")
	if err != nil {
		return nil, err
	}
	if _, err := s.startHealthSync(c, t, "app"); err != nil {
		return nil, err
	}
	check := workload.CheckID(t.serviceID(), "app")
	if _, err := s.follows(c, check, true, time.Now()); err != nil {
		return nil, err
	}
	var ours, floor, writes sample
	healthy := true
	for i, moment := range spread(s.harness.repeat(flips), time.Second) {
		if err := s.pause(moment); err != nil {
			return nil, err
		}
		if n := c.writes(); i > 0 { // since the last change
			writes.add(float64(n))
		}
		healthy = !healthy
		d, err := s.follows(c, check, healthy, t.health("app", healthy))
		if err != nil {
			return nil, err
		}
		ours.add(seconds.of(d))
		if d, err = s.writeDirectly(c, healthy); err != nil {
			return nil, err
		}
		floor.add(seconds.of(d))
	}
	return []row{{"ECS health change to Consul check", seconds, "0.56 median, 1.0 max", "0.3 median, 0.6 max", ours,
		[]reference{{"a write straight to the agent", floor}}},
		{"ECS health change: writes to the agent", count, "1", "1", writes, nil}}, nil
}

// writes counts those that the agent has received since the last call.
func (c *consul) writes() int {
	n := 0
	for _, e := range c.requests.take() {
		if e.method == http.MethodPut {
			n++
		}
	}
	return n
}

// follows waits until the check has the status of the container's health since
// that moment, and returns how long it took.
func (s *fixture) follows(c *consul, check string, healthy bool, since time.Time) (time.Duration, error) {
	want := api.HealthCritical
	if healthy {
		want = api.HealthPassing
	}
	at, err := s.until("check "+check+" is "+want, pollPause, waitLimit, func() bool { return c.status(check) == want })
	return at.Sub(since), err
}

// writeDirectly measures the least a change can take: one write known to be due.
func (s *fixture) writeDirectly(c *consul, healthy bool) (time.Duration, error) {
	const id = "bench-floor"
	check := api.AgentServiceCheck{TTL: "1h"}
	if c.status(id) == "" {
		if err := c.direct.Agent().CheckRegister(&api.AgentCheckRegistration{
			ID: id, Name: id, AgentServiceCheck: check,
		}); err != nil {
			return 0, err
		}
	}
	status := api.HealthCritical
	if healthy {
		status = api.HealthPassing
	}
	start := time.Now()
	if err := c.direct.Agent().UpdateTTL(id, "", status); err != nil {
		return 0, err
	}
	return s.follows(c, id, healthy, start)
}

// idleFigure runs several health-syncs and several pollers side by side.
func idleFigure(s *fixture) ([]row, error) {
	c, err := s.consulWithProxy()
	if err != nil {
		return nil, err
	}
	floor, err := s.harness.build(s.ctx, poller)
	if err != nil {
		return nil, err
	}
	var ours, floors []*child
	for range s.harness.repeat(idleCopies) {
		t, err := s.newTask("bench", workload.ContainerHealthSync, "app")
		if err != nil {
			return nil, err
		}
		sync, err := s.startHealthSync(c, t, "app")
		if err != nil {
			return nil, err
		}
		poll, err := s.start(nil, floor, t.uri+"/task")
		if err != nil {
			return nil, err
		}
		ours, floors = append(ours, sync), append(floors, poll)
	}
	if err := s.pause(settleTime); err != nil {
		return nil, err
	}
	c.requests.take()
	m, err := s.watch(idleTime, ours, floors)
	if err != nil {
		return nil, err
	}
	requests := float64(len(c.requests.take())) / float64(len(ours)) / idleTime.Minutes()
	return []row{
		{"health-sync idle: RSS", megabytes, "15.6", "13", m[0].rss, []reference{{pollerWhat, m[1].rss}}},
		{
			"health-sync idle: CPU", cpuPerMinute, "0.04", "0.04", m[0].perMinute(idleTime),
			[]reference{{pollerWhat, m[1].perMinute(idleTime)}},
		},
		{"health-sync idle: requests to the agent, a minute", count, "0", "12", sample{requests}, nil},
	}, nil
}

// passes reports whether the agent has a service all of whose checks pass.
func (c *consul) passes(serviceID string) bool {
	status, _, err := c.direct.Agent().AgentHealthServiceByID(serviceID)
	return err == nil && status == api.HealthPassing
}

// poller is the floor of memory and CPU: a program that does nothing but get
// the task metadata once a second.
const (
	poller     = "./internal/bench/floor/poll"
	pollerWhat = "a Go program that polls"
)

// consumption is what some processes of one kind used.
type consumption struct {
	// rss is in MB at the end, cpu in seconds over the whole time.
	rss, cpu sample
}

func (c consumption) perMinute(d time.Duration) sample { return c.scaled(1 / d.Minutes()) }
func (c consumption) percent(d time.Duration) sample   { return c.scaled(100 / d.Seconds()) }

func (c consumption) scaled(by float64) sample {
	var out sample
	for _, v := range c.cpu {
		out.add(v * by)
	}
	return out
}

// watch looks at kinds of processes for some time.
func (s *fixture) watch(d time.Duration, kinds ...[]*child) ([]consumption, error) {
	before := map[*child]time.Duration{}
	for _, kind := range kinds {
		for _, c := range kind {
			t, err := cpuTime(c.pid)
			if err != nil {
				return nil, fmt.Errorf("look at %s: %w: %s", c.name, err, c.log)
			}
			before[c] = t
		}
	}
	if err := s.pause(d); err != nil {
		return nil, err
	}
	out := make([]consumption, len(kinds))
	for i, kind := range kinds {
		for _, c := range kind {
			t, err := cpuTime(c.pid)
			if err != nil {
				return nil, fmt.Errorf("look at %s: %w: %s", c.name, err, c.log)
			}
			m, err := rss(c.pid)
			if err != nil {
				return nil, fmt.Errorf("look at %s: %w: %s", c.name, err, c.log)
			}
			out[i].cpu.add((t - before[c]).Seconds())
			out[i].rss.add(m)
		}
	}
	return out, nil
}
