package compose

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Conditions of a Dependency.
const (
	started   = "service_started"
	healthy   = "service_healthy"
	completed = "service_completed_successfully"
)

// holder returns the service that holds the task's network and other shared namespaces.
func (b *builder) holder(t FileTask) Service {
	s := Service{
		Image: simulatorImage, Entrypoint: []string{"/bin/localecs"}, Command: []string{"pause"},
		Networks:  map[string]NetworkAttachment{"default": {}, endpointsNetwork: {}},
		DependsOn: map[string]Dependency{EndpointsService: {healthy}},
		Labels:    map[string]string{taskLabel: t.Name},
		Sysctls:   map[string]string{},
		Init:      t.Definition.PIDMode == "task", // it reaps orphans of the other containers
	}
	if t.Definition.IPCMode == "task" {
		s.IPC = "shareable"
	}
	for _, c := range t.Definition.ContainerDefinitions {
		for _, ctl := range c.SystemControls {
			if ofNetwork(ctl) {
				s.Sysctls[ctl.Namespace] = escape(ctl.Value)
			}
		}
	}
	return s
}

// ofNetwork reports whether a setting is one of the network namespace.
func ofNetwork(ctl taskdef.SystemControl) bool { return strings.HasPrefix(ctl.Namespace, "net.") }

// container returns the service of one container.
func (b *builder) container(t FileTask, c taskdef.Container) Service {
	s := Service{
		Image:       "${" + b.images[c.Image] + ":-" + escape(c.Image) + "}",
		Entrypoint:  escapeAll(c.EntryPoint),
		Command:     escapeAll(c.Command),
		User:        escape(c.User),
		WorkingDir:  escape(c.WorkingDirectory),
		NetworkMode: "service:" + t.Name,
		DependsOn:   dependencies(t, c),
		Environment: b.environment(t, c),
		Volumes:     mounts(t, c),
		HealthCheck: b.healthCheck(c.HealthCheck),
		StopGrace:   seconds(c.StopTimeout, taskdef.DefaultStopTimeout),
		ReadOnly:    taskdef.Or(c.ReadonlyRootFilesystem, false),
		Privileged:  taskdef.Or(c.Privileged, false),
		TTY:         taskdef.Or(c.PseudoTerminal, false),
		StdinOpen:   taskdef.Or(c.Interactive, false),
		Sysctls:     map[string]string{},
		Ulimits:     map[string]Ulimit{},
		Labels:      map[string]string{},
		MemLimit:    mebibytes(c.Memory),
		MemReserved: mebibytes(c.MemoryReservation),
	}
	if c.CPU != nil {
		s.CPUShares = *c.CPU
	}
	if c.RestartPolicy != nil && c.RestartPolicy.Enabled {
		s.Restart = "unless-stopped"
	}
	for _, u := range c.Ulimits { // without Fargate's defaults, which the engine may refuse
		s.Ulimits[u.Name] = Ulimit{u.SoftLimit, u.HardLimit}
	}
	for _, ctl := range c.SystemControls {
		if !ofNetwork(ctl) {
			s.Sysctls[ctl.Namespace] = escape(ctl.Value)
		}
	}
	for name, value := range c.DockerLabels {
		s.Labels[escape(name)] = escape(value)
	}
	s.Labels[taskLabel], s.Labels[containerLabel] = t.Name, c.Name
	share(&s, t)
	linux(&s, c.LinuxParameters)
	return s
}

// share puts the container into the task's other namespaces, or the host's.
func share(s *Service, t FileTask) {
	of := func(mode string) string {
		if mode == "task" {
			return "service:" + t.Name
		}
		return mode
	}
	s.PID, s.IPC = of(t.Definition.PIDMode), of(t.Definition.IPCMode)
}

// linux adds what stands in linuxParameters.
func linux(s *Service, l *taskdef.LinuxParameters) {
	if l == nil {
		return
	}
	s.Init = taskdef.Or(l.InitProcessEnabled, false)
	s.ShmSize = mebibytes(l.SharedMemorySize)
	if l.Capabilities != nil {
		s.CapAdd, s.CapDrop = l.Capabilities.Add, l.Capabilities.Drop
	}
	for _, d := range l.Devices {
		inside, rights := cmp.Or(d.ContainerPath, d.HostPath), ""
		for _, p := range d.Permissions {
			rights += p[:1] // read, write, mknod
		}
		device := d.HostPath + ":" + inside
		if rights != "" {
			device += ":" + rights
		}
		s.Devices = append(s.Devices, escape(device))
	}
	for _, m := range l.Tmpfs {
		options := append([]string{fmt.Sprintf("size=%dm", m.Size)}, m.MountOptions...)
		s.Tmpfs = append(s.Tmpfs, escape(m.ContainerPath+":"+strings.Join(options, ",")))
	}
}

