package scenario

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// minInstances is how many tasks a called service has at least: one may be disrupted
// and two may end, and one is left.
const minInstances = 4

// ChaosSetup is the part of a scenario that a trial uses: all but its steps.
type ChaosSetup struct {
	Topology chaos.Topology
	// base has the tasks of the topology, and no steps.
	base    *file.Scenario
	traffic file.Traffic
}

// Name returns the name of the scenario.
func (s *ChaosSetup) Name() string { return s.base.Name }

// NewChaosSetup derives the setting from a scenario that was not written for trials. Its first
// traffic step is the trial's, and posts to URLs that end in /fail and /ok make an
// application unhealthy and healthy.
func NewChaosSetup(f *file.Scenario) (*ChaosSetup, error) {
	read, _, err := file.Read(f)
	if err != nil {
		return nil, err
	}
	defs := read.Tasks
	s := &ChaosSetup{base: new(*f)}
	s.base.Tasks = maps.Clone(f.Tasks)
	s.base.Steps, s.base.Services, s.base.Checks = nil, nil, file.Checks{
		// The target of a fault may have ended with an earlier fault.
		NoTokensOf: f.Checks.NoTokensOf, NoServices: f.Checks.NoServices, FaultsMayMiss: true,
	}
	fails := map[string]string{}
	for _, step := range f.Steps {
		if step.Traffic != nil && s.traffic.Task == "" {
			s.traffic = *step.Traffic
		}
		if url, ok := strings.CutSuffix(postURL(step), "/fail"); ok {
			fails[defs[step.Post.Task].Family] = url
		}
	}
	if len(f.Consul.AuthMethods) == 0 {
		return nil, errors.New("chaos needs a scenario with consul.authMethods, such as examples/chaos: a controller " +
			"that makes them would clean up as well")
	}
	if s.traffic.Task == "" {
		return nil, errors.New("chaos needs a scenario with a traffic step: where requests enter")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tasks)) {
		s.add(name, defs[name], fails)
	}
	return s, s.fill(defs, fails)
}

func postURL(s file.Step) string {
	if s.Post == nil {
		return ""
	}
	return s.Post.URL
}

func (s *ChaosSetup) add(name string, def *taskdef.TaskDefinition, fails map[string]string) {
	t := chaos.Task{Name: name, Family: def.Family, Entry: name == s.traffic.Task, Containers: containersOf(def)}
	if url := fails[def.Family]; url != "" {
		t.Fail, t.Heal = url+"/fail", url+"/ok"
	}
	s.Topology.Tasks = append(s.Topology.Tasks, t)
}

// fill adds tasks of called services until there are enough, and removes excess ones:
// a scenario may have tasks for its later steps.
func (s *ChaosSetup) fill(defs map[string]*taskdef.TaskDefinition, fails map[string]string) error {
	count := map[string]int{}
	s.Topology.Tasks = slices.DeleteFunc(s.Topology.Tasks, func(t chaos.Task) bool {
		count[t.Family]++
		return !t.Entry && count[t.Family] > minInstances
	})
	var last chaos.Task
	for _, t := range s.Topology.Tasks {
		if !t.Entry {
			last = t
		}
	}
	if last.Name == "" {
		return errors.New("chaos needs a scenario with tasks that others call")
	}
	for _, t := range slices.Clone(s.Topology.Tasks) {
		for n := count[t.Family] + 1; !t.Entry && count[t.Family] < minInstances; n++ {
			name := fmt.Sprintf("%s-%d", t.Family, n)
			if _, taken := s.base.Tasks[name]; taken {
				continue
			}
			s.base.Tasks[name] = s.base.Tasks[t.Name]
			s.add(name, defs[t.Name], fails)
			count[t.Family]++
		}
	}
	return nil
}

// containersOf returns the containers that keep running.
func containersOf(def *taskdef.TaskDefinition) []chaos.Container {
	var all []chaos.Container
	for _, c := range def.ContainerDefinitions {
		role, known := roleOf(c.Name)
		if !known && !c.IsEssential() {
			continue
		}
		one := chaos.Container{
			Name: c.Name, Role: role, Program: programOf(role, c), Essential: c.IsEssential(),
			Restarts: c.RestartPolicy != nil && c.RestartPolicy.Enabled,
		}
		if role != "" {
			all = append(all, one)
		}
	}
	return all
}

// roleOf returns a container's role by its name; any other name is an application.
func roleOf(name string) (role chaos.Role, known bool) {
	switch name {
	case workload.ContainerConsulClient:
		return chaos.Agent, true
	case workload.ContainerSidecarProxy:
		return chaos.Proxy, true
	case workload.ContainerHealthSync:
		return chaos.HealthSync, true
	case workload.ContainerMeshInit, workload.ContainerInstall:
		return "", true
	}
	return chaos.Application, false
}

// programOf returns the name of the program that does the container's work.
func programOf(role chaos.Role, c taskdef.Container) string {
	switch {
	case role == chaos.Agent:
		return "consul"
	case role == chaos.HealthSync:
		return "consul-ecs"
	case len(c.Command) > 0:
		return path.Base(c.Command[0])
	}
	return ""
}
