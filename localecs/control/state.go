package control

import "time"

// State is how a run is at one moment.
type State struct {
	// Name is the scenario's; Command is run or serve.
	Name    string `json:"name"`
	Command string `json:"command"`
	// Version is that of the program.
	Version string `json:"version"`
	// Directory has its logs and volumes.
	Directory string `json:"directory"`
	// Tasks are in the order of their start, stopped ones included for an hour.
	Tasks    []Task    `json:"tasks"`
	Services []Service `json:"services"`
	// Planned are tasks and services of the run that have not begun; nil where
	// nobody has a plan.
	Planned []string `json:"planned"`
	// Consul is nil before there is a server, or without one.
	Consul *Consul `json:"consul,omitempty"`
	// Ended says that nothing runs any more.
	Ended bool `json:"ended,omitempty"`
}

// Task is a task in the words of the ECS API.
type Task struct {
	Name              string      `json:"name"`
	ID                string      `json:"id"`
	TaskARN           string      `json:"taskArn"`
	TaskDefinitionARN string      `json:"taskDefinitionArn"`
	Family            string      `json:"family"`
	Cluster           string      `json:"cluster"`
	Service           string      `json:"service,omitempty"`
	LastStatus        string      `json:"lastStatus"`
	DesiredStatus     string      `json:"desiredStatus"`
	HealthStatus      string      `json:"healthStatus"`
	Address           string      `json:"address,omitempty"`
	StartedAt         time.Time   `json:"startedAt,omitzero"`
	StoppedAt         time.Time   `json:"stoppedAt,omitzero"`
	StopCode          string      `json:"stopCode,omitempty"`
	StoppedReason     string      `json:"stoppedReason,omitempty"`
	Containers        []Container `json:"containers"`
}

// Container is a container of a Task.
type Container struct {
	Name       string `json:"name"`
	Image      string `json:"image"`
	Essential  bool   `json:"essential"`
	LastStatus string `json:"lastStatus"`
	// HealthStatus is empty for a container without a health check.
	HealthStatus string    `json:"healthStatus,omitempty"`
	StartedAt    time.Time `json:"startedAt,omitzero"`
	FinishedAt   time.Time `json:"finishedAt,omitzero"`
	// ExitCode is nil while it runs and when it never did.
	ExitCode     *int   `json:"exitCode,omitempty"`
	Reason       string `json:"reason,omitempty"`
	RestartCount int    `json:"restartCount,omitempty"`
}

// Service is an ECS service.
type Service struct {
	Name         string `json:"name"`
	Cluster      string `json:"cluster"`
	DesiredCount int    `json:"desiredCount"`
	RunningCount int    `json:"runningCount"`
	PendingCount int    `json:"pendingCount"`
	// Steady says that its one deployment is complete and has all its tasks; Failed
	// why that will not be.
	Steady bool   `json:"steady"`
	Failed string `json:"failed,omitempty"`
}

// Consul is a run's Consul server.
type Consul struct {
	// Address is its HTTP API in the cluster's network.
	Address string `json:"address"`
	// Token may do everything; it is for visitors.
	Token string `json:"-"`
	// Passing is how many instances of each service Consul sends traffic to.
	Passing map[string]int `json:"passing"`
}

// HasPlan reports whether all that may begin is known: in a scenario, unless its tasks
// start others.
func (s State) HasPlan() bool { return s.Planned != nil }

// Stopped reports whether the task is over.
func (t Task) Stopped() bool { return t.LastStatus == "STOPPED" }

// Stopping reports whether it is over, or is to be.
func (t Task) Stopping() bool { return t.Stopped() || t.DesiredStatus == "STOPPED" }

// Status is its last status for people, and that it is to stop.
func (t Task) Status() string {
	if t.Stopping() && !t.Stopped() {
		return t.LastStatus + ", stopping"
	}
	return t.LastStatus
}

// Why is why it has stopped, or is to.
func (t Task) Why() string {
	if t.StopCode == "" {
		return t.StoppedReason
	}
	return t.StopCode + ": " + t.StoppedReason
}

// Standing says for people whether it is steady.
func (v Service) Standing() string {
	switch {
	case v.Failed != "":
		return "failed: " + v.Failed
	case v.Steady:
		return "steady"
	}
	return "not steady"
}

// Checked are the containers whose checks make the task healthy: the essential
// ones that have a check, else all that have one.
func (t Task) Checked() []Container {
	var essential, all []Container
	for _, c := range t.Containers {
		if c.HealthStatus == "" {
			continue
		}
		all = append(all, c)
		if c.Essential {
			essential = append(essential, c)
		}
	}
	if len(essential) > 0 {
		return essential
	}
	return all
}

// Healthy reports whether the task runs and all of Checked are HEALTHY. It is false
// without any check.
func (t Task) Healthy() bool {
	checked := t.Checked()
	for _, c := range checked {
		if c.HealthStatus != "HEALTHY" {
			return false
		}
	}
	return len(checked) > 0 && t.LastStatus == "RUNNING" && !t.Stopping()
}

// Decider is the container whose end has ended the task, or would have: the first
// of the essential ones that has ended. It is nil before.
func (t Task) Decider() *Container {
	var first *Container
	for i, c := range t.Containers {
		if c.Essential && c.ExitCode != nil && (first == nil || c.FinishedAt.Before(first.FinishedAt)) {
			first = &t.Containers[i]
		}
	}
	return first
}
