package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/meter"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// resources are what a task holds from its launch until its last container has ended.
type resources struct {
	cluster *Cluster
	launch  controlplane.Launch
	name    string // the task's

	ns    *network.Namespace
	names TaskNames
	facts metadata.Facts
	meter *meter.Meter
	// memory is the limit of the task in bytes, 0 without one.
	memory uint64
	// credentials is the ID under which the role's credentials are served; empty without a role.
	credentials string
	// group starts the containers.
	group runtime.Group
	// host is the host of metadata and credentials in URLs.
	host string
	// volumes are host directories by volume name.
	volumes map[string]string
	// shared are the host's files that all containers have, by path.
	shared map[string]string
	logs   map[string]*logFile // by container name
	env    map[string][]string // by container name
	// unready is the error that keeps containers from starting: a secret that cannot be read.
	unready error
	// closers release the resources; the last is called first.
	closers []func() error
}

// acquire makes the resources; each step adds its release to closers. o is for the metadata server.
func (r *resources) acquire(o metadata.Options) error {
	def := r.launch.Definition
	ns, err := r.cluster.fabric.Attach(r.launch.ID)
	if err != nil {
		return err
	}
	mib, _ := def.MemoryMiB()
	r.ns, r.memory, r.meter = ns, mebibytes(mib), meter.New(nil, mebibytes(mib))
	r.names = TaskNames{
		Private: ns.PrivateDNSName, Name: r.name,
		Cluster: r.launch.Cluster, Family: def.Family, Service: r.launch.Service,
		CloudMap: r.launch.Names,
	}
	if ns.File() != nil {
		r.meter = meter.New(ns.Do, r.memory)
	}
	r.closers = append(r.closers, ns.Close)
	facts := ClusterFacts{Account: r.cluster.options.AWS(), Name: r.launch.Cluster}
	r.facts = facts.Task(r.launch.ID, def, r.launch.ContainerARNs, ns.Addressing)
	r.facts.ServiceName = r.launch.Service
	serve := func() error { return r.serve(o) }
	for _, step := range []func() error{r.reservePorts, r.openCredentials, r.openGroup, serve, r.makeFiles} {
		if err := step(); err != nil {
			return err
		}
	}
	r.makeEnvironments()
	return nil
}

func (r *resources) release() error {
	var errs []error
	for _, closer := range slices.Backward(r.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

func (r *resources) reservePorts() error {
	var errs []error
	for _, c := range r.launch.Definition.ContainerDefinitions {
		for _, m := range c.PortMappings {
			for _, p := range network.Declared(m) {
				errs = append(errs, r.ns.Reserve(p, "container "+c.Name+" of task "+r.name))
			}
		}
	}
	return network.Join(errs...)
}

// openCredentials opens a credentials ID for the task's role; a task without one has no route.
func (r *resources) openCredentials() error {
	def, store := r.launch.Definition, r.cluster.Identities()
	if def.TaskRoleARN == "" {
		return nil
	}
	id, err := store.Issue(def.TaskRoleARN, r.launch.ID, time.Now())
	if err != nil {
		return fmt.Errorf("credentials of %s: %w", def.Family, err)
	}
	r.credentials = id
	r.closers = append(r.closers, func() error { store.Remove(id); return nil })
	return nil
}

// openGroup makes what the containers share: their network, the processes of
// pidMode task, the task's own memory setting.
func (r *resources) openGroup() (err error) {
	def := r.launch.Definition
	r.group, err = r.cluster.runtime.Group(runtime.GroupSpec{
		Name: r.launch.ID, NetNS: r.ns.File(), SharePIDs: def.PIDMode == "task", Memory: new(r.memory),
	})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, r.group.Close)
	return nil
}

func mebibytes(n int) uint64 { return uint64(n) << 20 }

func (r *resources) serve(o metadata.Options) error {
	l, err := r.ns.ListenMetadata()
	if err != nil {
		return fmt.Errorf("listen for task metadata: %w", err)
	}
	r.host = metadata.Host(l)
	handlers := r.cluster.faults.Task(r.name, r.facts.TaskARN, metadata.Task{
		Metadata:    metadata.New(o),
		Credentials: iam.Handler(r.cluster.Identities()),
		Agent:       metadata.ProtectionHandler(o.Lookup, r.cluster.protections),
	})
	r.closers = append(r.closers, metadata.Serve(l, metadata.TaskHandler(handlers)))
	return nil
}

// makeFiles makes the task's volumes, empty and root's, and a log per container.
func (r *resources) makeFiles() error {
	def := r.launch.Definition
	volumes := filepath.Join(r.cluster.volumeDir(), r.launch.ID)
	for _, v := range def.Volumes {
		dir := filepath.Join(volumes, v.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make volume %s: %w", v.Name, err)
		}
		r.volumes[v.Name] = dir
	}
	r.closers = append(r.closers, func() error { return os.RemoveAll(volumes) })
	if err := r.shareNames(filepath.Join(volumes, ".names")); err != nil { // which no volume is called
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.cluster.LogDir(), r.name), 0o755); err != nil {
		return fmt.Errorf("make log directory: %w", err)
	}
	for _, c := range def.ContainerDefinitions {
		f, err := openLog(r.cluster.LogFile(r.name, c.Name), r.cluster.options.Log)
		if err != nil {
			return fmt.Errorf("make log of %s: %w", c.Name, err)
		}
		if output := r.cluster.options.Output; output != nil {
			f.copyTo = func(line []byte) { output(r.name, c.Name, line) }
		}
		r.logs[c.Name] = f
		r.closers = append(r.closers, f.Close)
	}
	return nil
}

