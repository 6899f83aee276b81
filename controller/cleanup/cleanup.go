package cleanup

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil/ecsread"
)

// ECS says which tasks there are; *ecsread.Reader does.
type ECS interface {
	List(ctx context.Context, cluster, desiredStatus string, each func(id string)) error
	Describe(ctx context.Context, cluster string, ids []string) (ecsread.Answer, error)
	Counts() ecsread.Counts
}

// Options are what a Cleaner needs to know.
type Options struct {
	// Consul is from consulutil.NewClient; its token needs acl:write, and write for
	// all nodes and services.
	Consul *api.Client
	ECS    ECS
	// Cluster is whose tasks are judged.
	Cluster   ecsread.Cluster
	Leftovers Leftovers
	// Partition is the admin partition whose namespaces are cleaned, Consul
	// Enterprise only.
	Partition string
	// Limits are DefaultLimits, if zero.
	Limits Limits
	Log    hclog.Logger
}

// Cleaner removes what the dead tasks of one cluster left in Consul. It remembers
// what its passes have seen and is not safe for concurrent use.
type Cleaner struct {
	Options
	began  time.Time
	cache  map[Place]*cache
	memory memory
	nodes  map[string]waiting // guarded by applying.mu during Apply
}

// New returns a Cleaner that has seen nothing yet.
func New(o Options) *Cleaner {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	return &Cleaner{Options: o, began: time.Now(), cache: map[Place]*cache{}, nodes: map[string]waiting{}}
}

// now is the Cleaner's clock. It is monotonic: setting the machine's clock does
// not move it.
func (c *Cleaner) now() time.Duration { return time.Since(c.began) }

// Report is what a pass has found and done. JSON has it for scripts.
type Report struct {
	Cluster string `json:"cluster"`
	// Running is how many tasks ECS lists as such; Tokens and Services are how
	// many are ours in Consul, and Foreign those that look alike and are not, nor
	// another cluster's.
	Running  int `json:"running"`
	Tokens   int `json:"tokens"`
	Services int `json:"services"`
	Foreign  int `json:"foreign"`
	// Partial means that not all of Consul and ECS could be read: there may be more
	// of everything.
	Partial bool `json:"partial,omitempty"`
	Plan
	// Deleted are the items of the plan that are gone, and nodes.
	Deleted []Item `json:"deleted,omitempty"`
	// Failed are the items that could not be deleted; the next pass tries again.
	Failed []Failed `json:"failed,omitempty"`
	// AWS is what the pass has spent, ConsulErrors how many requests failed.
	AWS          ecsread.Counts `json:"aws"`
	ConsulErrors int            `json:"consul_errors"`
}

// Failed is an item that could not be deleted.
type Failed struct {
	Item
	Err string `json:"error"`
}

// Forget takes back that tasks were missing. It is for a leader that led before:
// others may have seen the tasks since.
func (c *Cleaner) Forget() { c.memory.missing = nil }

// Look reads Consul, then ECS, and says in the report what is to be deleted. It
// writes nothing. Beside an error the plan holds what was proven all the same.
func (c *Cleaner) Look(ctx context.Context) (Report, error) {
	spent := c.ECS.Counts()
	r := Report{Cluster: c.Cluster.ARN, Plan: Plan{Delete: []Item{}, Kept: []Kept{}}} // not null in JSON
	s, err := c.snapshot(ctx, &r)
	r.Running, r.Tokens, r.Services = len(s.Running), len(s.Tokens), len(s.Services)
	if s.Running != nil {
		r.Plan, c.memory = decide(s, c.memory, c.now(), c.Limits)
	} else { // nothing can be said of any task
		c.memory.missing = nil
	}
	r.AWS = c.ECS.Counts().Sub(spent)
	r.Partial = err != nil
	return r, err
}

// snapshot reads tokens and services before tasks: what belongs to a task that
// starts in between is not in it. Running is nil when ECS did not list all tasks.
func (c *Cleaner) snapshot(ctx context.Context, r *Report) (*Snapshot, error) {
	s, err := c.readConsul(ctx, r)
	s.Partial = err != nil
	if ctx.Err() != nil {
		return s, err
	}
	return s, errors.Join(err, c.readECS(ctx, s))
}
