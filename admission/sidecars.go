package admission

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

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
	// User and group of the proxy, and of the shared volume's files.
	proxyUser = "5995:5996"
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
	return made
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
	if r, given := t.mesh.settings.Resources[name]; given {
		c.CPU = r.CPU
		if r.Memory != nil || r.MemoryReservation != nil {
			c.Memory, c.MemoryReservation = r.Memory, r.MemoryReservation
		}
	}
	return c
}

// configured adds the configuration, and the secrets of the mesh file.
func (t *task) configured(c *taskdef.Container) *taskdef.Container {
	c.Environment = []taskdef.KeyValue{t.environment()}
	c.Secrets = t.mesh.settings.Secrets
	return t.ignoring(c)
}

// ignoring sets which other containers are not applications for a container.
func (t *task) ignoring(c *taskdef.Container) *taskdef.Container {
	apps := map[int]bool{}
	for _, i := range t.applications() {
		apps[i] = true
	}
	var names []string
	for i, other := range t.doc.Definition.ContainerDefinitions {
		if other.Name != "" && !workload.Owned(other.Name) && !apps[i] {
			names = append(names, other.Name)
		}
	}
	if len(names) > 0 {
		c.Environment = append(c.Environment, taskdef.KeyValue{Name: "CONSUL_ECS_IGNORE_CONTAINERS", Value: strings.Join(names, ",")})
	}
	return c
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

func (t *task) images() images { return t.mesh.settings.Images.withDefaults() }

func (t *task) install() *taskdef.Container {
	c := t.container(workload.ContainerInstall, t.images().ConsulECS, smallMemory, false, false)
	c.Command = []string{"install", "-to", t.cfg.BootstrapDir}
	return c
}

func (t *task) meshInit() *taskdef.Container {
	c := t.configured(t.container(workload.ContainerMeshInit, t.images().ConsulECS, smallMemory, false, false))
	c.Command = []string{"mesh-init"}
	c.LinuxParameters = &taskdef.LinuxParameters{InitProcessEnabled: new(true)}
	if t.transparent() {
		c.User = "0" // it writes the rules that redirect traffic
		c.LinuxParameters.Capabilities = &taskdef.Capabilities{Add: []string{"NET_ADMIN"}}
	}
	return c
}

func (t *task) transparent() bool {
	return !t.agent() && t.cfg.Gateway == nil && t.cfg.TransparentProxy.Enabled
}

func (t *task) client() *taskdef.Container {
	c := t.configured(t.container(workload.ContainerConsulClient, t.images().Consul, clientMemory, true, false))
	stop := t.stopTimeout()
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
		c.Environment = append(c.Environment, taskdef.KeyValue{Name: "CONSUL_AGENT_CONFIGURATION", Value: settings.Configuration})
	}
	c.Secrets = slices.Concat(c.Secrets, settings.Secrets)
	c.RestartPolicy = &taskdef.RestartPolicy{Enabled: true, RestartAttemptPeriod: new(60)}
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
	stop := t.stopTimeout()
	c.User = proxyUser
	c.EntryPoint = append([]string{t.program(), "envoy-entrypoint"}, stopFlag(stop)...)
	c.Command = t.proxyCommand()
	c.HealthCheck = &taskdef.HealthCheck{
		Command:  []string{"CMD", t.program(), "net-dial", net.JoinHostPort(loopback, strconv.Itoa(t.readyPort()))},
		Interval: new(5), Timeout: new(5), Retries: new(10),
	}
	c.Ulimits = []taskdef.Ulimit{{Name: "nofile", SoftLimit: maxFiles, HardLimit: maxFiles}}
	c.StopTimeout, c.DependsOn = &stop, []taskdef.Dependency{t.afterGate()}
	if cpu, given := t.number(annotationCPU, 0, 1<<20); given {
		c.CPU = &cpu
	}
	if memory, given := t.number(annotationMemory, 6, 1<<20); given {
		c.Memory, c.MemoryReservation = &memory, nil
	}
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
	c := t.configured(t.container(workload.ContainerHealthSync, t.images().ConsulECS, smallMemory, false, t.agent()))
	stop := t.stopTimeout()
	c.Command = append([]string{"health-sync"}, stopFlag(stop)...)
	c.LinuxParameters = &taskdef.LinuxParameters{InitProcessEnabled: new(true)}
	c.StopTimeout = &stop
	return c
}
