package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// pathOf is where an annotation is. Without it the value is of the mesh file or the
// default, and the path that of the configuration in the definition.
func (t *task) pathOf(name string) string {
	if a, given := t.notes.task[name]; given {
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

// sources are the annotations that members of the configuration are from.
var sources = []struct{ member, annotation string }{
	{"name", annotationServiceName}, {"port", annotationServicePort}, {"tags", annotationTags}, {"namespace", annotationNamespace}, {"partition", annotationPartition},
	{"kind", annotationGateway},
}

// sourceOf is where a value of the configuration is from: an annotation, or else the mesh
// file, which is no part of the definition.
func (t *task) sourceOf(member string) string {
	name := ""
	section, rest, _ := strings.Cut(strings.TrimPrefix(member, "$."), ".")
	switch {
	case section == "proxy" && strings.HasPrefix(rest, "upstreams"):
		name = annotationUpstreams
	case section == "proxy" && strings.HasPrefix(rest, "expose"):
		name = annotationExpose
	case section == "service" || section == "gateway":
		for _, s := range sources {
			if rest == s.member || strings.HasPrefix(rest, s.member+"[") {
				name = s.annotation
			}
		}
	}
	if a, given := t.notes.task[name]; given {
		return a.path
	}
	return "$"
}

// namedAt is where the name of the service or gateway is from.
func (t *task) namedAt(section string) string {
	if _, given := t.notes.task[annotationServiceName]; given || t.mesh.configuration.Get(section).Get("name") != nil {
		return t.pathOf(annotationServiceName)
	}
	return "$.family"
}
