package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// pathOf returns the path of an annotation. Without it the value is of the mesh file or the default, and the
// path that of the configuration in the definition.
func (as *annotations) pathOf(name string) string {
	if a, given := as.values[name]; given {
		return a.path
	}
	for i, c := range as.doc.Definition.ContainerDefinitions {
		at := slices.IndexFunc(c.Environment, func(e taskdef.KeyValue) bool { return e.Name == config.EnvVar })
		if c.Name == workload.ContainerMeshInit && at >= 0 {
			return fmt.Sprintf("$.containerDefinitions[%d].environment[%d]", i, at)
		}
	}
	return "$"
}

// sources are the annotations that members of the configuration are from.
var sources = []struct{ member, annotation string }{
	{"name", annotationServiceName}, {"port", annotationServicePort}, {"tags", annotationTags},
	{"namespace", annotationNamespace}, {"partition", annotationPartition},
	{"kind", annotationGateway},
}

// sourceOf returns the path of what a value of the configuration is from: an annotation, or else the mesh
// file, which is no part of the definition.
func (c configurer) sourceOf(member string) string {
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
	if a, given := c.annotations.values[name]; given {
		return a.path
	}
	return "$"
}

// nameSource returns the path of what the name of the service or gateway is from.
func (c configurer) nameSource(section string) string {
	if _, given := c.annotations.values[annotationServiceName]; given || c.file.Get(section).Get("name") != nil {
		return c.annotations.pathOf(annotationServiceName)
	}
	return "$.family"
}
