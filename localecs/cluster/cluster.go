package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/inflight"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// errClosed means that an operation was to begin after Close.
var errClosed = errors.New("the cluster is closed")

// Options describe a cluster.
type Options struct {
	Name, Region, Account string
	// Network is how tasks are connected; its Limitations lists what they do not have.
	Network network.Mode
	// Subnet is the VPC's only subnet, CIDR; see network.Options.
	Subnet string
	// AtOnce stops all containers of a task at once, as older ECS agents do, instead of in reverse dependsOn order.
	AtOnce bool
	// Docker is the address of the Docker engine that runs the containers, see
	// docker.Options; empty runs them as processes of this host.
	Docker string
	// Dir takes logs (Dir/logs) and volumes (Dir/volumes).
	Dir string
	// Images are what a container of an image sees, by image name.
	Images runtime.Images
	Roles  []iam.Role
	// Secrets are the values behind a container's secrets; see Secret for their names.
	Secrets map[string]string
	// EnvironmentFiles are the contents of environmentFiles, by ARN.
	EnvironmentFiles map[string]string
	// Added are the containers that AWS adds to tasks, of a Region.
	Added controlplane.Added
	// CloudMap is controlplane.Options' own.
	CloudMap map[string]string
	// TimeScale divides every duration of task definitions, for tests that cannot wait; 0 means 1.
	TimeScale float64
	// GatePeriod is scheduler.Options' own, HealthyAfter controlplane.Options', which TimeScale divides.
	GatePeriod   time.Duration
	HealthyAfter time.Duration
	// Observe gets every status change, in order for each task. It must not block.
	Observe func(Event)
	// Output, which may be nil, gets each line of output besides the log, with its newline. The container waits for it.
	Output func(task, container string, line []byte)
	Log    hclog.Logger
}

// AWS returns the account, in its region.
func (o Options) AWS() shapes.Account { return shapes.Account{Region: o.Region, ID: o.Account} }

// Event is what an observer of the cluster sees.
type Event = scheduler.Change

// Cluster is a running local ECS with one VPC. Close takes all of it away.
type Cluster struct {
	options   Options
	fabric    *network.Fabric
	runtime   containers
	endpoints *endpoints
	// group starts what is no task's.
	group runtime.Group
	// faults are those of all endpoints.
	faults *Faults
	// protections are those of service tasks, as the ECS API sees them.
	protections *metadata.Protections

	visitors inflight.Group
	leaving  chan struct{}  // closed when visitors are to end
	starting inflight.Group // starts of tasks and services
	tasks    taskList       // those that have not ended
	mu       sync.Mutex
	secrets  map[string]string
	services []*Running

	draining atomic.Bool // no stop waits for an agent's poll
	closing  sync.Once
	closed   error // of close

	// fatal closes lost with a reason, which cause returns. Only the first counts.
	fatal context.CancelCauseFunc
	lost  <-chan struct{}
	cause func() error
	gone  chan struct{} // closed by close
}

