package controller

import (
	"context"
	"errors"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
)

// modelECS is ECS as the model has it: the Cleaner's ECS.
type modelECS struct {
	m     *model
	tasks []*modelTask
	// errors is how bad AWS is: 1 fails sometimes, 2 always.
	errors int
	// slow is how long a call takes at most.
	slow time.Duration
}

func (e *modelECS) fails() bool {
	return e.errors == 2 || e.errors == 1 && e.m.chance(0.3)
}

// linger lets time pass before an answer.
func (e *modelECS) linger() {
	if e.slow > 0 && e.m.chance(0.5) {
		<-time.After(time.Duration(e.m.random.Int64N(int64(e.slow))))
	}
}

// List implements ECS: lists that fail have returned a part before.
func (e *modelECS) List(_ context.Context, _, desired string, each func(string)) error {
	e.linger()
	fails := e.fails()
	for _, t := range e.tasks {
		if fails && e.m.chance(0.5) {
			continue
		}
		if visible := t.shown() && !t.vanished(); visible && t.desired(desired) {
			each(t.id)
		}
	}
	if fails {
		return errors.New("page 2: ThrottlingException: Rate exceeded")
	}
	return nil
}

// Describe implements ECS: answers may be partial.
func (e *modelECS) Describe(_ context.Context, cluster string, ids []string) (awsutil.DescribedTasks, error) {
	e.linger()
	var a awsutil.DescribedTasks
	if e.fails() {
		ids = ids[:e.m.random.IntN(len(ids)+1)]
		a.Failures = append(a.Failures, awsutil.TaskFailure{ID: e.m.id(), Reason: awsutil.TaskMissing})
	}
	for _, id := range ids {
		switch t := e.find(id); {
		case e.errors > 0 && e.m.chance(0.1):
		case e.errors > 0 && e.m.chance(0.1):
			a.Failures = append(a.Failures, awsutil.TaskFailure{ID: id, Reason: "INTERNAL"})
		case t == nil || !t.shown() || t.vanished() || t.forgotten():
			a.Failures = append(a.Failures, awsutil.TaskFailure{ID: id, Reason: awsutil.TaskMissing})
		default:
			a.Tasks = append(a.Tasks,
				awsutil.ECSTask{ID: id, ClusterARN: cluster, LastStatus: t.last(), DesiredStatus: t.wanted()})
		}
	}
	if len(a.Tasks)+len(a.Failures) < len(ids) {
		return a, errors.New("describe: ServerException")
	}
	return a, nil
}

// Counts implements ECS.
func (e *modelECS) Counts() awsutil.CallCounts { return awsutil.CallCounts{} }

func (e *modelECS) find(id string) *modelTask {
	for _, t := range e.tasks {
		if t.id == id {
			return t
		}
	}
	return nil
}

// latest returns how long it takes until ECS shows all that has happened.
func (e *modelECS) latest() time.Duration {
	latest := vanishing
	for _, t := range e.tasks {
		latest = max(latest, t.lag, time.Until(t.forgets))
	}
	return min(latest, 5*time.Minute)
}
