package admission

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// kind is the label kind of the task's proxy, empty when the name of its service is
// known at deployment only.
func (t *task) kind() string {
	kind, name := useProxy, ""
	if g := t.cfg.Gateway; g != nil {
		kind, name = "connect-"+strings.TrimSuffix(g.Kind, "-gateway"), g.Name
	} else if t.cfg.Service != nil {
		name = t.cfg.Service.Name
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

// userProxy is the index of the definition's own proxy, -1 without one.
func (t *task) userProxy() int {
	return slices.IndexFunc(t.doc.Definition.ContainerDefinitions, isUserProxy)
}

// completeProxy writes what the definition's own proxy lacks.
func (t *task) completeProxy(i int) {
	n, own := t.containers()[i], t.proxy()
	t.size(own)
	if !isEmpty(t.get(n, "entryPoint")) || !isEmpty(t.get(n, "command")) {
		own.Command = nil
	}
	if !t.absent(n, "memory") {
		own.Memory, own.MemoryReservation = nil, nil
	}
	made, completed := t.node(own), []string{}
	for _, key := range made.Keys() {
		if found := n.Get(key); found == nil || found.IsNull() || isNoValue(found) {
			n.Set(key, made.Get(key))
			completed = append(completed, key)
		}
	}
	if len(completed) > 0 {
		t.add(codeDefault, fmt.Sprintf("$.containerDefinitions[%d]", i),
			"what", fmt.Sprintf("the proxy %s gets %s", t.containerName(i), strings.Join(completed, ", ")),
			"fix", "set them in the definition")
	}
	t.order(n, t.afterGate())
	t.mount(n)
}

// ofNative reports whether an annotation of a container is about that container's own
// service, and not about the task's.
func (t *task) ofNative(c taskdef.Container, name string) bool {
	native, _ := strconv.ParseBool(c.DockerLabels[annotationNative]) // what it should be is a finding
	return native && name == annotationServiceName
}

// inferNative finds the container that a tag native=true means: the only application.
func (t *task) inferNative() {
	a, given := t.notes.task[annotationNative]
	if native, _ := strconv.ParseBool(a.value); !given || !native || len(t.notes.native) > 0 {
		return
	}
	apps := t.applications()
	if len(apps) != 1 {
		t.add(codeNative, a.path, "annotation", annotationNative, "count", len(apps))
		return
	}
	t.notes.native[t.containerName(apps[0])] = true
}

// onlyNative reports whether the task has native applications and no other.
func (t *task) onlyNative() bool {
	_, gateway := t.notes.value(annotationGateway)
	native := slices.Contains(slices.Collect(maps.Values(t.notes.native)), true)
	return native && !gateway && len(t.applications()) == 0 && t.userProxy() < 0
}

// labelNative gives each native application its kind.
func (t *task) labelNative(only bool) {
	for i, c := range t.doc.Definition.ContainerDefinitions {
		if !t.notes.native[t.containerName(i)] {
			continue
		}
		n := t.containers()[i]
		name, after := t.nativeName(c, only)
		if after != "" {
			t.add(codeServiceFrom, fmt.Sprintf("$.containerDefinitions[%d]", i), "workload", "native service",
				"name", name, "what", after)
		}
		t.label(n, annotationKind, useNative+":"+name)
	}
}

// nativeName returns the name of the service of a native application, and what that is after
// when no annotation has it.
func (t *task) nativeName(c taskdef.Container, only bool) (name, after string) {
	if name := c.DockerLabels[annotationServiceName]; name != "" {
		return name, ""
	}
	named, _ := t.notes.value(annotationServiceName)
	family := strings.ToLower(t.doc.Definition.Family)
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
	want := t.kind()
	proxies := 0
	for i, c := range t.doc.Definition.ContainerDefinitions {
		kind, given := c.DockerLabels[annotationKind]
		native := strings.HasPrefix(kind, useNative+":")
		if !given || want == "" || native && t.notes.native[t.containerName(i)] {
			continue
		}
		if proxies++; kind != want || proxies > 1 {
			t.add(codeKind, labelPath(i, annotationKind), "kind", kind, "message", "the proxy of this task is one container of the kind "+want)
		}
	}
	if want != "" && proxies == 0 {
		t.add(codeKind, "$.containerDefinitions", "kind", want, "message", "no container has it")
	}
}
