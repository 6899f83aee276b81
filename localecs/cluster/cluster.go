package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

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

// Options describe a cluster.
type Options struct {
	Name, Region, Account string
	// Network is how tasks are connected; its Limitations lists what they do not have.
	Network network.Mode
	// Subnet is the VPC's only subnet, CIDR; see network.Options.
	Subnet string
	// AtOnce stops all containers of a task at once, as older ECS agents do,
	// instead of in reverse dependsOn order.
	AtOnce bool
	// Docker is the address of the Docker engine that runs the containers, see
	// docker.Options; empty runs them as processes of this host.
	Docker string
	// Dir takes logs (Dir/logs) and volumes (Dir/volumes).
	Dir string
	// Images are what a container of an image sees, by image name.
	Images map[string]runtime.Image
	Roles  []iam.Role
	// Secrets are the values behind a container's secrets; see Secret
	// for their names.
	Secrets map[string]string
	// EnvironmentFiles are the contents of environmentFiles, by ARN.
	EnvironmentFiles map[string]string
	// Added are the containers that AWS adds to tasks, of a Region.
	Added controlplane.Added
	// TimeScale divides every duration of task definitions, for tests that
	// cannot wait; 0 means 1.
	TimeScale float64
	// GatePeriod makes containers that wait for others start only at a multiple
	// of it: the ECS agent looks every 5 s. 0 means at once.
	GatePeriod time.Duration
	// Observe gets every status change, in order for each task. It must not
	// block.
	Observe func(Event)
	// Output gets each line of a container's output, with its newline, besides
	// its log. It must not block for long: the container waits; nil is allowed.
	Output func(task, container string, line []byte)
	Log    hclog.Logger
}

// AWS returns the account, in its region.
func (o Options) AWS() shapes.Account { return shapes.Account{Region: o.Region, ID: o.Account} }

// Event is what an observer of the cluster sees.
type Event = scheduler.Change

// Cluster is a running local ECS with one VPC. Close takes all of it away.
type Cluster struct {
	options Options
	fabric  *network.Fabric
	runtime containers
	// group starts what is no task's.
	group runtime.Group
	store *iam.Store
	// ecs is the ECS API, where there is one.
	ecs atomic.Pointer[http.Handler]
	// aws is where STS and IAM are, in URLs, and awsHosts are AWS's own names of them;
	// none with host networking. trust is a directory with the certificate of their CA.
	aws      string
	awsHosts []string
	trust    string
	// closers end what serves STS, IAM and names.
	closers []func() error

	visitors operations
	leaving  chan struct{} // closed when visitors are to end
	// faults are those of all endpoints.
	faults *Faults
	// protections are kept for the whole cluster, as the ECS API sees them.
	protections *metadata.Protections

	making  operations // tasks and services
	closing sync.Once
	closed  error // of close

	// lose closes lost with a reason, which cause returns. Only the first counts.
	lose  context.CancelCauseFunc
	lost  <-chan struct{}
	cause func() error
	gone  chan struct{} // closed by close

	mu      sync.Mutex
	secrets map[string]string
	// tasks are those that are not over.
	tasks    []*Task
	services []*Running
}

// Open makes the cluster: network, process runtime, STS and IAM.
func Open(o Options) (*Cluster, error) {
	c := &Cluster{options: o, store: iam.NewStore(), faults: &Faults{}, protections: metadata.NewProtections(), secrets: map[string]string{}, leaving: make(chan struct{}), gone: make(chan struct{})}
	lost, lose := context.WithCancelCause(context.Background())
	c.lose, c.lost, c.cause = lose, lost.Done(), func() error { return context.Cause(lost) }
	maps.Copy(c.secrets, o.Secrets)
	for _, r := range o.Roles {
		c.store.PutRole(r)
	}
	if err := os.MkdirAll(c.LogDir(), 0o755); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	if err := c.serve(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// serve opens what every task can ask. Where tasks share the host's network,
// another program may have the DNS port, and then names are lost as well.
func (c *Cluster) serve() error {
	if err := c.serveAWS(); err != nil {
		return err
	}
	if err := c.serveFront(); err != nil {
		return err
	}
	err := c.serveDNS()
	if err != nil && c.options.Network == network.Host {
		c.options.Log.Warn("task names do not resolve", logkey.Error, err)
		return nil
	}
	return err
}

func (c *Cluster) serveAWS() error {
	l, err := c.fabric.Infra().ListenService(c.fabric.Infra().Gateway)
	if err != nil {
		return fmt.Errorf("listen for STS and IAM: %w", err)
	}
	c.aws = metadata.Host(l)
	c.closers = append(c.closers, metadata.Serve(l, c.AWS()))
	return nil
}

// AWS is what tasks find at AWSEndpoint: STS, IAM, and the ECS API once there is
// one.
func (c *Cluster) AWS() http.Handler {
	identities := iam.New(c.store, c.options.Region)
	return c.faults.AWS(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api := c.ecs.Load(); api != nil && controlplane.IsECSRequest(r) {
			(*api).ServeHTTP(w, r)
			return
		}
		identities.ServeHTTP(w, r)
	}))
}

