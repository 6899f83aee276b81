package compose

import (
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// stopped reports whether a container has exited and is not restarted.
func stopped(c Container) bool {
	return c.Status == "exited" || c.Status == "dead" || c.Status == "removing"
}

// look returns the task as ECS's agent would report it. What it reported of the task's end before is
// kept.
func (t *task) look(now time.Time) scheduler.View {
	v := t.view
	v.Containers = nil
	if t.stopping() {
		v.DesiredStatus = scheduler.StatusStopped
		if v.StoppingAt.IsZero() {
			v.StoppingAt = now
			v.StopCode, v.StoppedReason = t.why()
		}
	} else { // also after a container was started again
		v.DesiredStatus, v.StoppingAt, v.StopCode, v.StoppedReason = scheduler.StatusRunning, time.Time{}, "", ""
	}
	for _, d := range t.Definition.ContainerDefinitions {
		v.Containers = append(v.Containers, t.container(d, v.DesiredStatus))
	}
	v.KnownStatus = t.known(&v)
	return v
}

// stopping reports whether the desired status is STOPPED: an essential container has exited, or the
// project is being stopped, which starts with a request to stop one of the task's containers.
func (t *task) stopping() bool {
	if t.holder.Status != "running" && t.holder.Status != "paused" {
		return true
	}
	return t.anyAsked() || t.essentialEnded() != ""
}

// stopRequested reports whether the engine was asked to stop a container since its last start.
func (t *task) stopRequested(name string) bool {
	at, asked := t.asked[name]
	if name == "" {
		return asked && at.After(t.holder.StartedAt)
	}
	c, started := t.containers[name]
	return asked && started && at.After(c.StartedAt)
}

func (t *task) anyAsked() bool {
	for name := range t.asked {
		if t.stopRequested(name) {
			return true
		}
	}
	return false
}

// essentialEnded returns the first essential container that has exited, or "".
func (t *task) essentialEnded() string {
	for _, d := range t.Definition.ContainerDefinitions {
		if c, ok := t.containers[d.Name]; ok && d.IsEssential() && stopped(c) {
			return d.Name
		}
	}
	return ""
}

func (t *task) why() (code, reason string) {
	if t.essentialEnded() != "" && !t.anyAsked() {
		return scheduler.StopEssentialContainerExited, scheduler.EssentialExited
	}
	return scheduler.StopUserInitiated, scheduler.StoppedByUser
}

// container returns a container of the task.
func (t *task) container(d taskdef.Container, taskDesired string) scheduler.ContainerView {
	v := scheduler.ContainerView{
		Name: d.Name, Image: d.Image, Essential: d.IsEssential(),
		DesiredStatus: taskDesired, KnownStatus: scheduler.StatusNone,
	}
	c, exists := t.containers[d.Name]
	if d.HealthCheck.Enabled() {
		v.Health = t.judge(d.Name, c)
	}
	restarts := d.RestartPolicy != nil && d.RestartPolicy.Enabled
	if restarts {
		v.RestartCount = &c.RestartCount
	}
	switch {
	case !exists:
		return v
	case c.StartedAt.IsZero():
		v.KnownStatus = scheduler.StatusPulled
		if stopped(c) || taskDesired == scheduler.StatusStopped {
			v.KnownStatus = scheduler.StatusStopped // it will not run
		}
		return v
	}
	v.KnownStatus, v.StartedAt = scheduler.StatusRunning, c.StartedAt
	if stopped(c) {
		v.KnownStatus, v.FinishedAt = scheduler.StatusStopped, c.FinishedAt
		v.ExitCode = &c.ExitCode
		if c.OutOfMemory {
			v.Reason = scheduler.OutOfMemory
		}
	}
	return v
}

// known returns the task's status: NONE until every container is running or has exited.
func (t *task) known(v *scheduler.View) string {
	ended, waiting := 0, 0
	var started, finished time.Time // the last ones
	for _, c := range v.Containers {
		started = latest(started, c.StartedAt)
		switch c.KnownStatus {
		case scheduler.StatusStopped:
			ended++
			finished = latest(finished, c.FinishedAt)
			if c.Essential && !c.FinishedAt.IsZero() && (v.ExecutionStoppedAt.IsZero() || c.FinishedAt.Before(v.ExecutionStoppedAt)) {
				v.ExecutionStoppedAt = c.FinishedAt
			}
		case scheduler.StatusNone, scheduler.StatusPulled:
			waiting++
		}
	}
	if ended == len(v.Containers) || v.DesiredStatus == scheduler.StatusStopped && ended+waiting == len(v.Containers) {
		v.StoppedAt = latest(v.StoppedAt, finished)
		return scheduler.StatusStopped
	}
	v.StoppedAt = time.Time{}
	if v.StartedAt.IsZero() {
		if waiting > 0 {
			return scheduler.StatusNone
		}
		v.StartedAt = started
	}
	return scheduler.StatusRunning
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// healths maps the engine's health statuses to ECS's.
var healths = map[string]string{"healthy": scheduler.HealthHealthy, "unhealthy": scheduler.HealthUnhealthy}

// judge returns a container's health as of its last change. An exited container keeps its health, and
// a recovered one the exit code of the failure.
func (t *task) judge(name string, c Container) *scheduler.HealthView {
	old := t.health[name]
	if old == nil {
		old = &scheduler.HealthView{Status: scheduler.HealthStarting}
	}
	status, decided := "", false
	if c.Health != nil && !stopped(c) {
		status, decided = healths[c.Health.Status]
	}
	if decided && status != old.Status {
		changed := scheduler.HealthView{Status: status, Since: c.Health.At, ExitCode: old.ExitCode, Output: scheduler.HealthOutput(c.Health.Output)}
		if status == scheduler.HealthUnhealthy {
			changed.ExitCode = c.Health.ExitCode
		}
		old = &changed
	}
	t.health[name] = old
	shown := *old
	return &shown
}
