package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// ClusterStatus is what Consul and ECS have of a cluster's mesh services, side by side. Its JSON is for scripts.
type ClusterStatus struct {
	Cluster     string          `json:"cluster"`
	Controllers []LeaderStatus  `json:"controllers"`
	Services    []ServiceStatus `json:"services"`
	// Problems are those of no single service.
	Problems []string `json:"problems,omitempty"`
	// Unknown lists the reasons why something is unknown. Partial reports that the comparison of the services
	// lacks some of it.
	Unknown []string `json:"unknown,omitempty"`
	Partial bool     `json:"partial"`
	// AWS is what was spent.
	AWS awsutil.CallCounts `json:"aws"`
}

// Agrees reports whether nothing disagrees.
func (s *ClusterStatus) Agrees() bool {
	return len(s.Problems) == 0 &&
		!slices.ContainsFunc(s.Services, func(s ServiceStatus) bool { return len(s.Problems) > 0 })
}

// LeaderStatus is a controller of the cluster.
type LeaderStatus struct {
	// Command is acl-controller or controller.
	Command string `json:"command"`
	// Leader is the leader's name for itself, empty when none leads.
	Leader string `json:"leader"`
}

// ServiceStatus is a mesh service or a gateway of the cluster. Counts that are nil are unknown.
type ServiceStatus struct {
	Service string `json:"service"`
	Tenancy
	// Kind is that of a gateway.
	Kind string `json:"kind,omitempty"`
	// ECS are the names of the ECS services that run it; none for tasks of RunTask, which are counted in Running as
	// far as they are registered.
	ECS     []string `json:"ecs_services"`
	Desired *int     `json:"desired"`
	Running *int     `json:"running"`
	// Registered counts instances in Consul, Passing those all of whose checks pass, with those of proxy and node.
	Registered int `json:"registered"`
	Passing    int `json:"passing"`
	// Tokens are those of the auth methods, Sessions those on which the instances' checks depend.
	Tokens   *int `json:"tokens"`
	Sessions *int `json:"sessions"`
	// MeshInit and Envoy count instances by version; those of unknown version are in none.
	MeshInit map[string]int `json:"mesh_init_versions"`
	Envoy    map[string]int `json:"envoy_versions"`
	// Problems are what does not agree, Remarks what may be intended.
	Problems []string `json:"problems,omitempty"`
	Remarks  []string `json:"remarks,omitempty"`
}

// statusFacts are what was read for a ClusterStatus.
type statusFacts struct {
	// instances are those of services and gateways; proxies has the IDs of sidecars, on their nodes.
	instances []instance
	proxies   map[nodeObject]bool
	// failing has the services that have a check which does not pass, and with an empty ID nodes.
	failing map[nodeObject]bool
	// tokens counts those of a task, sessions those of a service ID; nil when unknown.
	tokens, sessions map[string]int
	// ecs are the ECS services by mesh service, nil when unknown; tasks are those that were described, by ID, with an
	// empty last status for those that ECS does not know.
	ecs   map[rowKey][]awsutil.ECSService
	tasks map[string]awsutil.ECSTask
}

// nodeObject is a service on a node.
type nodeObject struct{ node, id string }

// rowKey identifies a row.
type rowKey struct {
	tenancy Tenancy
	name    string
}

// instance is a task's instance of a service or gateway.
type instance struct {
	Service
	name, kind string
	meta       map[string]string
}

func (i instance) key() rowKey { return rowKey{i.Tenancy, i.name} }

