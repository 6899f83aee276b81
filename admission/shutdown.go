package admission

import (
	"cmp"
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// afterApplications is how many seconds longer than the applications the containers
	// of the mesh have: for the proxy's end, the logouts and the agent's leave.
	afterApplications = 15
	// fargateStop is Fargate's limit of stopTimeout, in seconds.
	fargateStop = 120
	// detected is how long it takes until health-sync has written that the task stops.
	detected = 250 * time.Millisecond
)

// stopTimeout returns the stop timeout of the containers of the mesh, in seconds: they end after the
// applications.
func (cs *containers) stopTimeout() int {
	longest := 0
	for _, i := range cs.applications() {
		longest = max(longest, stopSeconds(cs.doc.Definition.ContainerDefinitions[i]))
	}
	wanted := cmp.Or(longest, taskdef.DefaultStopTimeout) + afterApplications
	if mayBeFargate(cs.doc) && longest <= fargateStop { // a longer one shows that it is not Fargate
		return min(wanted, fargateStop)
	}
	return wanted
}

func stopSeconds(c taskdef.Container) int {
	return taskdef.Or(c.StopTimeout, taskdef.DefaultStopTimeout)
}

// stage is a part of a task's stop. End counts from TERM.
type stage struct {
	name string
	end  time.Duration
}

// checkShutdown adds the stages of a stop up, and compares each with the stop timeout
// of the container that it takes place in. The applications take all that they have.
func checkShutdown(t *task) {
	longest, longestName := time.Duration(0), ""
	for _, i := range t.containers.applications() {
		c := t.doc.Definition.ContainerDefinitions[i]
		stop := time.Duration(stopSeconds(c)) * time.Second
		if stop > longest {
			longest, longestName = stop, c.Name
		}
		if t.cfg.Gateway == nil {
			checkStages(t.doc, i, stop, applicationStages(c, stop),
				"give it a longer stopTimeout, or -shutdown-delay less time")
		}
	}
	fix := "give it a longer stopTimeout"
	if longestName != "" {
		fix = fmt.Sprintf("give %s a stopTimeout that is %d s shorter than this one", longestName, afterApplications)
	}
	for i, c := range t.doc.Definition.ContainerDefinitions {
		if workload.IsMeshContainer(c.Name) {
			stop := time.Duration(stopSeconds(c)) * time.Second
			checkStages(t.doc, i, stop, sidecarStages(t.cfg, c.Name, stop, longest), fix)
		}
	}
}

// applicationStages returns what happens in an application's container until it gets TERM, and its own end.
func applicationStages(c taskdef.Container, stop time.Duration) []stage {
	budget := workload.NewStopBudget(stop)
	drained := budget.Delay(shutdownDelay(c.EntryPoint))
	return []stage{
		{"detect", min(detected, budget.MinDelay)},
		{"propagate", budget.MinDelay},
		{"drain", drained},
		{"application", drained + time.Second},
	}
}

// sidecarStages returns what a container of the mesh does after the applications. Where workload.StopBudget
// gives a stage less time, it ends too late.
func sidecarStages(cfg *config.Config, name string, stop, applications time.Duration) []stage {
	budget := workload.NewStopBudget(stop)
	application := stage{"application", applications}
	// until is when a stage ends that the budget begins at a time, without regard to
	// whether the applications have stopped.
	until := func(begin time.Duration) time.Duration { return max(0, applications+workload.ProxyEnd-begin) + stop }
	switch name {
	case workload.ContainerSidecarProxy, workload.ContainerDataplane:
		return []stage{application, {"proxy", applications + workload.ProxyEnd}}
	case workload.ContainerHealthSync:
		if hasAgent(cfg) {
			return []stage{application, {"logout", until(budget.ServiceLogout)}}
		}
		return []stage{application, {"logout", until(budget.Deregister)}}
	case workload.ContainerConsulClient:
		return []stage{application, {"logout", until(budget.Leave)}}
	}
	return nil
}

// checkStages reports the first stage that ends after the stop timeout.
func checkStages(d *document, i int, stop time.Duration, stages []stage, fix string) {
	for _, s := range stages {
		if s.end > stop {
			d.report(codeStop, fmt.Sprintf("$.containerDefinitions[%d].stopTimeout", i), "container",
				d.containerName(i),
				"have", stop.Seconds(), "stage", s.name, "need", s.end.Seconds(), "fix", fix)
			return
		}
	}
}
