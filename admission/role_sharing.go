package admission

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// sharedInTemplate finds the other task definitions of a template that have the role,
// whatever CloudFormation makes of it. The role's tag can name the service of one of them.
func sharedInTemplate(r *Result) {
	const key = "TaskRoleArn"
	resources := r.After.Root.Get("Resources")
	role := r.After.Task.Get(key)
	if r.Format != formatTemplate || resources == nil || role == nil {
		return
	}
	own := role.JSON()
	var others []string
	for _, name := range resources.Keys() {
		resource := resources.Get(name)
		kind, _ := resource.Get("Type").Text()
		properties := resource.Get("Properties")
		if other := properties.Get(key); kind == taskdef.TemplateType && properties != r.After.Task && other != nil &&
			bytes.Equal(own, other.JSON()) {
			others = append(others, name)
		}
	}
	reportShared(r, cmp.Or(r.After.Definition.TaskRoleARN, string(own)), others)
}

// sharedInECS finds the other families whose latest revision has the role.
func (c RoleChecker) sharedInECS(ctx context.Context, r *Result, role string) {
	own := r.After.Definition.Family
	if own == "" { // CloudFormation names it, and it may be among those that ECS names
		addRole(r, codeRoleSharedUnknown, "role", role, "why",
			"the family of this definition is known at deployment only", "fix", "set Family")
		return
	}
	families, err := c.Families(ctx, role)
	if err != nil {
		addRole(r, codeRoleSharedUnknown, "role", role, "why", err, "fix",
			"allow ecs:ListTaskDefinitionFamilies and ecs:DescribeTaskDefinition")
	}
	reportShared(r, role, slices.DeleteFunc(families, func(family string) bool { return family == own }))
}

func reportShared(r *Result, role string, others []string) {
	if len(others) > 0 {
		addRole(r, codeRoleShared, "role", role, "others", strings.Join(others, ", "))
	}
}