// shareNames makes the files by which containers resolve names. On EC2 they are one container's,
// whose network all share; on Fargate each has its own.
func (r *resources) shareNames(dir string) error {
	if r.launch.Definition.IsFargate() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make files of names: %w", err)
	}
	r.shared = map[string]string{}
	for target, text := range map[string]string{"/etc/hosts": r.ns.Hosts(), resolvConf: r.ns.ResolvConf()} {
		source := filepath.Join(dir, filepath.Base(target))
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			return fmt.Errorf("make files of names: %w", err)
		}
		r.shared[target] = source
	}
	return nil
}

// makeEnvironments decides every container's variables before anything starts.
func (r *resources) makeEnvironments() {
	o := r.cluster.options
	for _, c := range r.launch.Definition.ContainerDefinitions {
		image, _ := o.Images.Find(c.Image)
		env, err := List(c, Sources{
			Image: image.Env, Secrets: r.cluster.secret,
			Files: func(arn string) (string, bool) {
				text, ok := o.EnvironmentFiles[arn]
				return text, ok
			},
			Agent: Agent{
				Host: r.host, EndpointID: r.facts.Containers[c.Name].EndpointID, CredentialsID: r.credentials,
				Region: o.Region, Hostname: r.ns.PrivateDNSName,
				ECS: r.ecsURL(), Trust: r.cluster.endpoints.trust != "",
			},
		})
		if err != nil && r.unready == nil {
			r.unready = err
		}
		r.env[c.Name] = env
	}
}

// ecsURL returns the URL of ECS for a task with a role, and "" for others.
func (r *resources) ecsURL() string {
	if r.credentials == "" || r.cluster.endpoints.ecs.Load() == nil {
		return ""
	}
	return r.cluster.AWSEndpoint()
}

// spec returns what the runtime starts for a container.
func (r *resources) spec(c taskdef.Container, image runtime.Image) runtime.Spec {
	s := runtime.Spec{
		Name:         r.name + "/" + c.Name,
		Image:        image,
		Args:         image.Argv(c.EntryPoint, c.Command),
		Env:          r.env[c.Name],
		WorkingDir:   c.WorkingDirectory,
		User:         c.User,
		ReadOnlyRoot: taskdef.Or(c.ReadonlyRootFilesystem, false),
		Hostname:     r.ns.PrivateDNSName,
		Hosts:        r.ns.Hosts(),
		ResolvConf:   r.ns.ResolvConf(),
		Memory:       mebibytes(int(r.facts.Containers[c.Name].Memory)),
		Stdout:       r.logs[c.Name],
		Stderr:       r.logs[c.Name],
		Ulimits:      Ulimits(c),
	}
	if l := c.LinuxParameters; l != nil {
		s.Capabilities, s.InitProcess = l.Capabilities, taskdef.Or(l.InitProcessEnabled, false)
	}
	for target, source := range r.shared {
		s.Mounts = append(s.Mounts, runtime.Mount{Source: source, Target: target, ReadOnly: s.ReadOnlyRoot})
	}
	s.Mounts = append(s.Mounts, Mounts(r.launch.Definition, c, r.volumes)...)
	if trust := r.cluster.endpoints.trust; trust != "" {
		s.Mounts = append(s.Mounts, runtime.Mount{Source: trust, Target: trustDir, ReadOnly: true})
	}
	return s
}
