package admission

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/config"
)

// UseSummary is what a definition uses of Consul in one namespace.
type UseSummary struct {
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

// use is one usage, at its place in the definition. Namespace and Partition are empty
// for the default ones.
type use struct{ Kind, Namespace, Partition, Name, Path string }

// byNamespace returns the uses by namespace, each name once and sorted.
func byNamespace(uses []use) map[string]*UseSummary {
	all := map[string]*UseSummary{}
	for _, u := range uses {
		in := all[u.Namespace]
		if in == nil {
			in = &UseSummary{Services: []string{}, Kinds: []string{}, Upstreams: []string{}, KeyPrefixes: []string{}}
			all[u.Namespace] = in
		}
		switch u.Kind {
		case useService:
			in.Services = append(in.Services, u.Name)
		case useUpstream, usePeered, useQuery:
			in.Upstreams = append(in.Upstreams, u.Name)
		case useKeys, useKeyList:
			in.KV, in.KeyPrefixes = true, append(in.KeyPrefixes, u.Name)
		default:
			in.Kinds = append(in.Kinds, u.Kind+":"+u.Name)
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

// community returns a namespace or partition as it is without Consul Enterprise.
func community(name string) string {
	if aclrules.SameName(name, "default") {
		return ""
	}
	return name
}

// usesOf returns what the admitted definition uses of Consul: the kinds of its containers, and what its
// configuration and annotations say of upstreams and keys.
func usesOf(t *task) []use {
	service := serviceUse(t)
	var all []use
	for i, c := range t.doc.Definition.ContainerDefinitions {
		kind, name, is := strings.Cut(c.DockerLabels[annotationKind], ":")
		if !is {
			continue
		}
		u := service
		u.Kind, u.Name, u.Path = kind, name, labelPath(i, annotationKind)
		if kind == useProxy || kind == useNative {
			registered := u
			registered.Kind = useService
			all = append(all, registered)
		}
		all = append(all, u)
	}
	if t.cfg != nil && t.cfg.Gateway == nil {
		all = append(all, upstreamUses(t, service)...)
	}
	all = append(all, keyUses(t, service)...)
	for i := range all {
		all[i].Path = t.doc.Locate(all[i].Path)
	}
	return all
}

// serviceUse returns a use with the namespace and partition of the task.
func serviceUse(t *task) use {
	namespace, _ := t.annotations.value(annotationNamespace)
	partition, _ := t.annotations.value(annotationPartition)
	switch {
	case t.cfg == nil:
	case t.cfg.Gateway != nil:
		namespace, partition = t.cfg.Gateway.Namespace, t.cfg.Gateway.Partition
	case t.cfg.Service != nil:
		namespace, partition = t.cfg.Service.Namespace, t.cfg.Service.Partition
	}
	return use{Namespace: community(namespace), Partition: community(partition)}
}

func upstreamUses(t *task, service use) []use {
	var all []use
	for _, u := range t.cfg.Proxy.Upstreams {
		kind := useUpstream
		switch {
		case u.DestinationType == "prepared_query":
			kind = useQuery
		case u.DestinationPeer != "":
			kind = usePeered
		}
		all = append(all, use{
			Kind: kind, Name: u.DestinationName, Path: t.annotations.pathOf(annotationUpstreams),
			Namespace: community(cmp.Or(u.DestinationNamespace, service.Namespace)),
			Partition: community(cmp.Or(u.DestinationPartition, service.Partition)),
		})
	}
	return all
}

// keyUses returns the prefixes of the annotation kv-prefixes, of which prefix:list is listed, too. A program
// that makes files of keys, without the annotation, may read any.
func keyUses(t *task, service use) []use {
	of := func(kind, prefix, path string) use {
		return use{Kind: kind, Namespace: service.Namespace, Partition: service.Partition, Name: prefix, Path: path}
	}
	a, given := t.annotations.values[annotationKeyPrefixes]
	if !given {
		if at := t.containers.template(); at != "" {
			return []use{of(useKeys, "", at)}
		}
		return nil
	}
	var all []use
	for _, word := range config.SplitWords(a.value) {
		prefix, listed := strings.CutSuffix(word, ":list")
		kind := useKeys
		if listed {
			kind = useKeyList
		}
		all = append(all, of(kind, prefix, a.path))
	}
	return all
}

// template returns the path of an application that runs consul-template or envconsul; empty for none.
func (cs *containers) template() string {
	for _, i := range cs.applications() {
		c := cs.doc.Definition.ContainerDefinitions[i]
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

// policiesOf returns those of every container and tag, whether we or the user made it.
func policiesOf(d *document) Policies {
	var all Policies
	add := func(value, path string) {
		if names := config.SplitWords(value); len(names) > 0 {
			all.Names, all.Path = append(all.Names, names...), cmp.Or(all.Path, d.Locate(path))
		}
	}
	for i, c := range d.Definition.ContainerDefinitions {
		add(c.DockerLabels[annotationPolicies], labelPath(i, annotationPolicies))
	}
	for i, tag := range d.Definition.Tags {
		if tag.Key == annotationPolicies {
			add(tag.Value, fmt.Sprintf("$.tags[%d]", i))
		}
	}
	return all
}

// require adds what the task uses of Consul and what that takes. The token broker hands
// out rights to tasks without the mesh, too.
func (r *Result) require(t *task) {
	if r.Injected {
		uses := usesOf(t)
		r.Usages, r.Requirements = byNamespace(uses), requirements(uses)
		refused := slices.ContainsFunc(t.doc.findings, func(f Finding) bool { return f.Code == codeServiceName })
		r.Unnamed = t.cfg != nil && kindOf(t.cfg) == "" && !refused
		if t.cfg != nil && t.cfg.ConsulLogin.Enabled && t.cfg.ConsulLogin.IncludeEntity {
			r.Login, r.RolePath = &t.cfg.ConsulLogin, t.trustedPath()
		}
	}
	r.Policies = policiesOf(t.doc)
}

// UsesConsul reports whether the definition requires any right in Consul.
func (r *Result) UsesConsul() bool {
	return r.Unnamed || len(r.Requirements) > 0 || len(r.Policies.Names) > 0
}