// rows returns the status of each service, sorted by name.
func (f *statusFacts) rows() []ServiceStatus {
	instances := map[rowKey][]instance{}
	for key := range f.ecs {
		instances[key] = nil
	}
	for _, i := range f.instances {
		instances[i.key()] = append(instances[i.key()], i)
	}
	rows := []ServiceStatus{} // not null in JSON
	for key, of := range instances {
		rows = append(rows, f.row(key, of))
	}
	slices.SortFunc(rows, func(a, b ServiceStatus) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return rows
}

func (f *statusFacts) row(key rowKey, instances []instance) ServiceStatus {
	r := ServiceStatus{Service: key.name, Tenancy: key.tenancy, ECS: []string{}, Registered: len(instances),
		MeshInit: map[string]int{}, Envoy: map[string]int{}}
	withoutProxy, withoutToken := 0, 0
	for _, i := range instances {
		r.Kind = i.kind
		proxy := nodeObject{i.Node, workload.ProxyID(i.ID)}
		if i.kind == "" && !f.proxies[proxy] {
			withoutProxy++
		}
		if !f.failing[nodeObject{i.Node, i.ID}] && !f.failing[proxy] && !f.failing[nodeObject{node: i.Node}] {
			r.Passing++
		}
		if f.tokens[i.Task] == 0 {
			withoutToken++
		}
		countVersion(r.MeshInit, i.meta[config.MetaVersion])
		countVersion(r.Envoy, cmp.Or(i.meta[config.MetaEnvoyVersion],
			workload.EnvoyVersion(f.tasks[i.Task].Images[workload.ContainerSidecarProxy])))
		addCount(&r.Tokens, f.tokens, i.Task)
		addCount(&r.Sessions, f.sessions, i.ID)
	}
	if f.ecs != nil {
		f.addECS(&r, f.ecs[key], instances)
	}
	r.problem(r.Passing < r.Registered, "%d registered, %d passing", r.Registered, r.Passing)
	r.problem(withoutProxy > 0, "%d without a proxy", withoutProxy)
	r.problem(withoutToken > 0 && withoutToken < r.Registered && f.tokens != nil, "%d without a token", withoutToken)
	r.remarkVersions("consul-ecs", r.MeshInit)
	r.remarkVersions("Envoy", r.Envoy)
	return r
}

// addCount adds a known count.
func addCount(to **int, counts map[string]int, id string) {
	if counts == nil {
		return
	}
	if *to == nil {
		*to = new(int)
	}
	**to += counts[id]
}

func countVersion(versions map[string]int, version string) {
	if version != "" {
		versions[version]++
	}
}

func (r *ServiceStatus) problem(is bool, format string, args ...any) {
	if is {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

func (r *ServiceStatus) remarkVersions(of string, versions map[string]int) {
	if len(versions) > 1 {
		r.Remarks = append(r.Remarks, fmt.Sprintf("%d versions of %s", len(versions), of))
	}
}

// addECS adds what ECS has: the counts of its services, and of registered tasks that belong to none.
func (f *statusFacts) addECS(r *ServiceStatus, services []awsutil.ECSService, instances []instance) {
	running, desired, deploying := 0, 0, false
	for _, s := range services {
		r.ECS = append(r.ECS, s.Name)
		running, desired, deploying = running+s.Running, desired+s.Desired, deploying || s.Deploying
		r.problem(s.Failure != "", "ECS service %s: %s", s.Name, s.Failure)
	}
	slices.Sort(r.ECS)
	ended := map[string]int{}
	for _, i := range instances {
		t, described := f.tasks[i.Task]
		switch {
		case !described:
		case t.LastStatus == awsutil.TaskRunning && !inService(t):
			running++
			desired++
		case t.LastStatus == "":
			ended["unknown to ECS"]++
		case t.LastStatus == awsutil.TaskStopped:
			ended[t.LastStatus+" in ECS"]++
		}
	}
	r.Running = &running
	if len(services) > 0 {
		r.Desired = &desired
	}
	if deploying {
		r.Remarks = append(r.Remarks, "a deployment is in progress")
	}
	r.problem(running != desired, "%d desired, %d running", desired, running)
	r.problem(running != r.Registered, "%d running, %d registered", running, r.Registered)
	for _, what := range slices.Sorted(maps.Keys(ended)) {
		r.problem(true, "%d registered but %s", ended[what], what)
	}
}
