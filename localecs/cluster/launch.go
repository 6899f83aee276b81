package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// launch is a task to run. Containers without an ARN get one; its Report is not used.
type launch struct {
	controlplane.Launch
	// Name identifies the task to observers, and names its log directory.
	Name string
	// Observe gets every view, in order, before any other observer. It must not
	// block; nil is allowed.
	Observe func(*Task, scheduler.View)
}

// launch starts a task.
func (c *Cluster) launch(l launch) (*Task, error) {
	made, err := c.making.begin()
	if err != nil {
		return nil, err
	}
	defer made()
	o := c.options
	t := &Task{
		cluster: c, launch: l, name: l.Name, id: l.ID, def: l.Definition,
		env:        map[string][]string{},
		logs:       map[string]*logFile{},
		volumes:    map[string]string{},
		containers: map[string]*runtime.Container{},
		images:     map[string]runtime.Image{},
		events:     make(chan scheduler.Event),
		stopped:    make(chan struct{}),
		done:       make(chan struct{}),
	}
	state := scheduler.New(t.def, scheduler.Options{AtOnce: o.AtOnce, TimeScale: o.TimeScale, GatePeriod: o.GatePeriod}, time.Now())
	t.view = state.View()
	if err := t.prepare(); err != nil {
		return nil, errors.Join(host.Shortage(err), t.release())
	}
	c.enter(t)
	if l.Observe != nil {
		l.Observe(t, t.view)
	}
	go t.run(state)
	return t, nil
}

// prepare acquires the resources of a task; each step adds its release to closers.
func (t *Task) prepare() error {
	ns, err := t.cluster.fabric.Attach(t.id)
	if err != nil {
		return err
	}
	t.ns, t.meter = ns, newMeter(nil)
	t.names = TaskNames{Private: ns.PrivateDNSName, Cluster: t.launch.Cluster, Name: t.name, Family: t.def.Family, Service: t.launch.Service}
	if ns.File() != nil {
		t.meter = newMeter(ns.Do)
	}
	t.closers = append(t.closers, ns.Close)
	o := t.cluster.options
	t.facts = ClusterFacts{Account: o.AWS(), Name: t.launch.Cluster}.Task(t.id, t.def, t.launch.ContainerARNs, ns.Addressing)
	t.facts.ServiceName = t.launch.Service
	for _, acquire := range []func() error{t.reservePorts, t.openCredentials, t.openGroup, t.serve, t.makeFiles} {
		if err := acquire(); err != nil {
			return err
		}
	}
	t.makeEnvironments()
	return nil
}

func (t *Task) reservePorts() error {
	var errs []error
	for _, c := range t.def.ContainerDefinitions {
		for _, m := range c.PortMappings {
			for _, p := range network.Declared(m) {
				errs = append(errs, t.ns.Reserve(p, "container "+c.Name+" of task "+t.name))
			}
		}
	}
	return network.Join(errs...)
}

// makeEnvironments decides every container's variables before anything starts.
func (t *Task) makeEnvironments() {
	for _, c := range t.def.ContainerDefinitions {
		env, err := List(c, Sources{
			Image: t.cluster.options.Images[c.Image].Env,
			Files: func(arn string) (string, bool) {
				text, ok := t.cluster.options.EnvironmentFiles[arn]
				return text, ok
			},
			Secrets: t.cluster.secret,
			Agent: Agent{
				Host: t.host, EndpointID: t.facts.Containers[c.Name].EndpointID, CredentialsID: t.credentials,
				Region: t.cluster.options.Region, Hostname: t.ns.PrivateDNSName, ECS: t.ecsURL(), Trust: t.cluster.trust != "",
			},
		})
		if err != nil && t.unready == nil {
			t.unready = err
		}
		t.env[c.Name] = env
	}
}

// ecsURL returns the URL of ECS for a task with a role, and "" for others.
func (t *Task) ecsURL() string {
	if t.credentials == "" || t.cluster.ecs.Load() == nil {
		return ""
	}
	return t.cluster.AWSEndpoint()
}

func (c *Cluster) secret(name string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.secrets[name]
	return value, ok
}

// openCredentials opens a credentials ID for the task's role; a task without
// one has no route.
func (t *Task) openCredentials() error {
	if t.def.TaskRoleARN == "" {
		return nil
	}
	id, err := t.cluster.store.Issue(t.def.TaskRoleARN, t.id, time.Now())
	if err != nil {
		return fmt.Errorf("credentials of %s: %w", t.def.Family, err)
	}
	t.credentials = id
	t.closers = append(t.closers, func() error { t.cluster.store.Remove(id); return nil })
	return nil
}

