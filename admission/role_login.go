package admission

import (
	"context"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/awsutil"
)

// login compares what a login with the role would get with what the task needs
// at run time. Nothing logs in: the auth method and its binding rules are read.
func (c RoleChecker) login(ctx context.Context, r *Result, role awsutil.Role) {
	if c.Rights == nil {
		return
	}
	rights, err := c.Rights(ctx, r.Login.Datacenter, aclrules.Login{Method: r.Login.Method, Entity: aclrules.Entity{
		Name: role.Name, ID: role.ID, Account: role.Account, Path: role.Path, Tags: role.Tags,
	}})
	if err != nil {
		addRole(r, codeRoleRightUnknown, "method", r.Login.Method, "role", role.ARN, "why", err)
		return
	}
	refused, disabled := rights.Special()
	switch {
	case disabled != nil:
		return
	case refused != nil:
		addRole(r, codeRole, "role", role.ARN, "why", refused, "fix",
			"correct the tags of the role, or the binding rules of the auth method")
		return
	}
	var unknown []string
	for _, q := range r.Requirements {
		if q.Holder != holderRuntime {
			continue
		}
		answer := rights.Can(q.Query())
		switch {
		case q.Namespace != "" || q.Partition != "":
			unknown = append(unknown, aclrules.ErrEnterprise.Error())
		case answer.Decision == aclrules.Denied.String():
			addRole(r, codeRoleRight, "method", r.Login.Method, "role", role.ARN, "query", q.Query(), "reason",
				q.Reason, "policy", strings.ReplaceAll(q.HCL(), "\n", "; "))
		case answer.Decision == aclrules.Unknown.String():
			unknown = append(unknown, answer.Missing...)
		}
	}
	if len(unknown) > 0 {
		addRole(r, codeRoleRightUnknown, "method", r.Login.Method, "role", role.ARN, "why", unknown[0])
	}
}
