package admission

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// identity is what a task is in Consul, by its configuration.
type identity struct {
	Service *struct{ Name string }
	Gateway *struct{ Name, Kind string }
}

// describe returns the kind of what a task is in Consul, and its name: the family where the
// configuration has none.
func (n identity) describe(family string) (kind, name string) {
	switch {
	case n.Gateway != nil:
		return n.Gateway.Kind, cmp.Or(n.Gateway.Name, strings.ToLower(family))
	case n.Service != nil:
		return "service", cmp.Or(n.Service.Name, strings.ToLower(family))
	}
	return "service", strings.ToLower(family)
}

// checkIdentity finds a task that would become another service or gateway, because its annotations are
// among tags that an answer of DescribeTaskDefinition lacks. Its mesh-init has what it was.
func checkIdentity(t *task) {
	def := t.doc.Definition
	before, admitted := formerConfiguration(def)
	if !t.untagged || !admitted {
		return
	}
	var after identity
	_ = json.Unmarshal(t.configuration, &after) // it was made here
	formerKind, formerName := before.describe(def.Family)
	kind, name := after.describe(def.Family)
	if isGiven(t, annotationServiceName, "name") {
		formerName = name
	}
	if isGiven(t, annotationGateway, "kind") {
		formerKind = kind
	}
	if was, now := formerKind+" "+formerName, kind+" "+name; was != now {
		t.doc.report(codeTagsLost, "$", "was", was, "now", now)
	}
}

// isGiven reports whether an annotation, or the mesh file as a member of service or gateway, has a value.
func isGiven(t *task, annotation, member string) bool {
	_, annotated := t.annotations.values[annotation]
	file := t.mesh.configuration
	return annotated || file.Get("service").Get(member) != nil || file.Get("gateway").Get(member) != nil
}

// formerConfiguration returns what the configuration of the mesh-init of a definition has, and false
// without one.
func formerConfiguration(def *taskdef.TaskDefinition) (identity, bool) {
	var found identity
	c := def.Container(workload.ContainerMeshInit)
	if c == nil {
		return found, false
	}
	at := slices.IndexFunc(c.Environment, func(e taskdef.KeyValue) bool { return e.Name == config.EnvVar })
	return found, at >= 0 && json.Unmarshal([]byte(c.Environment[at].Value), &found) == nil
}
