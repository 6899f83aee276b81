package controller

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// ECS reports which tasks exist; *awsutil.ECSReader does.
type ECS interface {
	List(ctx context.Context, cluster, desiredStatus string, each func(id string)) error
	Describe(ctx context.Context, cluster string, ids []string) (awsutil.DescribedTasks, error)
	Counts() awsutil.CallCounts
}

// CleanerOptions are what a Cleaner needs to know.
type CleanerOptions struct {
	// Consul is from consulutil.NewClient; its token needs acl:write, and write for
	// all nodes and services.
	Consul *api.Client
	ECS    ECS
	// Cluster is whose tasks are judged.
	Cluster   awsutil.Cluster
	Leftovers Leftovers
	// Partition is the admin partition whose namespaces are cleaned, Consul
	// Enterprise only.
	Partition string
	// EnsureNamespaces makes the missing ones of these namespaces of the partition. It
	// is not called without a partition.
	EnsureNamespaces func(ctx context.Context, names []string) ([]setup.Write, error)
	Log              hclog.Logger
}

// Cleaner removes what the dead tasks of one cluster left in Consul. It remembers
// what its passes observed and is not safe for concurrent use.
type Cleaner struct {
	CleanerOptions
	limits     limits
	started    time.Time
	cache      map[Tenancy]cache
	memory     memory
	namespaces namespaces
	nodes      map[string]pendingNode // guarded by deletions.mu during Apply
	warned     bool                   // about tokens of clusters without a controller
}

// NewCleaner returns a Cleaner that has observed nothing.
func NewCleaner(o CleanerOptions) *Cleaner {
	return &Cleaner{
		CleanerOptions: o, limits: defaultLimits(), started: time.Now(), cache: map[Tenancy]cache{},
		nodes:      map[string]pendingNode{},
		namespaces: namespaces{tasks: map[string]string{}, untagged: map[string]time.Time{}},
	}
}

// now returns the time of the Cleaner's clock. It is monotonic: setting the machine's clock does
// not move it.
func (c *Cleaner) now() time.Duration { return time.Since(c.started) }

// Report is what a pass found and did. Its JSON is for scripts.
type Report struct {
	Cluster string `json:"cluster"`
	// Running is how many tasks ECS lists as running. Tokens and Services count those
	// of the cluster's tasks in Consul, Foreign those that look alike and belong
	// neither to them nor to another cluster's.
	Running  int `json:"running"`
	Tokens   int `json:"tokens"`
	Services int `json:"services"`
	Foreign  int `json:"foreign"`
	// Unclaimed counts tokens of our auth methods that name clusters of which no controller has
	// a record.
	Unclaimed int `json:"unclaimed"`
	// Partial means that not all of Consul and ECS could be read: there may be more
	// of everything.
	Partial bool `json:"partial,omitempty"`
	Plan
	// Deleted are the items of the plan that were deleted, and nodes.
	Deleted []Item `json:"deleted,omitempty"`
	// Failed are the items that could not be deleted; the next pass tries again.
	Failed []Failed `json:"failed,omitempty"`
	// AWS is what the pass has spent, ConsulErrors how many requests failed.
	AWS          awsutil.CallCounts `json:"aws"`
	ConsulErrors int                `json:"consul_errors"`

	// NodeMissing means that Consul does not have the cluster's own node, which only setup
	// may make: until then the tasks cannot register.
	NodeMissing bool `json:"-"`

	running map[string]struct{} // nil if ECS did not list all
}

// Failed is an item that could not be deleted.
type Failed struct {
	Item
	Err string `json:"error"`
}

// Forget drops what was observed of missing tasks. It is for a leader that led before:
// the tasks may have been shown to others since.
func (c *Cleaner) Forget() { c.memory.missing = nil }

// Pass looks at all tasks, deletes what dead ones left, and makes the namespaces of
// those that run. Its error means that it could not look everywhere. What could not be
// deleted or made is logged and left to the next pass.
func (c *Cleaner) Pass(ctx context.Context) (Report, error) {
	before := c.ECS.Counts()
	r, err := c.Look(ctx)
	if applyErr := c.Apply(ctx, &r); applyErr != nil && ctx.Err() == nil {
		c.Log.Warn("deletions failed, trying again", logkey.Failed, len(r.Failed), logkey.Error, applyErr)
	}
	// Last: it may wait for another controller's lock.
	if err := c.ensureNamespaces(ctx, r.running); err != nil && ctx.Err() == nil {
		c.Log.Warn("namespaces of tasks were not created, trying again", logkey.Error, err)
	}
	r.AWS = c.ECS.Counts().Sub(before)
	return r, err
}

// Look reads Consul, then ECS, and plans the deletions. It writes nothing. Beside an
// error the plan still holds what was proven.
func (c *Cleaner) Look(ctx context.Context) (Report, error) {
	before := c.ECS.Counts()
	r := Report{Cluster: c.Cluster.ARN, Plan: Plan{Delete: []Item{}, Kept: []RetainedTask{}}} // not null in JSON
	s, err := c.snapshot(ctx, &r)
	r.Running, r.Tokens, r.Services = len(s.Running), len(s.Tokens), len(s.Services)
	if r.running = s.Running; r.running != nil {
		r.Plan, c.memory = decide(s, c.memory, c.now(), c.limits)
	} else { // nothing is known of any task
		c.memory.missing = nil
	}
	r.AWS = c.ECS.Counts().Sub(before)
	r.Partial = err != nil
	return r, err
}

// snapshot reads tokens and services before tasks: what belongs to a task that
// starts in between is not in it. Running is nil when ECS did not list all tasks.
func (c *Cleaner) snapshot(ctx context.Context, r *Report) (*snapshot, error) {
	s, err := c.readConsul(ctx, r)
	s.Partial = err != nil
	if ctx.Err() != nil {
		return s, err
	}
	return s, errors.Join(err, c.readECS(ctx, s))
}
