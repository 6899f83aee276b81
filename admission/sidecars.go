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

// hasAgent reports whether the task has its own Consul agent.
func hasAgent(cfg *config.Config) bool { return !cfg.Agentless() }

func proxyName(cfg *config.Config) string {
	if cfg.Direct() {
		return workload.ContainerSidecarProxy
	}
	return workload.ContainerDataplane
}

// programPath returns the path of consul-ecs on the shared volume.
func programPath(cfg *config.Config) string { return path.Join(cfg.BootstrapDir, "consul-ecs") }

// sidecarBuilder makes the containers of the mesh.
type sidecarBuilder struct {
	doc         *document
	annotations *annotations
	containers  *containers
	mesh        Mesh
	images      images
	// cfg and configuration are those of the task.
	cfg           *config.Config
	configuration []byte
}

func (t *task) sidecarBuilder() sidecarBuilder {
	return sidecarBuilder{
		doc: t.doc, annotations: t.annotations, containers: t.containers, mesh: t.mesh,
		images: t.mesh.settings.Images.withDefaults(t.image), cfg: t.cfg, configuration: t.configuration,
	}
}

// all returns the containers of the mesh, in the order in which they start.
func (b sidecarBuilder) all() []*taskdef.Container {
	var made []*taskdef.Container
	if hasAgent(b.cfg) {
		made = append(made, b.install(), b.client())
	}
	made = append(made, b.meshInit())
	if b.doc.userProxy() < 0 {
		made = append(made, b.proxy())
	}
	if !hasAgent(b.cfg) || b.cfg.ConsulLogin.Enabled || len(b.cfg.HealthSyncContainers) > 0 {
		made = append(made, b.healthSync())
	}
	for _, c := range made {
		set := b.mesh.settings.sidecar(roleOf(c.Name))
		harden(c, set, isTransparent(b.cfg), b.cfg.Proxy.NamedUpstreams)
		set.apply(c)
		b.size(c)
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
func (b sidecarBuilder) size(c *taskdef.Container) {
	if roleOf(c.Name) != roleProxy {
		return
	}
	if cpu, given := b.annotations.number(annotationCPU, 0, 1<<20); given {
		c.CPU = &cpu
	}
	if memory, given := b.annotations.number(annotationMemory, 6, 1<<20); given {
		c.Memory, c.MemoryReservation = &memory, nil
	}
}

// container returns what all containers of the mesh have.
func (b sidecarBuilder) container(name, image string, memory int, essential, readOnly bool) *taskdef.Container {
	c := &taskdef.Container{
		Name: name, Image: image, Essential: &essential,
		DockerLabels: map[string]string{annotationInjectedBy: "consul-ecs"},
		MountPoints:  []taskdef.MountPoint{mountPoint(b.cfg.BootstrapDir, readOnly)},
	}
	if b.doc.isFullDefinition() && b.doc.isAbsent(b.doc.Task, "memory") {
		c.MemoryReservation = &memory
	}
	if b.cfg.LogJSON {
		c.Environment = []taskdef.KeyValue{{Name: config.LogJSONEnvVar, Value: "true"}}
	}
	return c
}

// configured adds the configuration, and the secrets of the mesh file.
func (b sidecarBuilder) configured(c *taskdef.Container) *taskdef.Container {
	c.Environment = append(c.Environment, b.environment())
	c.Secrets = b.mesh.settings.Secrets
	return b.ignoring(c)
}

// stopTimeout returns the stop timeout of a role, in seconds.
func (b sidecarBuilder) stopTimeout(role string) int {
	return taskdef.Or(b.mesh.settings.sidecar(role).StopTimeout, b.containers.stopTimeout())
}

// stopFlag returns the flag with which a container's program knows its stop timeout.
func stopFlag(seconds int) []string { return []string{"-stop-timeout", fmt.Sprintf("%ds", seconds)} }

// gate waits for the end of the container that puts the program on the shared volume, as
// all others of the mesh do.
func gate(cfg *config.Config) taskdef.Dependency {
	gate := workload.ContainerMeshInit
	if hasAgent(cfg) {
		gate = workload.ContainerInstall
	}
	return taskdef.Dependency{ContainerName: gate, Condition: taskdef.ConditionSuccess}
}

func (b sidecarBuilder) install() *taskdef.Container {
	c := b.container(workload.ContainerInstall, b.images.ConsulECS, smallMemory, false, false)
	c.Command = []string{"install", "-to", b.cfg.BootstrapDir}
	return c
}

func (b sidecarBuilder) meshInit() *taskdef.Container {
	c := b.configured(b.container(workload.ContainerMeshInit, b.images.ConsulECS, smallMemory, false, false))
	c.Command = []string{"mesh-init"}
	c.LinuxParameters = &taskdef.LinuxParameters{InitProcessEnabled: new(true)}
	return c
}

func isTransparent(cfg *config.Config) bool {
	return !hasAgent(cfg) && cfg.Gateway == nil && cfg.TransparentProxy.Enabled
}

func (b sidecarBuilder) client() *taskdef.Container {
	c := b.configured(b.container(workload.ContainerConsulClient, b.images.Consul, clientMemory, true, false))
	stop := b.stopTimeout(roleClient)
	c.EntryPoint = []string{programPath(b.cfg), "client-entrypoint"}
	c.Command = stopFlag(stop)
	settings := b.mesh.settings.Client
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
	c.StopTimeout, c.DependsOn = &stop, []taskdef.Dependency{gate(b.cfg)}
	return c
}

func (b sidecarBuilder) proxy() *taskdef.Container {
	image := b.images.Dataplane
	if b.cfg.Direct() {
		image = b.images.Envoy
	}
	c := b.ignoring(b.container(proxyName(b.cfg), image, proxyMemory, true, true))
	if !hasAgent(b.cfg) {
		c.Secrets = b.mesh.settings.Secrets // envoy-entrypoint reaches the servers, too
	}
	if kind := kindOf(b.cfg); kind != "" {
		c.DockerLabels[annotationKind] = kind
	}
	stop := b.stopTimeout(roleProxy)
	c.User = proxyUser
	c.EntryPoint = append([]string{programPath(b.cfg), "envoy-entrypoint"}, stopFlag(stop)...)
	c.Command = b.proxyCommand()
	c.HealthCheck = &taskdef.HealthCheck{
		Command: []string{"CMD", programPath(b.cfg), "net-dial",
			net.JoinHostPort(loopback, strconv.Itoa(readyPort(b.cfg)))},
		Interval: new(5), Timeout: new(5), Retries: new(10),
	}
	c.Ulimits = []taskdef.Ulimit{{Name: "nofile", SoftLimit: maxFiles, HardLimit: maxFiles}}
	c.StopTimeout, c.DependsOn = &stop, []taskdef.Dependency{gate(b.cfg)}
	return c
}

// readyPort returns the port that accepts connections when the proxy is ready.
func readyPort(cfg *config.Config) int {
	g := cfg.Gateway
	switch {
	case !hasAgent(cfg):
		return cfg.ReadyPort()
	case g != nil && g.LANAddress != nil:
		return g.LANAddress.Port
	case g != nil:
		return config.DefaultGatewayPort
	}
	return cfg.Proxy.PublicListenerPort
}

func (b sidecarBuilder) healthSync() *taskdef.Container {
	c := b.configured(b.container(workload.ContainerHealthSync, b.images.ConsulECS, smallMemory, false, false))
	stop := b.stopTimeout(roleHealthSync)
	c.Command = append([]string{"health-sync"}, stopFlag(stop)...)
	c.LinuxParameters = &taskdef.LinuxParameters{InitProcessEnabled: new(true)}
	c.RestartPolicy, c.StopTimeout = restartPolicy(), &stop
	return c
}

// restartPolicy returns that of containers without which the task's state in Consul gets stale.
func restartPolicy() *taskdef.RestartPolicy {
	return &taskdef.RestartPolicy{Enabled: true, RestartAttemptPeriod: new(60)}
}
