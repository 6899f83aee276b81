package admission

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// Annotations about rights in Consul, without Prefix.
const (
	annKeyPrefixes = "kv-prefixes"
	annPolicies    = "policies"
)

// Usage is what a definition uses of Consul in one namespace.
type Usage struct {
	// Services are registered, and Kinds what the mesh makes of them, such as
	// connect-proxy:web.
	Services []string `json:"services"`
	Kinds    []string `json:"kinds"`
	// Upstreams are services and prepared queries that the task calls.
	Upstreams []string `json:"upstreams"`
	// KV is true when the task reads keys, which begin with one of KeyPrefixes.
	KV          bool     `json:"kv"`
	KeyPrefixes []string `json:"keyPrefixes"`
}

// use is one usage, at its place in the definition.
type use struct{ usage, namespace, partition, name, path string }

// community is a namespace or partition as it is without Consul Enterprise.
func community(name string) string {
	if name == "default" {
		return ""
	}
	return name
}

// uses are what the admitted definition uses of Consul: the kinds of its containers, and
// what its configuration and annotations say of upstreams and keys.
func (t *task) uses() []use {
	home := t.home()
	var all []use
	for i, c := range t.doc.Definition.ContainerDefinitions {
		kind, name, is := strings.Cut(c.DockerLabels[Prefix+annKind], ":")
		if !is {
			continue
		}
		u := home
		u.usage, u.name, u.path = kind, name, labelPath(i, Prefix+annKind)
		if kind == usageProxy || kind == usageNative {
			service := u
			service.usage = usageService
			all = append(all, service)
		}
		all = append(all, u)
	}
	if t.cfg != nil && t.cfg.Gateway == nil {
		all = append(all, t.upstreamUses(home)...)
	}
	all = append(all, t.keyUses(home)...)
	for i := range all {
		all[i].path = t.doc.Locate(all[i].path)
	}
	return all
}

// home has the namespace and partition of the task.
func (t *task) home() use {
	namespace, _ := t.notes.value(annNamespace)
	partition, _ := t.notes.value(annPartition)
	switch {
	case t.cfg == nil:
	case t.cfg.Gateway != nil:
		namespace, partition = t.cfg.Gateway.Namespace, t.cfg.Gateway.Partition
	case t.cfg.Service != nil:
		namespace, partition = t.cfg.Service.Namespace, t.cfg.Service.Partition
	}
	return use{namespace: community(namespace), partition: community(partition)}
}

// pathOf is where an annotation is. Without it the value is of the mesh file or the
// default, and the path that of the configuration in the definition.
func (t *task) pathOf(annotation string) string {
	if a, given := t.notes.task[annotation]; given {
		return a.path
	}
	for i, c := range t.doc.Definition.ContainerDefinitions {
		at := slices.IndexFunc(c.Environment, func(e taskdef.KeyValue) bool { return e.Name == config.EnvVar })
		if c.Name == workload.ContainerMeshInit && at >= 0 {
			return fmt.Sprintf("$.containerDefinitions[%d].environment[%d]", i, at)
		}
	}
	return "$"
}

func (t *task) upstreamUses(home use) []use {
	var all []use
	for _, u := range t.cfg.Proxy.Upstreams {
		usage := usageUpstream
		if u.DestinationType == "prepared_query" {
			usage = usageQuery
		}
		all = append(all, use{
			usage: usage, name: u.DestinationName, path: t.pathOf(annUpstreams),
			namespace: community(cmp.Or(u.DestinationNamespace, home.namespace)),
			partition: community(cmp.Or(u.DestinationPartition, home.partition)),
		})
	}
	return all
}

// keyUses are the prefixes of the annotation kv-prefixes, of which prefix:list is listed,
// too. A program that makes files of keys, without the annotation, may read any.
func (t *task) keyUses(home use) []use {
	of := func(usage, prefix, path string) use {
		return use{usage, home.namespace, home.partition, prefix, path}
	}
	a, given := t.notes.task[annKeyPrefixes]
	if !given {
		if at := t.template(); at != "" {
			return []use{of(usageKeys, "", at)}
		}
		return nil
	}
	var all []use
	for _, word := range words(a.value) {
		prefix, listed := strings.CutSuffix(word, ":list")
		usage := usageKeys
		if listed {
			usage = usageKeyList
		}
		all = append(all, of(usage, prefix, a.path))
	}
	return all
}

// template is the path of an application that runs consul-template or envconsul; empty
// for none.
func (t *task) template() string {
	for _, i := range t.applications() {
		c := t.doc.Definition.ContainerDefinitions[i]
		for _, word := range strings.Fields(strings.Join(slices.Concat(c.EntryPoint, c.Command), " ")) {
			if name := path.Base(strings.Trim(word, `'"`)); name == "consul-template" || name == "envconsul" {
				return fmt.Sprintf("$.containerDefinitions[%d]", i)
			}
		}
	}
	return ""
}

// Policies are names of policies, and where the first of them is.
type Policies struct {
	Names []string
	Path  string
}

// policies are those of every container and tag, whoever made it.
func (t *task) policies() Policies {
	var all Policies
	add := func(value, path string) {
		if names := words(value); len(names) > 0 {
			all.Names, all.Path = append(all.Names, names...), cmp.Or(all.Path, t.doc.Locate(path))
		}
	}
	for i, c := range t.doc.Definition.ContainerDefinitions {
		add(c.DockerLabels[Prefix+annPolicies], labelPath(i, Prefix+annPolicies))
	}
	for i, tag := range t.doc.Definition.Tags {
		if tag.Key == Prefix+annPolicies {
			add(tag.Value, fmt.Sprintf("$.tags[%d]", i))
		}
	}
	return all
}

// require adds what the task uses of Consul and what that takes. The token broker hands
// out rights to tasks without the mesh, too.
func (r *Result) require(t *task) {
	if r.Injected {
		uses := t.uses()
		r.Usages, r.Requirements = usages(uses), requirements(uses)
		r.Unnamed = t.cfg != nil && t.kind() == ""
	}
	r.Policies = t.policies()
}

// UsesConsul reports whether the definition requires any right in Consul.
func (r *Result) UsesConsul() bool {
	return r.Unnamed || len(r.Requirements) > 0 || len(r.Policies.Names) > 0
}

// usages are the uses by namespace, each name once and sorted.
func usages(uses []use) map[string]*Usage {
	all := map[string]*Usage{}
	for _, u := range uses {
		in := all[u.namespace]
		if in == nil {
			in = &Usage{Services: []string{}, Kinds: []string{}, Upstreams: []string{}, KeyPrefixes: []string{}}
			all[u.namespace] = in
		}
		switch u.usage {
		case usageService:
			in.Services = append(in.Services, u.name)
		case usageUpstream, usageQuery:
			in.Upstreams = append(in.Upstreams, u.name)
		case usageKeys, usageKeyList:
			in.KV, in.KeyPrefixes = true, append(in.KeyPrefixes, u.name)
		default:
			in.Kinds = append(in.Kinds, u.usage+":"+u.name)
		}
	}
	for _, u := range all {
		for _, list := range []*[]string{&u.Services, &u.Kinds, &u.Upstreams, &u.KeyPrefixes} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
	}
	return all
}
