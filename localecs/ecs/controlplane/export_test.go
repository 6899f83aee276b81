package controlplane

import (
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// ServiceTasks are all visible tasks of a service, by creation and without delay.
func (p *Plane) ServiceTasks(call shapes.Call, cluster, service string) []shapes.Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	var tasks []shapes.Task
	for _, r := range p.serviceRecords(&Service{Name: service, cluster: cluster}, call.Now) {
		tasks = append(tasks, r.Shape(call.Now, Lag{}, true))
	}
	return tasks
}

// StopForService stops a task as the scheduler of services does.
func (p *Plane) StopForService(call shapes.Call, taskID, reason string) {
	p.mu.Lock()
	defer p.unlock()
	if r := p.tasks[taskID]; r != nil {
		p.stop(r, scheduler.StopServiceScheduler, reason, call.Now)
	}
}

// RunForService starts tasks as the scheduler of services does.
func (p *Plane) RunForService(call shapes.Call, service string, in shapes.RunTaskInput) (shapes.TasksOutput, error) {
	p.mu.Lock()
	defer p.unlock()
	return p.run(call, in, origin{service: service, inactive: true})
}

// Steady sets whether the service has reported a steady state.
func (s *Service) Steady(steady bool) { s.steady = steady }
