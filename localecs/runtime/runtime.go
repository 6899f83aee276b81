package runtime

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/inflight"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/host"
)

// Options configure a Runtime.
type Options struct {
	// Images are what Pull knows, by name.
	Images Images
	// Log gets warnings about what the host cannot give; nil drops them.
	Log hclog.Logger
}

// Runtime starts containers. It is safe for concurrent use.
type Runtime struct {
	log       hclog.Logger
	known     Images
	ids       host.IDs
	images    Resolver
	hardLimit func(resource int) (uint64, error)
	spawn     *spawner
	// groups limit memory; nil where the host cannot, because of noGroups.
	groups   *root
	noGroups error
	warned   sync.Map // warning text: true

	starts  inflight.Group
	running sync.WaitGroup // containers

	mu         sync.Mutex
	containers map[*Container]bool
	shared     map[*pidNamespace]bool
}

// New checks the host and makes a runtime. The error is a *host.MissingError when the host lacks something.
func New(o Options) (*Runtime, error) {
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	if err := checkHost(); err != nil {
		return nil, err
	}
	// What this process inherited is not for containers. Everything it opens itself is closed on exec already.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, host.Explain("start a container", "close_range (Linux 5.11 or later)", "", err)
	}
	ids, err := host.CurrentIDs()
	if err != nil {
		return nil, err
	}
	hardLimit, err := ownHardLimits(ids)
	if err != nil {
		return nil, err
	}
	spawn, err := newSpawner()
	if err != nil {
		return nil, host.Explain("start a container", "pid namespaces", "", host.Shortage(err, "pid"))
	}
	r := &Runtime{log: o.Log, known: o.Images, ids: ids, hardLimit: hardLimit, spawn: spawn, containers: map[*Container]bool{}, shared: map[*pidNamespace]bool{}}
	r.groups, r.noGroups = makeRoot()
	return r, nil
}

// Needs returns the capabilities that New asks for.
func Needs() []host.Cap {
	return []host.Cap{host.SysAdmin(), host.SysChroot(), host.SysPtrace(), host.SetUID(),
		host.SetGID(), host.SetPCap(), host.Chown(), host.Kill()}
}

func checkHost() error {
	const what = "start a container"
	if err := host.CheckCaps(what, "", Needs()...); err != nil {
		return err
	}
	if _, err := os.Stat(host.SelfExe); err != nil {
		return host.Explain(what, "/proc", "mount it", err)
	}
	// Something without mounts below it: a user namespace may not look under those.
	fd, err := unix.OpenTree(unix.AT_FDCWD, os.DevNull, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return host.Explain(what, "open_tree (Linux 5.12 or later)", "", host.Shortage(err, "mnt"))
	}
	defer unix.Close(fd)
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return host.Explain(what, "mount_setattr (Linux 5.12 or later)", "", err)
	}
	return host.Explain("end a container", "pidfd_open and pidfd_send_signal (Linux 5.3 or later)", "", signalSelf())
}

// signalSelf sends a process nothing, in the way in which containers are killed.
func signalSelf() error {
	self, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return err
	}
	defer unix.Close(self)
	return unix.PidfdSendSignal(self, 0, nil, 0)
}

// ownLibraries returns what this binary needs inside a container as its init: nothing, unless it is linked dynamically.
func (r *Runtime) ownLibraries() ([]Bind, error) {
	exe, err := os.Readlink(host.SelfExe)
	if err != nil {
		return nil, err
	}
	binds, err := r.images.Libraries(Bind{Source: exe, Target: exe})
	if err != nil {
		return nil, fmt.Errorf("find the init's libraries: %w", err)
	}
	return binds, nil
}

// Start starts a container and returns when its program runs. Any error is a *StartError, or ErrClosed.
func (r *Runtime) Start(s Spec) (*Container, error) {
	end, ok := r.starts.Begin()
	if !ok {
		return nil, ErrClosed
	}
	defer end()
	c, err := r.start(s)
	if err != nil {
		return nil, &StartError{Container: s.Name, Err: hostFault(err)}
	}
	r.warn(s.Name, c.warnings)
	return c, nil
}

// HostLacks is logged with a container and a reason, once for each reason: what the host lacks, it lacks for all.
const HostLacks = "this host cannot satisfy a container's settings; logged once for each reason"

func (r *Runtime) warn(container string, warnings []string) {
	for _, w := range warnings {
		if _, known := r.warned.LoadOrStore(w, true); !known {
			r.log.Warn(HostLacks, logkey.Container, container, logkey.Reason, w)
		}
	}
}

// add watches a container, on the list of those Close kills.
func (r *Runtime) add(c *Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[c] = true
	r.running.Go(func() {
		defer r.remove(c)
		c.Watch()
	})
}

func (r *Runtime) remove(c *Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, c)
}

// Close kills every container and returns when all are gone.
func (r *Runtime) Close() error {
	first, wait := r.starts.Close()
	wait()
	r.mu.Lock()
	for c := range r.containers {
		c.Kill()
	}
	shared := slices.Collect(maps.Keys(r.shared))
	r.mu.Unlock()
	r.running.Wait()
	for _, p := range shared {
		p.end()
	}
	if !first {
		return nil
	}
	r.spawn.close()
	if r.groups == nil {
		return nil
	}
	return r.groups.Close()
}
