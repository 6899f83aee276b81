package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
	"github.com/meshtask/consul-ecs/workload"
)

// phases are the moments of one task, named as in the architecture page's two
// diagrams. A zero time has not come.
type phases struct {
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

// observe notes an event of the task. application is the name of its
// application container.
func (p *phases) observe(e localecs.Event, application string) {
	running := e.What == "status" && e.Value == scheduler.StatusRunning
	stopped := e.What == "status" && e.Value == scheduler.StatusStopped
	switch {
	case e.What == "desired":
		first(&p.term, e.At)
	case e.Container == "" && stopped:
		first(&p.stopped, e.At)
	case e.Container == workload.ContainerMeshInit && stopped:
		first(&p.meshInit, e.At)
	case e.Container == workload.ContainerSidecarProxy && running:
		first(&p.proxyUp, e.At)
	case e.Container == workload.ContainerSidecarProxy && e.Value == scheduler.HealthHealthy:
		first(&p.proxyHealthy, e.At)
	case e.Container == workload.ContainerSidecarProxy && stopped:
		first(&p.proxyGone, e.At)
	case e.Container == workload.ContainerConsulClient && stopped:
		first(&p.clientGone, e.At)
	case e.Container == application && running:
		first(&p.application, e.At)
	case e.Container == application && e.Value == scheduler.HealthHealthy:
		first(&p.healthy, e.At)
	case e.Container == application && stopped:
		first(&p.applicationGone, e.At)
	}
	if running {
		first(&p.started, e.At)
	}
}

// column is one moment of a table, in seconds since the table's T0.
type column struct {
	title string
	at    func(*phases) time.Time
}

func startColumns() []column {
	return []column{
		{"T1 mesh-init done", func(p *phases) time.Time { return p.meshInit }},
		{"proxy starts", func(p *phases) time.Time { return p.proxyUp }},
		{"T2 proxy healthy", func(p *phases) time.Time { return p.proxyHealthy }},
		{"app starts", func(p *phases) time.Time { return p.application }},
		{"app healthy", func(p *phases) time.Time { return p.healthy }},
		{"in traffic", func(p *phases) time.Time { return p.inTraffic }},
	}
}

func stopColumns() []column {
	return []column{
		{"T1 critical in Consul", func(p *phases) time.Time { return p.critical }},
		{"app gone", func(p *phases) time.Time { return p.applicationGone }},
		{"proxy gone", func(p *phases) time.Time { return p.proxyGone }},
		{"T2 agent gone", func(p *phases) time.Time { return p.clientGone }},
		{"T3 task stopped", func(p *phases) time.Time { return p.stopped }},
		{"T4 nothing left", func(p *phases) time.Time { return p.nothingLeft }},
	}
}

// table draws the moments of all tasks, one row a task. zero gives a task's T0;
// a task that has none is left out, and a table without tasks is empty.
func table(title string, names []string, tasks map[string]*taskRun, zero func(*phases) time.Time, columns []column) string {
	var rows strings.Builder
	for _, name := range names {
		p := &tasks[name].phases
		t0 := zero(p)
		if t0.IsZero() {
			continue
		}
		fmt.Fprintf(&rows, "  %-10s", name)
		for _, c := range columns {
			fmt.Fprintf(&rows, "  %*s", len(c.title), sinceText(t0, c.at(p)))
		}
		rows.WriteByte('\n')
	}
	if rows.Len() == 0 {
		return ""
	}
	head := fmt.Sprintf("\n%s\n  %-10s", title, "task")
	for _, c := range columns {
		head += "  " + c.title
	}
	return head + "\n" + rows.String()
}

func sinceText(t0, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	// A container may end a moment before that is noticed and T0 is set.
	return fmt.Sprintf("%.2f", max(0, at.Sub(t0)).Seconds())
}
