package admission

import (
	"cmp"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	loopback = "127.0.0.1"
	// maxFiles is the largest limit of open files with which ECS starts a container.
	maxFiles = 1 << 20
	// Memory that each container reserves, in MiB, when the task has none itself.
	proxyMemory, clientMemory, smallMemory = 128, 128, 32
	// agentVariable has the configuration of the agent in HCL.
	agentVariable = "CONSUL_AGENT_CONFIGURATION"
	// proxyUser is the proxy's, with the group of the shared volume's files; meshUser owns them.
	proxyUser, meshUser = "5995:5996", "5996:5996"
)

// agent reports whether the task has its own Consul agent.
func (t *task) agent() bool { return !t.cfg.Agentless() }

// proxyName is the name of the proxy's container.
func (t *task) proxyName() string {
	if t.cfg.Direct() {
		return workload.ContainerSidecarProxy
	}
	return workload.ContainerDataplane
}

// program is the path of consul-ecs on the shared volume.
func (t *task) program() string { return path.Join(t.cfg.BootstrapDir, "consul-ecs") }

// sidecars are the containers of the mesh, in the order in which they start.
func (t *task) sidecars() []*taskdef.Container {
	var made []*taskdef.Container
	if t.agent() {
		made = append(made, t.install(), t.client())
	}
	made = append(made, t.meshInit())
	if t.userProxy() < 0 {
		made = append(made, t.proxy())
	}
	if !t.agent() || t.cfg.ConsulLogin.Enabled || len(t.cfg.HealthSyncContainers) > 0 {
		made = append(made, t.healthSync())
	}
	for _, c := range made {
		set := t.mesh.settings.sidecar(roleOf(c.Name))
		harden(c, set, t.transparent(), t.cfg.Proxy.NamedUpstreams)
		set.apply(c)
		t.size(c)
	}
	return made
}

// harden takes from a container of the mesh what it does not need: a root file system to write
// to, the user of its image, and Linux capabilities. The mesh-init of a transparent proxy writes
// the rules that redirect traffic and, as with named upstreams, files of the root file system.
func harden(c *taskdef.Container, set Sidecar, transparent, named bool) {
	add, drop := []string(nil), []string{"ALL"}
	if set.DropCapabilities != nil {
		drop = set.DropCapabilities
	}
	init := c.Name == workload.ContainerMeshInit
	if !init || !transparent && !named {
		c.ReadonlyRootFilesystem = new(true)
	}
	c.User = cmp.Or(c.User, meshUser)
	if init && transparent {
		c.User, add = "0", []string{"NET_ADMIN"}
		if len(drop) > 0 {
			add = append(add, "CHOWN", "DAC_OVERRIDE") // the volume belongs to another user
		}
	}
	add = slices.Concat(add, set.AddCapabilities)
	if len(add)+len(drop) == 0 {
		return
	}
	if c.LinuxParameters == nil {
		c.LinuxParameters = &taskdef.LinuxParameters{}
	}
	c.LinuxParameters.Capabilities = &taskdef.Capabilities{Add: add, Drop: drop}
}

// size gives the proxy the CPU and memory of the annotations.
func (t *task) size(c *taskdef.Container) {
	if roleOf(c.Name) != roleProxy {
		return
	}
	if cpu, given := t.number(annotationCPU, 0, 1<<20); given {
		c.CPU = &cpu
	}
	if memory, given := t.number(annotationMemory, 6, 1<<20); given {
		c.Memory, c.MemoryReservation = &memory, nil
	}
}

// container is what all containers of the mesh have.
func (t *task) container(name, image string, memory int, essential, readOnly bool) *taskdef.Container {
	c := &taskdef.Container{
		Name: name, Image: image, Essential: &essential, DockerLabels: map[string]string{annotationInjectedBy: "consul-ecs"},
		MountPoints: []taskdef.MountPoint{t.mountPoint(readOnly)},
	}
	if t.whole() && t.absent(t.doc.Task, "memory") {
		c.MemoryReservation = &memory
	}
	return c
}

// configured adds the configuration, and the secrets of the mesh file.
func (t *task) configured(c *taskdef.Container) *taskdef.Container {
	c.Environment = []taskdef.KeyValue{t.environment()}
	c.Secrets = t.mesh.settings.Secrets
	return t.ignoring(c)
}

// sidecarStop returns the stop timeout of a role, in seconds.
func (t *task) sidecarStop(role string) int {
	return taskdef.Or(t.mesh.settings.sidecar(role).StopTimeout, t.stopTimeout())
}

// stopFlag is the flag with which a container's program knows its stop timeout.
func stopFlag(seconds int) []string { return []string{"-stop-timeout", fmt.Sprintf("%ds", seconds)} }

