package controlplane

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// keepNames adds the names of the deployment that the input leaves as they are.
func (d *Deployment) keepNames(in shapes.ServiceInput) shapes.ServiceInput {
	in.ServiceConnect = cmp.Or(in.ServiceConnect, d.connect)
	if in.ServiceRegistries == nil {
		in.ServiceRegistries = d.registries
	}
	return in
}

// sameNames reports whether the input of a deployment has the same names.
func (d *Deployment) sameNames(in shapes.ServiceInput) bool {
	alike := func(a, b shapes.ServiceRegistry) bool { return fingerprint(a) == fingerprint(b) }
	return fingerprint(in.ServiceConnect) == fingerprint(d.connect) &&
		slices.EqualFunc(in.ServiceRegistries, d.registries, alike)
}

// checkReached returns AWS's error for names by which the tasks of a definition cannot be reached; its texts
// are not known.
func checkReached(def *taskdef.TaskDefinition, in shapes.ServiceInput) error {
	if len(in.ServiceRegistries) > 1 {
		return shapes.Invalid("serviceRegistries can have at most 1 items.")
	}
	for _, r := range in.ServiceRegistries {
		if !strings.HasPrefix(r.RegistryARN, "arn:") {
			return shapes.Invalid("registryArn must be an ARN of AWS Cloud Map, not '%s'.", r.RegistryARN)
		}
		isContainer := func(c taskdef.Container) bool { return c.Name == r.ContainerName }
		if r.ContainerName != "" && !slices.ContainsFunc(def.ContainerDefinitions, isContainer) {
			return shapes.Invalid("The container %s does not exist in the task definition.", r.ContainerName)
		}
	}
	if !in.ServiceConnect.IsEnabled() {
		return nil
	}
	for _, s := range in.ServiceConnect.Services {
		if namedPort(def, s.PortName) == 0 {
			return shapes.Invalid("portName '%s' does not exist in the portMappings of the task definition.",
				s.PortName)
		}
		for _, alias := range s.Aliases {
			if alias.Port < 1 || alias.Port > 65535 {
				return shapes.Invalid("The port of a client alias must be between 1 and 65535.")
			}
		}
	}
	return nil
}

// namedPort returns the container port of a port mapping, or 0.
func namedPort(def *taskdef.TaskDefinition, name string) int {
	for _, c := range def.ContainerDefinitions {
		for _, p := range c.PortMappings {
			if name != "" && p.Name == name {
				return taskdef.Or(p.ContainerPort, 0)
			}
		}
	}
	return 0
}

// registered returns the names of registries that are known.
func (s *state) registered(registries []shapes.ServiceRegistry) (names []string) {
	for _, r := range registries {
		if name := s.options.CloudMap[lastPart(r.RegistryARN)]; name != "" {
			names = append(names, strings.ToLower(name))
		}
	}
	return names
}

func lastPart(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

// routes returns those of all services.
func (s *state) routes(now time.Time) (all []shapes.Route) {
	for _, v := range s.services {
		if v.status != shapes.Active || !v.Deployments[0].connect.IsEnabled() {
			continue
		}
		records := slices.DeleteFunc(s.serviceRecords(v, now), func(r *Record) bool { return !r.serves() })
		connect := v.Deployments[0].connect
		for _, service := range connect.Services {
			targets := targetsOf(records, service.PortName)
			for _, alias := range service.Aliases {
				name := alias.DNSName
				if name == "" {
					name = cmp.Or(service.DiscoveryName, service.PortName) + "." + s.namespace(v, connect)
				}
				all = append(all, shapes.Route{Name: strings.ToLower(name), Port: uint16(alias.Port), Targets: targets})
			}
		}
	}
	return all
}

// namespace returns the name of a service's namespace: of the service, or that of its cluster, or the cluster's own
// name where localecs knows none.
func (s *state) namespace(v *Service, connect *shapes.ServiceConnect) string {
	given, _ := s.clusters[v.cluster].connect["namespace"].(string)
	given = cmp.Or(connect.Namespace, given, v.cluster)
	if strings.HasPrefix(given, "arn:") {
		return cmp.Or(s.options.CloudMap[lastPart(given)], v.cluster)
	}
	return given
}

// serves reports whether callers may be led to the task.
func (r *Record) serves() bool {
	return r.Task.DesiredStatus == shapes.Running && r.report.Network != nil && r.report.View.Serves()
}

func targetsOf(records []*Record, portName string) (targets []string) {
	for _, r := range records {
		if port := namedPort(r.Definition, portName); port != 0 {
			targets = append(targets, net.JoinHostPort(r.report.Network.IP, strconv.Itoa(port)))
		}
	}
	return targets
}
