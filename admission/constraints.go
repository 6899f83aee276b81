package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// constrain lets tasks that Fargate never runs start only on instances of their architecture. A
// constraint of the user's on it stays alone.
func constrain(t *task) {
	def := t.doc.Definition
	const attribute = "attribute:ecs.cpu-architecture"
	if !t.doc.isFullDefinition() || mayBeFargate(t.doc) || def.RuntimePlatform == nil || t.cfg == nil {
		return
	}
	arch := def.RuntimePlatform.CPUArchitecture
	if arch != "ARM64" && arch != "X86_64" {
		return
	}
	if slices.ContainsFunc(def.PlacementConstraints,
		func(c taskdef.PlacementConstraint) bool { return strings.Contains(c.Expression, attribute) }) {
		return
	}
	list := t.doc.list(t.doc.Task, "placementConstraints")
	if list == nil {
		return
	}
	expression := fmt.Sprintf("%s == %s", attribute, strings.ToLower(arch))
	t.doc.report(codeDefault, "$.placementConstraints", "what", "tasks are placed on instances with "+expression+
		" only",
		"fix", "set a constraint on "+attribute+" for other instances")
	list.Append(t.doc.node(taskdef.PlacementConstraint{Type: "memberOf", Expression: expression}))
}
