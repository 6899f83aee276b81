package file

import (
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/taskdef"
)

// AddedContainer is a container that AWS adds to tasks.
type AddedContainer struct {
	// Image stands for AWS's own.
	Image   string   `yaml:"image"`
	Command []string `yaml:"command"`
	// HealthCheck is the command of its health check, which runs every 5 s.
	HealthCheck []string `yaml:"healthCheck"`
}

// container returns what ECS adds to a task; nil for none.
func (a *AddedContainer) container(essential bool) *taskdef.Container {
	if a == nil {
		return nil
	}
	c := &taskdef.Container{Image: a.Image, Command: a.Command, Essential: &essential}
	if len(a.HealthCheck) > 0 {
		c.HealthCheck = &taskdef.HealthCheck{Command: a.HealthCheck, Interval: new(5)}
	}
	return c
}

// serviceConnectUser is that of the proxy of Service Connect.
const serviceConnectUser = "20000"

// Added returns the containers that ECS adds to the scenario's tasks.
func (s *Scenario) Added() controlplane.Added {
	proxy := s.ServiceConnect.container(true)
	if proxy != nil {
		proxy.User = serviceConnectUser
	}
	return controlplane.Added{ServiceConnect: proxy, GuardDuty: s.GuardDuty.container(false)}
}

// added yields the containers that ECS adds by their keys in the file.
func (s *Scenario) added(yield func(key string, a *AddedContainer) bool) {
	if s.ServiceConnect != nil && !yield("serviceConnect", s.ServiceConnect) {
		return
	}
	if s.GuardDuty != nil {
		yield("guardDuty", s.GuardDuty)
	}
}

// addedProblems checks the containers that ECS adds.
func (s *Scenario) addedProblems(add func(string, ...any)) {
	for key, a := range s.added {
		if a.Image == "" {
			add("%s.image: want the image that stands for AWS's, one of images", key)
		}
		if check := a.HealthCheck; len(check) > 0 &&
			(check[0] == "NONE" || len(check) == 1 && (check[0] == "CMD" || check[0] == "CMD-SHELL")) {
			add("%s.healthCheck: want a command", key)
		}
	}
	if a := s.ServiceConnect; a != nil && len(a.HealthCheck) == 0 {
		add("serviceConnect.healthCheck: want a command: the other containers of the task start when the proxy is " +
			"HEALTHY")
	}
	for name, service := range s.Services {
		if service.ServiceConnect && s.ServiceConnect == nil {
			add("services[%q].serviceConnect: the scenario has no proxy for it: add serviceConnect: {image, "+
				"healthCheck}", name)
		}
	}
}
