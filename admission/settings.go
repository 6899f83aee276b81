package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// Roles of the containers of the mesh in the mesh file, and of their common settings.
const (
	roleAll        = "all"
	roleInstall    = "install"
	roleClient     = "client"
	roleMeshInit   = "meshInit"
	roleProxy      = "proxy"
	roleHealthSync = "healthSync"
)

// sidecarRoles are all of them.
var sidecarRoles = []string{roleAll, roleInstall, roleClient, roleMeshInit, roleProxy, roleHealthSync}

// Sidecar has the settings of one container of the mesh. What is absent keeps its default. The
// Terraform modules have the same members.
type Sidecar struct {
	Image             *string `json:"image"`
	Essential         *bool   `json:"essential"`
	CPU               *int    `json:"cpu"`
	Memory            *int    `json:"memory"`
	MemoryReservation *int    `json:"memoryReservation"`
	User              *string `json:"user"`

	ReadonlyRootFilesystem *bool    `json:"readonlyRootFilesystem"`
	AddCapabilities        []string `json:"addCapabilities"`
	// DropCapabilities replace the default, ALL; an empty list drops none.
	DropCapabilities []string `json:"dropCapabilities"`

	StartTimeout *int `json:"startTimeout"`
	StopTimeout  *int `json:"stopTimeout"`

	Environment  []Variable        `json:"environment"`
	Secrets      []taskdef.Secret  `json:"secrets"`
	DockerLabels map[string]string `json:"dockerLabels"`
	PortMappings []Port            `json:"portMappings"`
	MountPoints  []Mount           `json:"mountPoints"`

	// HealthCheck changes the times of the proxy's check.
	HealthCheck      *HealthTimes              `json:"healthCheck"`
	RestartPolicy    *Restart                  `json:"restartPolicy"`
	LogConfiguration *taskdef.LogConfiguration `json:"logConfiguration"`
}

// Variable is an environment variable of a container of the mesh.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Port is a port mapping of a container of the mesh.
type Port struct {
	ContainerPort int    `json:"containerPort"`
	HostPort      *int   `json:"hostPort"`
	Protocol      string `json:"protocol"`
	Name          string `json:"name"`
	AppProtocol   string `json:"appProtocol"`
}

// Mount is a volume in a container of the mesh, read-only unless ReadOnly is false.
type Mount struct {
	SourceVolume  string `json:"sourceVolume"`
	ContainerPath string `json:"containerPath"`
	ReadOnly      *bool  `json:"readOnly"`
}

// HealthTimes are the times of a health check, in seconds, and its retries.
type HealthTimes struct {
	Interval    *int `json:"interval"`
	Timeout     *int `json:"timeout"`
	Retries     *int `json:"retries"`
	StartPeriod *int `json:"startPeriod"`
}

// Restart is a restart policy, enabled unless Enabled is false.
type Restart struct {
	Enabled              *bool `json:"enabled"`
	IgnoredExitCodes     []int `json:"ignoredExitCodes"`
	RestartAttemptPeriod *int  `json:"restartAttemptPeriod"`
}

// sidecar returns the settings of a role: those of all containers, with the role's over them.
// Variables, secrets, ports, mounts and labels are added to those of all.
func (s settings) sidecar(role string) Sidecar {
	all, own := s.Sidecars[roleAll], s.Sidecars[role]
	list := func(own, all []string) []string {
		if own != nil {
			return own
		}
		return all
	}
	labels := maps.Clone(all.DockerLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, own.DockerLabels)
	return Sidecar{
		Image: cmp.Or(own.Image, all.Image), Essential: cmp.Or(own.Essential, all.Essential),
		CPU: cmp.Or(own.CPU, all.CPU), Memory: cmp.Or(own.Memory, all.Memory),
		MemoryReservation:      cmp.Or(own.MemoryReservation, all.MemoryReservation),
		User:                   cmp.Or(own.User, all.User),
		ReadonlyRootFilesystem: cmp.Or(own.ReadonlyRootFilesystem, all.ReadonlyRootFilesystem),
		AddCapabilities:        list(own.AddCapabilities, all.AddCapabilities),
		DropCapabilities:       list(own.DropCapabilities, all.DropCapabilities),
		StartTimeout:           cmp.Or(own.StartTimeout, all.StartTimeout),
		StopTimeout:            cmp.Or(own.StopTimeout, all.StopTimeout),
		Environment:            slices.Concat(all.Environment, own.Environment),
		Secrets:                slices.Concat(all.Secrets, own.Secrets),
		DockerLabels:           labels, PortMappings: slices.Concat(all.PortMappings, own.PortMappings),
		MountPoints:      slices.Concat(all.MountPoints, own.MountPoints),
		HealthCheck:      cmp.Or(own.HealthCheck, all.HealthCheck),
		RestartPolicy:    cmp.Or(own.RestartPolicy, all.RestartPolicy),
		LogConfiguration: cmp.Or(own.LogConfiguration, all.LogConfiguration),
	}
}

