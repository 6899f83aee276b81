package admission

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// IAM reads roles.
type IAM interface {
	Role(ctx context.Context, roleARN string) (awsutil.Role, error)
	Allowed(ctx context.Context, roleARN, action, resource string) (bool, error)
}

// RoleChecker compares the role of a task with what its login to Consul requires.
type RoleChecker struct {
	IAM IAM
	// Families returns the families of task definitions that have a role.
	Families func(ctx context.Context, roleARN string) ([]string, error)
	// Rights are those that a login in a datacenter, the servers' own when empty, would
	// get; nil when Consul is not asked.
	Rights func(ctx context.Context, datacenter string, l aclrules.Login) (*aclrules.Report, error)
	// Path is that of the roles which the auth method accepts; it begins and ends with
	// a slash.
	Path string
}

// Codes of findings about the role.
const (
	codeRoleRight         = "ADM-IAM-RIGHT"
	codeRoleRightUnknown  = "ADM-IAM-RIGHT-UNKNOWN"
	codeRolePath          = "ADM-IAM-PATH"
	codeRole              = "ADM-IAM-ROLE"
	codeRoleShared        = "ADM-IAM-SHARED"
	codeRoleSharedUnknown = "ADM-IAM-SHARED-UNKNOWN"
	codeRoleTag           = "ADM-IAM-TAG"
	codeRoleTrust         = "ADM-IAM-TRUST"
	codeRoleUnknown       = "ADM-IAM-UNKNOWN"
)

// ecsTasks is the service that starts tasks with their roles.
const ecsTasks = "ecs-tasks.amazonaws.com"

// roleCodes returns the rules about the task's role, sorted by code.
func roleCodes() []Code {
	return []Code{
		{codeRolePath, taskdef.Warn, "the task role {role} has the path {path}, but the auth method trusts roles " +
			"below {want} unless the controller has another path", "create it with the path {want}, or give the " +
			"controller's as controller.iamRolePath of the mesh file or as -iam-role-path"},
		{codeRoleRight, taskdef.Error, "a login of the task role {role} by the auth method {method} would not allow " +
			"{query}, which the task needs to {reason}", "add {policy} to what a binding rule of the method grants"},
		{codeRoleRightUnknown, taskdef.Warn,
			"cannot determine what a login of the task role {role} by the auth method {method} would allow: {why}",
			"-resolver-token-file takes a token with acl:read, and the controller creates the auth method"},
		{codeRole, taskdef.Error, "the task role {role} cannot log in: {why}", "{fix}"},
		{codeRoleShared, taskdef.Warn, "the task role {role} is also that of {others}: tasks of these can log in as " +
			"this service", "give each task definition its own role"},
		{codeRoleSharedUnknown, Info, "cannot determine which other families have the task role {role}: {why}",
			"{fix}"},
		{codeRoleTag, taskdef.Error, "the task role {role} has {got} as its tag {tag}, but the service needs {want}: " +
			"the login would be for another service, or refused",
			"set the tag to {want}, or take the role of that service"},
		{codeRoleTrust, taskdef.Warn, "the task role {role} may be assumed by {who}, who can then log in as " +
			"this service", "trust only the service ecs-tasks.amazonaws.com"},
		{codeRoleUnknown, Info, "the task role {why}: it was not checked", "{fix}"},
	}
}

func addRole(r *Result, code string, pairs ...any) {
	r.add(code, r.After.Locate("$.taskRoleArn"), pairs...)
}

// Check adds findings about the role of an admitted task that logs in to Consul. The
// error is about IAM that could not be asked.
func (c RoleChecker) Check(ctx context.Context, r *Result) error {
	if r.Login == nil {
		return nil
	}
	sharedInTemplate(r)
	arn := r.After.Definition.TaskRoleARN
	switch {
	case arn == "" && r.After.IsUnknown("$.taskRoleArn"):
		addRole(r, codeRoleUnknown, "why", "is known at deployment only", "fix", "")
		return nil
	case arn == "":
		return nil // a finding of Admit
	case !strings.HasPrefix(arn, "arn:"):
		addRole(r, codeRoleUnknown, "why", arn+" is a name and not an ARN", "fix", "write the ARN as taskRoleArn")
		return nil
	}
	role, err := c.IAM.Role(ctx, arn)
	switch {
	case errors.Is(err, awsutil.ErrNoRole):
		addRole(r, codeRole, "role", arn, "why", "it does not exist", "fix", "create it, or correct taskRoleArn")
		return nil
	case err != nil:
		return err
	}
	c.identity(r, role)
	checkTrust(r, role)
	c.sharedInECS(ctx, r, role.ARN)
	c.login(ctx, r, role)
	allowed, err := c.IAM.Allowed(ctx, role.ARN, "iam:GetRole", role.ARN)
	if err == nil && !allowed {
		addRole(r, codeRole, "role", role.ARN, "why", "it is not allowed to read itself, which Consul does "+
			"on its behalf", "fix", "allow it iam:GetRole on itself")
	}
	return err
}

// identity compares path and tags, by which the auth method and its binding rules know a
// service or a gateway.
func (c RoleChecker) identity(r *Result, role awsutil.Role) {
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Code == codeRolePath }) // IAM knows it
	if !strings.HasPrefix(role.Path, c.Path) {
		addRole(r, codeRole, "role", role.ARN, "why", "its path is "+role.Path+
			", but the auth method trusts roles below "+c.Path,
			"fix", "create it with the path "+c.Path+", or give that of the auth method as -iam-role-path")
	}
	want := func(tag string, values ...string) {
		if got := role.Tags[tag]; !slices.Contains(values, got) {
			addRole(r, codeRoleTag, "role", role.ARN, "tag", tag, "got", strconv.Quote(got), "want",
				strings.Join(values, " or "))
		}
	}
	for namespace, used := range r.Usages {
		var gateways []string
		for _, kind := range used.Kinds {
			if name, _, _ := strings.Cut(kind, ":"); name != useProxy && name != useNative {
				gateways = append(gateways, strings.TrimPrefix(name, "connect-")+"-gateway")
			}
		}
		switch {
		case len(used.Services) > 0:
			want(config.TagServiceName, used.Services...)
		case len(gateways) > 0:
			want(config.TagGatewayKind, gateways...)
		default:
			continue // a namespace that is only called
		}
		if namespace != "" {
			want(config.TagNamespace, namespace)
		}
	}
}

// checkTrust warns about others than ECS that may take the role.
func checkTrust(r *Result, role awsutil.Role) {
	others := slices.DeleteFunc(slices.Clone(role.Trusted), func(who string) bool { return who == ecsTasks })
	if len(others) > 0 {
		addRole(r, codeRoleTrust, "role", role.ARN, "who", strings.Join(others, ", "))
	}
	if len(others) == len(role.Trusted) && !slices.Contains(others, "*") {
		addRole(r, codeRole, "role", role.ARN, "why", "its trust policy does not name "+ecsTasks, "fix",
			"let this service assume it")
	}
}
