package admission

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// kindOf returns the label kind of the task's proxy, empty when the name of its service is known at
// deployment only.
func kindOf(cfg *config.Config) string {
	kind, name := useProxy, ""
	if g := cfg.Gateway; g != nil {
		kind, name = "connect-"+strings.TrimSuffix(g.Kind, "-gateway"), g.Name
	} else if cfg.Service != nil {
		name = cfg.Service.Name
	}
	if name == "" {
		return ""
	}
	return kind + ":" + name
}

// isUserProxy reports whether a container is a proxy that the definition has itself:
// it has the label kind, and was not made here.
func isUserProxy(c taskdef.Container) bool {
	kind := c.DockerLabels[annotationKind]
	return kind != "" && !madeHere(c) && !strings.HasPrefix(kind, useNative+":")
}

// userProxy returns the index of the definition's own proxy, -1 without one.
func (d *document) userProxy() int {
	return slices.IndexFunc(d.Definition.ContainerDefinitions, isUserProxy)
}

// completeProxy writes what the definition's own proxy lacks.
func (in injector) completeProxy(i int) {
	n, own := in.doc.containers()[i], in.sidecars.proxy()
	in.sidecars.size(own)
	if !isEmpty(in.doc.get(n, "entryPoint")) || !isEmpty(in.doc.get(n, "command")) {
		own.Command = nil
	}
	if !in.doc.isAbsent(n, "memory") {
		own.Memory, own.MemoryReservation = nil, nil
	}
	made, completed := in.doc.node(own), []string{}
	for _, key := range made.Keys() {
		if found := n.Get(key); found == nil || found.IsNull() || isNoValue(found) {
			n.Set(key, made.Get(key))
			completed = append(completed, key)
		}
	}
	if len(completed) > 0 {
		in.doc.report(codeDefault, fmt.Sprintf("$.containerDefinitions[%d]", i),
			"what", fmt.Sprintf("the proxy %s gets %s", in.doc.containerName(i), strings.Join(completed, ", ")),
			"fix", "set them in the definition")
	}
	setDependency(in.doc, n, gate(in.cfg))
	mountVolume(in.doc, n, in.cfg.BootstrapDir)
}

// isNativeName reports whether an annotation of a container is about that container's own
// service, and not about the task's.
func isNativeName(c taskdef.Container, name string) bool {
	native, _ := strconv.ParseBool(c.DockerLabels[annotationNative]) // what it should be is a finding
	return native && name == annotationServiceName
}

// inferNative finds the container that a tag native=true means: the only application.
func (cs *containers) inferNative() {
	a, given := cs.annotations.values[annotationNative]
	if native, _ := strconv.ParseBool(a.value); !given || !native || len(cs.annotations.native) > 0 {
		return
	}
	apps := cs.applications()
	if len(apps) != 1 {
		cs.doc.report(codeNative, a.path, "annotation", annotationNative, "count", len(apps))
		return
	}
	cs.annotations.native[cs.doc.containerName(apps[0])] = true
}

// onlyNative reports whether the task has native applications and no other.
func (cs *containers) onlyNative() bool {
	_, gateway := cs.annotations.value(annotationGateway)
	native := slices.Contains(slices.Collect(maps.Values(cs.annotations.native)), true)
	return native && !gateway && len(cs.applications()) == 0 && cs.doc.userProxy() < 0
}

// labelNative gives each native application its kind.
func (cs *containers) labelNative(only bool) {
	for i, c := range cs.doc.Definition.ContainerDefinitions {
		if !cs.annotations.native[cs.doc.containerName(i)] {
			continue
		}
		n := cs.doc.containers()[i]
		name, after := cs.nativeName(c, only)
		if after != "" {
			cs.doc.report(codeServiceFrom, fmt.Sprintf("$.containerDefinitions[%d]", i), "workload", "native service",
				"name", name, "what", after)
		}
		cs.doc.label(n, annotationKind, useNative+":"+name)
	}
}

// nativeName returns the name of the service of a native application, and what that is after
// when no annotation has it.
func (cs *containers) nativeName(c taskdef.Container, only bool) (name, after string) {
	if name := c.DockerLabels[annotationServiceName]; name != "" {
		return name, ""
	}
	named, _ := cs.annotations.value(annotationServiceName)
	family := strings.ToLower(cs.doc.Definition.Family)
	switch {
	case only && named != "":
		return named, ""
	case only && family != "":
		return family, "the family"
	}
	return strings.ToLower(c.Name), "the container"
}

// checkKinds finds labels that are not those of the task's proxy and of its native
// applications.
func checkKinds(t *task) {
	want := kindOf(t.cfg)
	proxies := 0
	for i, c := range t.doc.Definition.ContainerDefinitions {
		kind, given := c.DockerLabels[annotationKind]
		native := strings.HasPrefix(kind, useNative+":")
		if !given || want == "" || native && t.annotations.native[t.doc.containerName(i)] {
			continue
		}
		if proxies++; kind != want || proxies > 1 {
			t.doc.report(codeKind, labelPath(i, annotationKind), "kind", kind, "message",
				"the proxy of this task is one container of the kind "+want)
		}
	}
	if want != "" && proxies == 0 {
		t.doc.report(codeKind, "$.containerDefinitions", "kind", want, "message", "no container has it")
	}
}
