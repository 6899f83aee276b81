package controlplane

import (
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

const maxProtected = 10

// GetTaskProtection returns which tasks are protected from scale-in.
func (a *taskAPI) GetTaskProtection(call shapes.Call, in shapes.TaskProtectionInput) (shapes.TaskProtectionOutput,
	error) {
	return a.protect(call, in, nil)
}

// UpdateTaskProtection protects service tasks from scale-in, for two hours
// unless the call has another time, or ends it.
func (a *taskAPI) UpdateTaskProtection(call shapes.Call, in shapes.TaskProtectionInput) (shapes.TaskProtectionOutput,
	error) {
	minutes := taskdef.Or(in.ExpiresInMinutes, metadata.DefaultProtection)
	switch {
	case in.ProtectionEnabled == nil:
		return shapes.TaskProtectionOutput{}, shapes.Invalid("protectionEnabled must not be null.")
	case minutes < 1 || minutes > metadata.MaxProtection:
		return shapes.TaskProtectionOutput{},
			shapes.Invalid("expiresInMinutes must be between 1 and %d.", metadata.MaxProtection)
	}
	until := time.Time{}
	if *in.ProtectionEnabled {
		until = call.Now.Add(time.Duration(minutes) * time.Minute).UTC().Truncate(time.Second)
	}
	return a.protect(call, in, &until)
}

func (a *taskAPI) protect(call shapes.Call, in shapes.TaskProtectionInput,
	until *time.Time) (shapes.TaskProtectionOutput,
	error) {
	out := shapes.TaskProtectionOutput{ProtectedTasks: []shapes.ProtectedTask{}, Failures: []shapes.Failure{}}
	if len(in.Tasks) == 0 && until != nil {
		return out, shapes.Invalid("Tasks cannot be empty.")
	}
	if err := atMost("taskIds", len(in.Tasks), maxProtected); err != nil && until != nil {
		return out, err
	}
	err := a.state.each(in.Cluster, in.Tasks, a.state.account.TaskID, func(c *cluster, id string) {
		arn := a.state.account.Task(c.name, id)
		r := a.state.task(c, id, call.Now)
		switch {
		case r == nil:
			out.Failures = append(out.Failures, shapes.Failure{ARN: arn, Reason: shapes.Missing})
			return
		case r.Service == "" || r.Task.LastStatus == shapes.Stopped:
			out.Failures = append(out.Failures, shapes.Failure{ARN: arn, Reason: "TASK_NOT_VALID"})
			return
		}
		if until != nil {
			a.state.options.Protections.Set(arn, *until)
		}
		shown := shapes.ProtectedTask{TaskARN: arn}
		if at, ok := a.state.options.Protections.Until(arn, call.Now); ok {
			shown.ProtectionEnabled, shown.ExpirationDate = true, shapes.At(at)
		}
		out.ProtectedTasks = append(out.ProtectedTasks, shown)
	})
	return out, err
}
