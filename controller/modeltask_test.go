package controller

import (
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
)

// modelTask is a task of the model, which knows when it lives.
type modelTask struct {
	id      string
	consul  *fakeConsul
	created time.Time
	// lag is how late ECS shows what happens to the task.
	lag         time.Duration
	tagged, ec2 bool

	draining, ended, forgets time.Time
	// vanishes is when AWS does not know the live task for a while.
	vanishes time.Time
	newest   time.Time // of its tokens, by Consul's clock
}

// live reports whether a container may run.
func (t *modelTask) live() bool { return t.ended.IsZero() }

func reached(moment time.Time, lag time.Duration) bool {
	return !moment.IsZero() && !time.Now().Before(moment.Add(lag))
}

// shown reports whether ECS shows the task yet.
func (t *modelTask) shown() bool { return reached(t.created, t.lag) }

// vanished reports whether AWS does not know the task for a while.
func (t *modelTask) vanished() bool {
	return reached(t.vanishes, 0) && !reached(t.vanishes, vanishing)
}

// forgotten reports whether ECS does not know the task any more.
func (t *modelTask) forgotten() bool { return reached(t.forgets, 0) }

func (t *modelTask) last() string {
	if reached(t.ended, t.lag) {
		return awsutil.TaskStopped
	}
	return awsutil.TaskRunning
}

func (t *modelTask) wanted() string {
	if reached(t.ended, t.lag) || reached(t.draining, t.lag) {
		return awsutil.TaskStopped
	}
	return awsutil.TaskRunning
}

// desired reports whether a list of this status has the task.
func (t *modelTask) desired(status string) bool { return !t.forgotten() && t.wanted() == status }

// login logs a live task in, once or twice, and registers its service.
func (t *modelTask) login(m *model) {
	if !t.live() || m.chance(0.1) {
		return
	}
	cluster := clusterARN
	if t.ec2 {
		cluster = "shop"
	}
	methods := agent().Methods[m.random.IntN(2):]
	for _, method := range methods {
		m.owners[t.consul.login(method, loginText(t.id, cluster))] = t
		if now := t.consul.now(); now.After(t.newest) { // its clock may have been set back
			t.newest = now
		}
	}
	if m.chance(0.3) {
		return
	}
	node := "node-" + t.id
	if m.chance(0.2) {
		node = "shared" // an agent of the instance
	}
	meta := map[string]string{"source": "consul-ecs", "task-id": t.id, "task-arn": shop(m.t).TaskARN(t.id)}
	for _, s := range []struct{ name, id string }{{"web", "web-" + t.id},
		{"web-sidecar-proxy", "web-" + t.id + "-sidecar-proxy"}} {
		t.consul.register(node, s.name, s.id, meta)
		m.owners[node+" "+s.id] = t
	}
	if node != "shared" {
		m.owners[node] = t
	}
}

// drain wants the task to stop, which it takes its time for.
func (t *modelTask) drain(m *model) {
	if t.live() && t.draining.IsZero() {
		m.note("task %s drains", t.id)
		t.draining, t.tagged = time.Now(), false
	}
}

// end ends the task; ECS forgets it after minutes, or later than the schedule.
func (t *modelTask) end(m *model) {
	if !t.live() {
		return
	}
	t.ended, t.tagged = time.Now(), false
	m.counts["stopped"]++
	t.forgets = t.ended.Add(t.lag + time.Hour)
	if m.chance(0.4) {
		m.counts["forgotten"]++
		t.forgets = t.ended.Add(time.Duration(m.random.IntN(60)) * time.Second)
	}
	m.note("task %s ends, ECS forgets it at %s", t.id, t.forgets)
	node := "node-" + t.id
	if t.consul.nodes[node] != "" && m.chance(0.8) {
		t.consul.nodes[node] = "critical"
	}
	if m.chance(0.5) { // in order: it logs out and leaves
		for id, owner := range m.owners {
			if owner == t {
				delete(t.consul.tokens, id)
				delete(t.consul.services, id)
				delete(t.consul.nodes, id)
			}
		}
		t.consul.index++
	}
}

// vanish makes ECS not know the live task for a while.
func (t *modelTask) vanish(m *model) {
	if first := t.live() && t.vanishes.IsZero(); first && reached(t.created, t.lag+time.Minute) {
		m.note("task %s vanishes for ECS", t.id)
		t.vanishes = time.Now()
	}
}