// dependencies returns the container's, and that on the holder of its network.
func dependencies(t FileTask, c taskdef.Container) map[string]Dependency {
	conditions := map[string]string{
		taskdef.ConditionStart: started, taskdef.ConditionHealthy: healthy,
		taskdef.ConditionSuccess: completed, taskdef.ConditionComplete: completed,
	}
	all := map[string]Dependency{t.Name: {started}}
	for _, d := range c.DependsOn {
		all[serviceName(t.Name, d.ContainerName)] = Dependency{conditions[d.Condition]}
	}
	return all
}

// mounts returns the container's mounts. The last one at a path counts.
func mounts(t FileTask, c taskdef.Container) []string {
	sources := map[string]string{}
	for _, v := range t.Definition.Volumes {
		sources[v.Name] = t.Name + "-" + v.Name
		if v.Host != nil && v.Host.SourcePath != "" {
			sources[v.Name] = v.Host.SourcePath
		}
	}
	var list, targets []string
	for _, m := range cluster.Mounts(t.Definition, c, sources) {
		entry := escape(m.Source + ":" + m.Target)
		if m.ReadOnly {
			entry += ":ro"
		}
		if i := slices.Index(targets, m.Target); i >= 0 {
			list[i] = entry
			continue
		}
		list, targets = append(list, entry), append(targets, m.Target)
	}
	return list
}

// healthCheck writes ECS's defaults explicitly, since docker's differ.
func (b *builder) healthCheck(h *taskdef.HealthCheck) *HealthCheck {
	if !h.Enabled() {
		return nil
	}
	check := &HealthCheck{
		Test:     escapeAll(h.Command),
		Interval: seconds(h.Interval, taskdef.DefaultHealthInterval),
		Timeout:  seconds(h.Timeout, taskdef.DefaultHealthTimeout),
		Retries:  taskdef.Or(h.Retries, taskdef.DefaultHealthRetries),
	}
	if first := h.Command[0]; first != "CMD" && first != "CMD-SHELL" { // a bare vector
		check.Test = append([]string{"CMD"}, check.Test...)
	}
	if h.StartPeriod != nil && *h.StartPeriod > 0 {
		check.StartPeriod = seconds(h.StartPeriod, 0)
		if b.StartInterval { // ECS uses the interval, newer engines 5s
			check.StartInterval = check.Interval
		}
	}
	return check
}

// environment returns the container's variables and those of ECS's agent. The engine sets HOSTNAME.
func (b *builder) environment(t FileTask, c taskdef.Container) map[string]string {
	agent := cluster.Agent{
		Host: network.MetadataIP, EndpointID: endpointID(t.Name, c.Name), Region: b.Region,
	}
	if t.Definition.TaskRoleARN != "" {
		agent.CredentialsID = t.Name
		agent.ECS = "http://" + network.MetadataIP + ":" + strconv.Itoa(AWSPort)
	}
	secrets := c.Secrets
	c.Secrets, c.EnvironmentFiles = nil, nil
	list, _ := cluster.List(c, cluster.Sources{Agent: agent}) // fails for secrets and files only
	env := map[string]string{}
	for _, pair := range list {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = escape(value)
	}
	delete(env, "HOSTNAME")
	for _, s := range secrets {
		env[s.Name] = "${" + b.secretVariable(s.ValueFrom) + ":?is the secret " + strings.ReplaceAll(escape(s.ValueFrom), "}", "") + "}"
	}
	return env
}

// escape keeps compose from replacing variables.
func escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }

func escapeAll(list []string) []string {
	escaped := make([]string, len(list))
	for i, s := range list {
		escaped[i] = escape(s)
	}
	return escaped
}

func seconds(n *int, otherwise int) string {
	return strconv.Itoa(taskdef.Or(n, otherwise)) + "s"
}

func mebibytes(n *int) string {
	if n == nil || *n == 0 {
		return ""
	}
	return strconv.Itoa(*n) + "m"
}