// Open makes the cluster: network, process runtime, STS and IAM.
func Open(o Options) (*Cluster, error) {
	lost, fatal := context.WithCancelCause(context.Background())
	c := &Cluster{
		options: o, faults: &Faults{}, protections: metadata.NewProtections(), secrets: map[string]string{},
		leaving: make(chan struct{}), gone: make(chan struct{}),
		fatal: fatal, lost: lost.Done(), cause: func() error { return context.Cause(lost) },
	}
	maps.Copy(c.secrets, o.Secrets)
	if err := os.MkdirAll(c.LogDir(), 0o755); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	c.endpoints = &endpoints{account: o.AWS(), store: iam.NewStore(), faults: c.faults, infra: c.fabric.Infra()}
	for _, r := range o.Roles {
		c.endpoints.store.PutRole(r)
	}
	if err := c.serve(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// serve opens what every task can ask. Where tasks share the host's network, another
// program may have the DNS port: then task names do not resolve. The HTTPS port is an application's there.
func (c *Cluster) serve() error {
	if err := c.endpoints.serveAWS(); err != nil {
		return err
	}
	shared := c.options.Network == network.Host
	if !shared {
		if err := c.endpoints.serveHTTPS(filepath.Join(c.volumeDir(), "trust")); err != nil {
			return err
		}
	}
	err := c.endpoints.serveDNS(c.resolve)
	if err != nil && shared {
		c.options.Log.Warn("task names do not resolve", logkey.Error, err)
		return nil
	}
	return err
}

// AWS returns what tasks find at AWSEndpoint: STS, IAM, and the ECS API once there is one.
func (c *Cluster) AWS() http.Handler { return c.endpoints.handler() }

// Disturb makes an endpoint misbehave until end is called. Its Task is a name given to Run, whether it has been or will
// be; seed draws the requests of a share.
func (c *Cluster) Disturb(e chaos.Endpoint, seed uint64) (end func()) { return c.faults.Begin(e, seed) }

// Identities returns the account's roles, users and keys.
func (c *Cluster) Identities() *iam.Store { return c.endpoints.store }

// Protections returns those that service tasks have.
func (c *Cluster) Protections() *metadata.Protections { return c.protections }

// resolve returns the addresses of a name, and whether a task or AWS has that name.
func (c *Cluster) resolve(name string) (addresses []netip.Addr, exists bool) {
	if slices.Contains(c.endpoints.awsHosts, name) {
		return []netip.Addr{c.fabric.Infra().Gateway}, true
	}
	if ip, ok := c.fabric.Host(name); ok {
		return []netip.Addr{ip}, true
	}
	return c.tasks.resolve(name)
}

// AWSEndpoint returns the URL of STS and IAM: the VPC's gateway, with host networking a free port of it.
func (c *Cluster) AWSEndpoint() string { return "http://" + c.endpoints.aws }

// LogDir returns the path with a directory per task, and in that a log per container.
func (c *Cluster) LogDir() string { return filepath.Join(c.options.Dir, "logs") }

// LogFile returns the path of a container's output; task is the name given to Run.
func (c *Cluster) LogFile(task, container string) string {
	return filepath.Join(c.LogDir(), task, container+".log")
}

func (c *Cluster) volumeDir() string { return filepath.Join(c.options.Dir, "volumes") }

// Fabric returns the network; its Infra is the VPC's own, outside of every task.
func (c *Cluster) Fabric() *network.Fabric { return c.fabric }

// Lost returns a channel that is closed when the cluster cannot go on; Err is the reason.
func (c *Cluster) Lost() <-chan struct{} { return c.lost }

// Err returns why the cluster cannot go on: a process was killed that belongs to the simulator, or the host had not
// what a container takes. It is nil as long as it can, and right also before Lost is closed.
func (c *Cluster) Err() error {
	return cmp.Or(c.runtime.Err(), c.cause())
}

// fail records why a container has failed, if it is the host's fault.
func (c *Cluster) fail(err error) {
	if _, missing := errors.AsType[*host.MissingError](err); missing {
		c.fatal(err)
	}
}

// PutSecret sets a value of Options.Secrets, for tasks started from now on.
func (c *Cluster) PutSecret(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secrets[name] = value
}

func (c *Cluster) secret(name string) (value string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok = c.secrets[name]
	return value, ok
}

// Close kills what runs and gives everything back but the logs. Further calls return the first one's error.
func (c *Cluster) Close() error {
	c.closing.Do(func() { c.closed = c.close() })
	return c.closed
}

func (c *Cluster) close() error {
	_, started := c.starting.Close()
	started() // else what is started meanwhile would stay
	c.mu.Lock()
	services := c.services
	c.mu.Unlock()
	_, left := c.visitors.Close()
	close(c.leaving)
	left()
	for _, t := range c.tasks.all() {
		t.abort()
	}
	for _, s := range services {
		s.Stop()
	}
	err := c.endpoints.close()
	close(c.gone)
	return errors.Join(err, c.group.Close(), c.runtime.Close(), c.fabric.Close(), os.RemoveAll(c.volumeDir()))
}
