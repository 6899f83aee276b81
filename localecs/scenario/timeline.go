package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/workload"
)

// Moments are those of one task, named as in the architecture page's two
// diagrams. A zero time has not come. They are not safe for concurrent use.
type Moments struct {
	// Start: T0 the first container runs, T1 mesh-init is done and the proxy
	// starts, T2 the proxy is healthy and the application starts; then the
	// application is healthy in ECS and Consul sends traffic.
	started, meshInit, proxyUp, proxyHealthy, application, healthy, inTraffic time.Time
	// Stop: T0 everything is asked to stop, T1 critical in Consul, the
	// application gone, T2 the agent gone, T3 the task stopped, T4 nothing
	// left in Consul.
	term, critical, applicationGone, proxyGone, clientGone, stopped, nothingLeft time.Time
}

// first sets *t once.
func first(t *time.Time, at time.Time) {
	if t.IsZero() {
		*t = at
	}
}

// Observe notes an event of the task. application is the name of its
// application container.
func (m *Moments) Observe(e cluster.Event, application string) {
	running := e.What == "status" && e.Value == scheduler.StatusRunning
	stopped := e.What == "status" && e.Value == scheduler.StatusStopped
	switch {
	case e.What == "desired":
		first(&m.term, e.At)
	case e.Container == "" && stopped:
		first(&m.stopped, e.At)
	case e.Container == workload.ContainerMeshInit && stopped:
		first(&m.meshInit, e.At)
	case e.Container == workload.ContainerSidecarProxy && running:
		first(&m.proxyUp, e.At)
	case e.Container == workload.ContainerSidecarProxy && e.Value == scheduler.HealthHealthy:
		first(&m.proxyHealthy, e.At)
	case e.Container == workload.ContainerSidecarProxy && stopped:
		first(&m.proxyGone, e.At)
	case e.Container == workload.ContainerConsulClient && stopped:
		first(&m.clientGone, e.At)
	case e.Container == application && running:
		first(&m.application, e.At)
	case e.Container == application && e.Value == scheduler.HealthHealthy:
		first(&m.healthy, e.At)
	case e.Container == application && stopped:
		first(&m.applicationGone, e.At)
	}
	if running {
		first(&m.started, e.At)
	}
}

// ConsulChanged notes that a check of the task has changed: whether it passes
// now, and whether Consul sends traffic to the task. Critical is since when it
// does not at the end: a task that recovers before its stop begins anew, and one
// whose health-sync has died may be critical long before.
func (m *Moments) ConsulChanged(at time.Time, passing, inTraffic bool) {
	stopping, served := !m.term.IsZero(), !m.inTraffic.IsZero()
	switch {
	case inTraffic && !stopping:
		m.critical = time.Time{}
		first(&m.inTraffic, at)
	case inTraffic:
		first(&m.inTraffic, at)
	case !passing && (stopping || served):
		first(&m.critical, at)
	}
}

// LeftNothing notes that nothing of the task is left in Consul.
func (m *Moments) LeftNothing(at time.Time) { first(&m.nothingLeft, at) }

// Row is a task in a table.
type Row struct {
	Task    string
	Moments *Moments
}

// Start draws how the tasks started. One that has not is left out, and a table
// without tasks is empty.
func StartTable(rows []Row) string {
	return table("Start: seconds after T0, the first container runs", rows, func(m *Moments) time.Time { return m.started }, startColumns())
}

// Stop draws how the tasks stopped, in the same way.
func StopTable(rows []Row) string {
	return table("Stop: seconds after T0, the task is asked to stop", rows, func(m *Moments) time.Time { return m.term }, stopColumns())
}

// column is one moment of a table, in seconds since the table's T0.
type column struct {
	title string
	at    func(*Moments) time.Time
}

func startColumns() []column {
	return []column{
		{"T1 mesh-init done", func(m *Moments) time.Time { return m.meshInit }},
		{"proxy starts", func(m *Moments) time.Time { return m.proxyUp }},
		{"T2 proxy healthy", func(m *Moments) time.Time { return m.proxyHealthy }},
		{"app starts", func(m *Moments) time.Time { return m.application }},
		{"app healthy", func(m *Moments) time.Time { return m.healthy }},
		{"in traffic", func(m *Moments) time.Time { return m.inTraffic }},
	}
}

func stopColumns() []column {
	return []column{
		{"T1 critical in Consul", func(m *Moments) time.Time { return m.critical }},
		{"app gone", func(m *Moments) time.Time { return m.applicationGone }},
		{"proxy gone", func(m *Moments) time.Time { return m.proxyGone }},
		{"T2 agent gone", func(m *Moments) time.Time { return m.clientGone }},
		{"T3 task stopped", func(m *Moments) time.Time { return m.stopped }},
		{"T4 nothing left", func(m *Moments) time.Time { return m.nothingLeft }},
	}
}

// table draws the moments of all tasks. zero gives a task's T0.
func table(title string, rows []Row, zero func(*Moments) time.Time, columns []column) string {
	var body strings.Builder
	for _, r := range rows {
		t0 := zero(r.Moments)
		if t0.IsZero() {
			continue
		}
		fmt.Fprintf(&body, "  %-10s", r.Task)
		for _, c := range columns {
			fmt.Fprintf(&body, "  %*s", len(c.title), sinceText(t0, c.at(r.Moments)))
		}
		body.WriteByte('\n')
	}
	if body.Len() == 0 {
		return ""
	}
	head := fmt.Sprintf("\n%s\n  %-10s", title, "task")
	for _, c := range columns {
		head += "  " + c.title
	}
	return head + "\n" + body.String()
}

func sinceText(t0, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	// A container may end a moment before that is noticed and T0 is set, and a
	// task may be critical when its stop begins.
	return fmt.Sprintf("%.2f", max(0, at.Sub(t0)).Seconds())
}