// openGroup makes what the containers share: their network, the processes of
// pidMode task, the task's own memory setting.
func (t *Task) openGroup() (err error) {
	mib, _ := t.def.MemoryMiB()
	t.group, err = t.cluster.runtime.Group(runtime.GroupSpec{
		Name: t.id, NetNS: t.ns.File(), SharePIDs: t.def.PIDMode == "task", Memory: new(mebibytes(mib)),
	})
	if err != nil {
		return err
	}
	t.closers = append(t.closers, t.group.Close)
	return nil
}

func (t *Task) stats(name string) *metadata.Stats {
	c := t.container(name)
	if c == nil {
		return nil
	}
	return t.meter.Stats(name, c)
}

func mebibytes(n int) uint64 { return uint64(n) << 20 }

func (t *Task) serve() error {
	l, err := t.ns.ListenMetadata()
	if err != nil {
		return fmt.Errorf("listen for task metadata: %w", err)
	}
	t.host = metadata.Host(l)
	t.closers = append(t.closers, metadata.Serve(l, metadata.TaskHandler(t.cluster.faults.Task(t.name, t.facts.TaskARN, metadata.Task{
		Metadata:    metadata.New(metadata.Options{Lookup: t.lookup, Stats: t.stats}),
		Credentials: iam.Handler(t.cluster.store),
		Agent:       metadata.ProtectionHandler(t.lookup, t.cluster.protections),
	}))))
	return nil
}

// lookup finds the task by a container's endpoint ID. Only this task's
// containers can reach the server, so no other IDs exist here.
func (t *Task) lookup(endpointID string) (metadata.Snapshot, bool) {
	for _, c := range t.facts.Containers {
		if c.EndpointID == endpointID {
			return metadata.At(time.Now(), t.facts, t.View()), true
		}
	}
	return metadata.Snapshot{}, false
}

// keepMetadata writes the last metadata document beside the logs. It describes the stopped task, when no
// program of the task can read it any more.
func (t *Task) keepMetadata() error {
	document, err := json.MarshalIndent(metadata.At(time.Now(), t.facts, t.View()).Document(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	if err := os.WriteFile(filepath.Join(t.cluster.LogDir(), t.name, "metadata.json"), append(document, '\n'), 0o644); err != nil {
		return fmt.Errorf("keep metadata: %w", err)
	}
	return nil
}

// LogFile is where a container's output goes; task is the name given to Run.
func (c *Cluster) LogFile(task, container string) string {
	return filepath.Join(c.LogDir(), task, container+".log")
}

// shareNames makes the files by which containers resolve names. On EC2 they are one container's,
// whose network all share; on Fargate each has its own.
func (t *Task) shareNames(dir string) error {
	if t.def.IsFargate() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make files of names: %w", err)
	}
	t.shared = map[string]string{}
	for target, text := range map[string]string{"/etc/hosts": t.ns.Hosts(), resolvConf: t.ns.ResolvConf()} {
		source := filepath.Join(dir, filepath.Base(target))
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			return fmt.Errorf("make files of names: %w", err)
		}
		t.shared[target] = source
	}
	return nil
}

// makeFiles makes the task's volumes, empty and root's, and a log per
// container.
func (t *Task) makeFiles() error {
	volumes := filepath.Join(t.cluster.volumeDir(), t.id)
	for _, v := range t.def.Volumes {
		dir := filepath.Join(volumes, v.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make volume %s: %w", v.Name, err)
		}
		t.volumes[v.Name] = dir
	}
	t.closers = append(t.closers, func() error { return os.RemoveAll(volumes) })
	if err := t.shareNames(filepath.Join(volumes, ".names")); err != nil { // which no volume is called
		return err
	}
	if err := os.MkdirAll(filepath.Join(t.cluster.LogDir(), t.name), 0o755); err != nil {
		return fmt.Errorf("make log directory: %w", err)
	}
	for _, c := range t.def.ContainerDefinitions {
		f, err := openLog(t.cluster.LogFile(t.name, c.Name), t.cluster.options.Log)
		if err != nil {
			return fmt.Errorf("make log of %s: %w", c.Name, err)
		}
		if output := t.cluster.options.Output; output != nil {
			f.Also = func(line []byte) { output(t.name, c.Name, line) }
		}
		t.logs[c.Name] = f
		t.closers = append(t.closers, f.Close)
	}
	return nil
}