// afterGate waits for the end of the container that puts the program on the shared volume, as
// all others of the mesh do.
func (t *task) afterGate() taskdef.Dependency {
	gate := workload.ContainerMeshInit
	if t.agent() {
		gate = workload.ContainerInstall
	}
	return taskdef.Dependency{ContainerName: gate, Condition: taskdef.ConditionSuccess}
}

func (t *task) images() images { return t.mesh.settings.Images.withDefaults(t.image) }

func (t *task) install() *taskdef.Container {
	c := t.container(workload.ContainerInstall, t.images().ConsulECS, smallMemory, false, false)
	c.Command = []string{"install", "-to", t.cfg.BootstrapDir}
	return c
}

func (t *task) meshInit() *taskdef.Container {
	c := t.configured(t.container(workload.ContainerMeshInit, t.images().ConsulECS, smallMemory, false, false))
	c.Command = []string{"mesh-init"}
	c.LinuxParameters = &taskdef.LinuxParameters{InitProcessEnabled: new(true)}
	return c
}

func (t *task) transparent() bool {
	return !t.agent() && t.cfg.Gateway == nil && t.cfg.TransparentProxy.Enabled
}

func (t *task) client() *taskdef.Container {
	c := t.configured(t.container(workload.ContainerConsulClient, t.images().Consul, clientMemory, true, false))
	stop := t.sidecarStop(roleClient)
	c.EntryPoint = []string{t.program(), "client-entrypoint"}
	c.Command = stopFlag(stop)
	settings := t.mesh.settings.Client
	for _, address := range settings.RetryJoin {
		c.Command = append(c.Command, "-retry-join", address)
	}
	if settings.Datacenter != "" {
		c.Command = append(c.Command, "-datacenter", settings.Datacenter)
	}
	if settings.Configuration != "" {
		c.Environment = append(c.Environment, taskdef.KeyValue{Name: agentVariable, Value: settings.Configuration})
	}
	c.Secrets = slices.Concat(c.Secrets, settings.Secrets)
	c.RestartPolicy = restartPolicy()
	c.StopTimeout, c.DependsOn = &stop, []taskdef.Dependency{t.afterGate()}
	return c
}

func (t *task) proxy() *taskdef.Container {
	image := t.images().Dataplane
	if t.cfg.Direct() {
		image = t.images().Envoy
	}
	c := t.ignoring(t.container(t.proxyName(), image, proxyMemory, true, true))
	if !t.agent() {
		c.Secrets = t.mesh.settings.Secrets // envoy-entrypoint reaches the servers, too
	}
	if kind := t.kind(); kind != "" {
		c.DockerLabels[annotationKind] = kind
	}
	stop := t.sidecarStop(roleProxy)
	c.User = proxyUser
	c.EntryPoint = append([]string{t.program(), "envoy-entrypoint"}, stopFlag(stop)...)
	c.Command = t.proxyCommand()
	c.HealthCheck = &taskdef.HealthCheck{
		Command:  []string{"CMD", t.program(), "net-dial", net.JoinHostPort(loopback, strconv.Itoa(t.readyPort()))},
		Interval: new(5), Timeout: new(5), Retries: new(10),
	}
	c.Ulimits = []taskdef.Ulimit{{Name: "nofile", SoftLimit: maxFiles, HardLimit: maxFiles}}
	c.StopTimeout, c.DependsOn = &stop, []taskdef.Dependency{t.afterGate()}
	return c
}

// readyPort is the port that accepts connections when the proxy is ready.
func (t *task) readyPort() int {
	g := t.cfg.Gateway
	switch {
	case !t.agent():
		return t.cfg.ReadyPort()
	case g != nil && g.LANAddress != nil:
		return g.LANAddress.Port
	case g != nil:
		return config.DefaultGatewayPort
	}
	return t.cfg.Proxy.PublicListenerPort
}

func (t *task) healthSync() *taskdef.Container {
	c := t.configured(t.container(workload.ContainerHealthSync, t.images().ConsulECS, smallMemory, false, false))
	stop := t.sidecarStop(roleHealthSync)
	c.Command = append([]string{"health-sync"}, stopFlag(stop)...)
	c.LinuxParameters = &taskdef.LinuxParameters{InitProcessEnabled: new(true)}
	c.RestartPolicy, c.StopTimeout = restartPolicy(), &stop
	return c
}

// restartPolicy returns that of containers without which the task's state in Consul gets stale.
func restartPolicy() *taskdef.RestartPolicy {
	return &taskdef.RestartPolicy{Enabled: true, RestartAttemptPeriod: new(60)}
}