// serveECS adds the ECS API to AWS.
func (c *Cluster) serveECS(api http.Handler) { c.ecs.Store(&api) }

// Disturb makes an endpoint misbehave until end is called. Its Task is a name
// given to Run, whether it has been or will be; seed draws the requests of a
// share.
func (c *Cluster) Disturb(e chaos.Endpoint, seed uint64) (end func()) { return c.faults.Begin(e, seed) }

// Identities has the account's roles, users and keys.
func (c *Cluster) Identities() *iam.Store { return c.store }

// Protections are those that service tasks have.
func (c *Cluster) Protections() *metadata.Protections { return c.protections }

func (c *Cluster) serveDNS() error {
	infra := c.fabric.Infra()
	address := net.JoinHostPort(infra.Resolver.String(), "53")
	packets, err := infra.ListenPacket("udp", address)
	if err != nil {
		return fmt.Errorf("listen for DNS: %w", err)
	}
	streams, err := infra.Listen("tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for DNS: %w", err), packets.Close())
	}
	c.closers = append(c.closers, network.NewNameServer(c.resolve, packets, streams).Close)
	return nil
}

// resolve returns the addresses of a name, and whether a task or AWS has that name.
func (c *Cluster) resolve(name string) (addresses []netip.Addr, exists bool) {
	if slices.Contains(c.awsHosts, name) {
		return []netip.Addr{c.fabric.Infra().Gateway}, true
	}
	c.mu.Lock()
	tasks := c.tasks
	c.mu.Unlock()
	for _, t := range tasks {
		if t.names.Matches(name, t.View()) {
			addresses = append(addresses, t.ns.IP)
		}
		exists = exists || t.names.Has(name)
	}
	return addresses, exists || len(addresses) > 0
}

func (c *Cluster) enter(t *Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks = append(c.tasks, t)
}

func (c *Cluster) forget(t *Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Other goroutines may be reading the old slice.
	c.tasks = slices.DeleteFunc(slices.Clone(c.tasks), func(o *Task) bool { return o == t })
}

// AWSEndpoint is the URL of STS and IAM: the VPC's gateway, with host networking
// a free port of it.
func (c *Cluster) AWSEndpoint() string { return "http://" + c.aws }

// LogDir holds a directory per task and in it a log per container.
func (c *Cluster) LogDir() string { return filepath.Join(c.options.Dir, "logs") }

func (c *Cluster) volumeDir() string { return filepath.Join(c.options.Dir, "volumes") }

// Dial connects from the VPC, as a machine outside of every task would.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return c.fabric.Infra().DialContext(ctx, network, address)
}

// Lost is closed when the cluster cannot go on; Err is the reason.
func (c *Cluster) Lost() <-chan struct{} { return c.lost }

// Err is why the cluster cannot go on: a process was killed that belongs to the
// simulator, or the host had not what a container takes. It is nil as long as it
// can, and right also before Lost is closed.
func (c *Cluster) Err() error {
	return cmp.Or(c.runtime.Err(), c.cause())
}

// fail notes what a container has failed for, if it is the host's fault.
func (c *Cluster) fail(err error) {
	if _, missing := errors.AsType[*host.MissingError](err); missing {
		c.lose(err)
	}
}

// PutSecret sets a value of Options.Secrets, for tasks started from now on.
func (c *Cluster) PutSecret(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secrets[name] = value
}

// Close kills what still runs and gives everything back: processes, networks,
// mounts, volumes. Logs stay. Further calls return the first one's error.
func (c *Cluster) Close() error {
	c.closing.Do(func() { c.closed = c.close() })
	return c.closed
}

func (c *Cluster) close() error {
	c.making.close()() // else what is made meanwhile would stay
	c.mu.Lock()
	tasks, services := c.tasks, c.services
	c.mu.Unlock()
	left := c.visitors.close()
	close(c.leaving)
	left()
	for _, t := range tasks {
		t.abort()
	}
	for _, s := range services {
		s.Stop()
	}
	var errs []error
	for _, closer := range c.closers {
		errs = append(errs, closer())
	}
	close(c.gone)
	return errors.Join(append(errs, c.group.Close(), c.runtime.Close(), c.fabric.Close(), os.RemoveAll(c.volumeDir()))...)
}
