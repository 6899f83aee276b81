package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// prefixes are what stands before a container's lines, of one width.
func (p *PlainPlan) prefixes(colour bool) map[string]string {
	called, width := map[string]string{}, 0
	var order []string
	for _, t := range p.tasks {
		for _, c := range t.def.ContainerDefinitions {
			key := t.name + "/" + c.Name
			called[key] = p.called(t, c.Name)
			order = append(order, key)
			width = max(width, len(called[key]))
		}
	}
	for i, key := range order {
		prefix := fmt.Sprintf("%-*s | ", width, called[key])
		if colour { // cyan, yellow, green, magenta, blue: red is for errors
			prefix = fmt.Sprintf("\x1b[%dm%s\x1b[0m", [...]int{36, 33, 32, 35, 34}[i%5], prefix)
		}
		called[key] = prefix
	}
	return called
}

// tell adds what every event has.
func (r *plainRun) tell(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Seconds = Seconds(e.Time.Sub(r.begun))
	e.Scenario = r.plan.Name()
	r.record.Note(e)
	r.out.Event(e)
}

// output is the cluster's observer of lines.
func (r *plainRun) output(task, container string, line []byte) {
	r.tell(Event{
		Kind: KindOutput, Task: task, Container: container,
		Text: strings.TrimRight(string(line), "\r\n"), Prefix: r.prefix[task+"/"+container],
	})
}

// observe is the cluster's observer of statuses. That an image is there is no news.
func (r *plainRun) observe(e cluster.Event) {
	if told, isNews := Told(e); isNews {
		r.tell(told)
	} else {
		r.record.Note(told)
	}
}

// waiting says what a container waits for, empty when it is as it should be.
func waiting(v scheduler.ContainerView, c *taskdef.Container) string {
	switch {
	case v.KnownStatus == scheduler.StatusStopped:
		return ""
	case v.DesiredStatus == scheduler.StatusStopped:
		return "is stopping"
	case v.KnownStatus != scheduler.StatusRunning:
		return strings.TrimSuffix("waits for "+awaited(c), " for ")
	case v.Health != nil && v.Health.Status == scheduler.HealthStarting:
		return "has no health yet"
	case v.Health != nil && v.Health.Status == scheduler.HealthUnhealthy:
		return "is UNHEALTHY"
	}
	return ""
}

// awaited is what a container's start depends on.
func awaited(c *taskdef.Container) string {
	var on []string
	for _, d := range c.DependsOn {
		on = append(on, d.ContainerName+" "+d.Condition)
	}
	return strings.Join(on, " and ")
}