// apply writes the settings over what a container has.
func (s Sidecar) apply(c *taskdef.Container) {
	c.Image, c.User = taskdef.Or(s.Image, c.Image), taskdef.Or(s.User, c.User)
	c.Essential, c.CPU = cmp.Or(s.Essential, c.Essential), cmp.Or(s.CPU, c.CPU)
	if s.Memory != nil || s.MemoryReservation != nil {
		c.Memory, c.MemoryReservation = s.Memory, s.MemoryReservation
	}
	c.ReadonlyRootFilesystem = cmp.Or(s.ReadonlyRootFilesystem, c.ReadonlyRootFilesystem)
	c.StartTimeout, c.StopTimeout = cmp.Or(s.StartTimeout, c.StartTimeout), cmp.Or(s.StopTimeout, c.StopTimeout)
	for _, v := range s.Environment {
		c.Environment = append(c.Environment, taskdef.KeyValue{Name: v.Name, Value: v.Value})
	}
	c.Secrets = slices.Concat(c.Secrets, s.Secrets)
	for key, value := range s.DockerLabels {
		if _, ours := c.DockerLabels[key]; !ours {
			c.DockerLabels[key] = value
		}
	}
	for _, p := range s.PortMappings {
		c.PortMappings = append(c.PortMappings, taskdef.PortMapping{
			ContainerPort: &p.ContainerPort, HostPort: p.HostPort, Protocol: cmp.Or(p.Protocol, "tcp"), Name: p.Name,
			AppProtocol: p.AppProtocol,
		})
	}
	for _, m := range s.MountPoints {
		mount := taskdef.MountPoint{SourceVolume: m.SourceVolume, ContainerPath: m.ContainerPath}
		if taskdef.Or(m.ReadOnly, true) {
			mount.ReadOnly = new(true)
		}
		c.MountPoints = append(c.MountPoints, mount)
	}
	if t, h := s.HealthCheck, c.HealthCheck; t != nil && h != nil {
		h.Interval, h.Timeout = cmp.Or(t.Interval, h.Interval), cmp.Or(t.Timeout, h.Timeout)
		h.Retries, h.StartPeriod = cmp.Or(t.Retries, h.Retries), cmp.Or(t.StartPeriod, h.StartPeriod)
	}
	if r := s.RestartPolicy; r != nil {
		c.RestartPolicy = &taskdef.RestartPolicy{
			Enabled: taskdef.Or(r.Enabled, true), IgnoredExitCodes: r.IgnoredExitCodes,
			RestartAttemptPeriod: r.RestartAttemptPeriod,
		}
		if ends(roleOf(c.Name)) && !slices.Contains(r.IgnoredExitCodes, 0) { // its work is done then
			c.RestartPolicy.IgnoredExitCodes = slices.Concat([]int{0}, r.IgnoredExitCodes)
		}
	}
	c.LogConfiguration = cmp.Or(s.LogConfiguration, c.LogConfiguration)
}

// check reports the first setting that no task can have. Concurrency reports whether the file
// has that member.
func (s settings) check(concurrency bool) error {
	const file = "of the mesh file"
	if n := s.EnvoyConcurrency; concurrency && (n < 1 || n > maxConcurrency) {
		return fmt.Errorf("the member admission.envoyConcurrency %s: is %d, want 1 to %d", file, n, maxConcurrency)
	}
	for _, role := range slices.Sorted(maps.Keys(s.Sidecars)) {
		one := s.Sidecars[role]
		member := "the member admission.sidecars." + role
		if !slices.Contains(sidecarRoles, role) {
			return fmt.Errorf("%s %s: no such role, want one of %s", member, file, strings.Join(sidecarRoles, ", "))
		}
		for _, n := range []*int{one.CPU, one.Memory, one.MemoryReservation} {
			if taskdef.Or(n, 0) < 0 {
				return fmt.Errorf("%s %s: has %d, want 0 or more", member, file, *n)
			}
		}
		if (role == roleAll || ends(role)) && taskdef.Or(one.Essential, false) {
			return fmt.Errorf("%s.essential %s: install and meshInit exit when their work is done, "+
				"so they cannot be essential", member, file)
		}
		if other := role != roleAll && role != roleProxy; other && one.HealthCheck != nil {
			return fmt.Errorf("%s.healthCheck %s: only the proxy has a health check", member, file)
		}
		if err := s.checkVariables(role); err != nil {
			return fmt.Errorf("%s.environment %s: %w", member, file, err)
		}
	}
	return nil
}

// checkVariables finds a variable that a container would have twice: ECS takes both, and the last one
// counts.
func (s settings) checkVariables(role string) error {
	given := map[string]string{}
	for _, name := range []string{config.EnvVar, config.LogJSONEnvVar, ignoreVariable, agentVariable} {
		given[name] = "is set by admission"
	}
	variables := s.Sidecars[role].Environment
	if role != roleAll {
		variables = slices.Concat(s.Sidecars[roleAll].Environment, variables)
	}
	for _, v := range variables {
		if given[v.Name] != "" {
			return fmt.Errorf("%s %s: remove it", v.Name, given[v.Name])
		}
		given[v.Name] = "is given twice, in it or also in all"
	}
	return nil
}

// ends reports whether the container of a role exits when its work is done.
func ends(role string) bool { return role == roleInstall || role == roleMeshInit }

// roleOf returns the role of a container of the mesh by its name.
func roleOf(name string) string {
	return map[string]string{
		workload.ContainerInstall: roleInstall, workload.ContainerConsulClient: roleClient,
		workload.ContainerMeshInit:     roleMeshInit,
		workload.ContainerSidecarProxy: roleProxy, workload.ContainerDataplane: roleProxy,
		workload.ContainerHealthSync: roleHealthSync,
	}[name]
}
