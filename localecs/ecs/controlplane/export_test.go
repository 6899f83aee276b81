package controlplane

import (
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// ServiceTasks returns all visible tasks of a service, by creation and without delay.
func (p *Plane) ServiceTasks(call shapes.Call, cluster, service string) []shapes.Task {
	p.state.mu.Lock()
	defer p.state.mu.Unlock()
	var tasks []shapes.Task
	for _, r := range p.state.serviceRecords(&Service{Name: service, cluster: cluster}, call.Now) {
		tasks = append(tasks, r.Shape(call.Now, Lag{}, true))
	}
	return tasks
}

// StopForService stops a task as the scheduler of services does.
func (p *Plane) StopForService(call shapes.Call, taskID, reason string) {
	p.state.mu.Lock()
	defer p.state.unlock()
	if r := p.state.tasks[taskID]; r != nil {
		p.taskAPI.lifecycle.stop(r, scheduler.StopServiceScheduler, reason, call.Now)
	}
}

// RunForService starts tasks as the scheduler of services does.
func (p *Plane) RunForService(call shapes.Call, service string, in shapes.RunTaskInput) (shapes.TasksOutput, error) {
	p.state.mu.Lock()
	defer p.state.unlock()
	return p.taskAPI.lifecycle.run(call, in, origin{service: service, inactive: true})
}

// Steady sets whether the service has reported a steady state.
func (s *Service) Steady(steady bool) { s.steady = steady }

// Members is members.
var Members = members

// Outcomes returns the status and the reason of each service deployment, newest first.
func (s *Service) Outcomes() []string {
	var all []string
	for _, d := range s.history {
		all = append(all, strings.TrimSpace(d.outcome.status+" "+d.outcome.reason))
	}
	return all
}
