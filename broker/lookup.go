package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"golang.org/x/time/rate"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/taskdef"
)

const (
	// DescribeRate is how many calls of DescribeTasks the broker starts a second, at most.
	DescribeRate = 10
	// batchSize is how many tasks DescribeTasks takes.
	batchSize = 100
	// lookupLimit bounds a look-up, the wait for its turn included.
	lookupLimit = 15 * time.Second
	// maxBatches bounds the batches that wait for their turn.
	maxBatches = 50
	// maxDefinitions bounds the revisions that are remembered.
	maxDefinitions = 1000
	// networkPause is when a task without a network interface should ask again, and
	// busyPause when a task should that met a limit of the broker's.
	networkPause, busyPause = time.Second, 2 * time.Second
)

// errNotDescribed is for callers that may be strangers: the logs have what AWS answered.
var errNotDescribed = later(http.StatusBadGateway, "ecs", busyPause,
	"ECS did not describe the task or its definition; the log of the broker has the cause")

// TaskSource is the ECS API.
type TaskSource interface {
	// DescribeTasks describes up to 100 tasks of a cluster, with their tags.
	DescribeTasks(ctx context.Context, cluster string, tasks []string) (*ecs.DescribeTasksOutput, error)
	// DescribeTaskDefinition returns the JSON of a revision, with its tags.
	DescribeTaskDefinition(ctx context.Context, arn string) ([]byte, error)
}

// lookups reads tasks in batches, and revisions once.
type lookups struct {
	source TaskSource
	run    func(job func(life context.Context)) bool // as jobs.start; life is the context of the leadership
	budget *rate.Limiter
	called func()      // before each call of DescribeTasks
	failed func(error) // after a call that failed

	mu      sync.Mutex
	open    map[string]*batch // by cluster: takes more tasks until it is sent
	waiting int               // batches
	known   map[string]*definition
}

// batch is one call of DescribeTasks.
type batch struct {
	arns map[string]struct{}
	done chan struct{}
	// Written before done is closed.
	out *ecs.DescribeTasksOutput
	err error
}

// definition is what matters of a revision, which never changes, except for its tags: they
// count as they were when the revision was first described.
type definition struct {
	done        chan struct{}
	annotations annotations
	// admitted reports whether the revision has the tag of consul-ecs admit with its own hash.
	admitted bool
	// unpinned names an image that is not named by its digest, and its container; or is empty.
	unpinned string
	err      error
}

func newLookups(
	source TaskSource, run func(job func(life context.Context)) bool, called func(), failed func(error),
) *lookups {
	return &lookups{
		source: source, run: run, called: called, failed: failed, budget: rate.NewLimiter(DescribeRate, DescribeRate/2),
		open: map[string]*batch{}, known: map[string]*definition{},
	}
}

// task describes one task. The call begins after task was called, so that the answer is
// no older.
func (l *lookups) task(ctx context.Context, cluster, arn string) (*types.Task, error) {
	b, err := l.join(cluster, arn)
	if err != nil {
		return nil, err
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		return nil, later(http.StatusBadGateway, "ecs", busyPause, "ECS did not describe the task in time")
	}
	if none, ok := errors.AsType[*awsutil.NoClusterError](b.err); ok && none.Inactive {
		return nil, errUnknownTask.because(errors.New("the cluster was deleted"))
	}
	if b.err != nil {
		return nil, errNotDescribed.because(b.err)
	}
	for i := range b.out.Tasks {
		if aws.ToString(b.out.Tasks[i].TaskArn) == arn {
			return &b.out.Tasks[i], nil
		}
	}
	for _, f := range b.out.Failures {
		if aws.ToString(f.Arn) == arn && aws.ToString(f.Reason) != awsutil.TaskMissing {
			return nil, errNotDescribed.because(errors.New(aws.ToString(f.Reason)))
		}
	}
	return nil, errUnknownTask
}

// join adds a task to a batch that was not sent yet.
func (l *lookups) join(cluster, arn string) (*batch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.open[cluster]
	if b == nil || len(b.arns) == batchSize {
		if l.waiting == maxBatches {
			return nil, later(http.StatusServiceUnavailable, "busy", busyPause, "too many tasks are waiting for ECS")
		}
		b = &batch{arns: map[string]struct{}{}, done: make(chan struct{})}
		if !l.run(func(life context.Context) { l.send(life, cluster, b) }) {
			return nil, errNotLeader
		}
		l.waiting++
		l.open[cluster] = b
	}
	b.arns[arn] = struct{}{}
	return b, nil
}

func (l *lookups) send(life context.Context, cluster string, b *batch) {
	defer close(b.done)
	ctx, cancel := context.WithTimeout(life, lookupLimit)
	defer cancel()
	err := l.budget.Wait(ctx)
	l.mu.Lock()
	l.waiting--
	if l.open[cluster] == b {
		delete(l.open, cluster)
	}
	l.mu.Unlock()
	if b.err = err; err != nil {
		return
	}
	l.called()
	b.out, b.err = l.source.DescribeTasks(ctx, cluster, slices.Collect(maps.Keys(b.arns)))
	if b.err != nil && life.Err() == nil {
		l.failed(b.err)
	}
}

// definition describes a revision. Tasks of one revision share the call.
func (l *lookups) definition(ctx context.Context, arn string) (*definition, error) {
	l.mu.Lock()
	d := l.known[arn]
	if d == nil {
		if len(l.known) >= maxDefinitions {
			clear(l.known)
		}
		d = &definition{done: make(chan struct{})}
		if !l.run(func(life context.Context) { l.define(life, arn, d) }) {
			l.mu.Unlock()
			return nil, errNotLeader
		}
		l.known[arn] = d
	}
	l.mu.Unlock()
	select {
	case <-d.done:
		return d, d.err
	case <-ctx.Done():
		return nil, later(http.StatusBadGateway, "ecs", busyPause, "ECS did not describe the task definition in time")
	}
}

func (l *lookups) define(life context.Context, arn string, d *definition) {
	defer close(d.done)
	ctx, cancel := context.WithTimeout(life, lookupLimit)
	defer cancel()
	var out *taskdef.Document
	text, err := l.source.DescribeTaskDefinition(ctx, arn)
	if err == nil {
		out, err = taskdef.Parse(text)
	}
	_, invalid := errors.AsType[*taskdef.InvalidError](err)
	if invalid { // ECS has accepted the revision: the values of the right type count
		err = nil
	}
	if err == nil && out.Definition.TaskDefinitionARN != arn {
		err = fmt.Errorf("ECS described a revision other than %s", arn)
	}
	if err != nil {
		if life.Err() == nil {
			l.failed(err)
		}
		d.err = errNotDescribed.because(err)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.known[arn] == d {
			delete(l.known, arn)
		}
		return
	}
	d.admitted, d.unpinned = !invalid && out.Definition.Admitted(), unpinned(out.Definition)
	if d.annotations, err = labels(out.Definition); err != nil {
		d.err = refuse(http.StatusUnprocessableEntity, "labels", "%v", err)
	}
}
