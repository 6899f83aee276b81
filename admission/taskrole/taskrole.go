package taskrole

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/admission/usage"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// IAM reads roles.
type IAM interface {
	Role(ctx context.Context, roleARN string) (awsutil.Role, error)
	Allowed(ctx context.Context, roleARN, action, resource string) (bool, error)
}

// Checker compares the role of a task with what its login to Consul requires.
type Checker struct {
	IAM IAM
	// Path is that of the roles which the auth method accepts; it begins and ends with
	// a slash.
	Path string
}

// Codes of findings about the role.
const (
	codeRole    = "ADM-IAM-ROLE"
	codeTag     = "ADM-IAM-TAG"
	codeTrust   = "ADM-IAM-TRUST"
	codeUnknown = "ADM-IAM-UNKNOWN"
)

// ecsTasks is the service that starts tasks in the name of their roles.
const ecsTasks = "ecs-tasks.amazonaws.com"

// Codes returns the rules about the task's role, sorted by code.
func Codes() []admission.Code {
	return []admission.Code{
		{Code: codeRole, Severity: taskdef.Error, Text: "the task role {role} cannot log in: {why}", Fix: "{fix}"},
		{Code: codeTag, Severity: taskdef.Error, Text: "the task role {role} has {got} as its tag {tag}, but the service needs {want}: the login would be for another service, or refused", Fix: "set the tag to {want}, or take the role of that service"},
		{Code: codeTrust, Severity: taskdef.Warn, Text: "the task role {role} may be assumed by {who}, who can then log in as this service", Fix: "trust only the service ecs-tasks.amazonaws.com"},
		{Code: codeUnknown, Severity: admission.Info, Text: "the task role is known at deployment only: it was not checked", Fix: ""},
	}
}

func add(r *admission.Result, code string, pairs ...any) {
	codes := Codes()
	at := slices.IndexFunc(codes, func(c admission.Code) bool { return c.Code == code })
	r.Add(codes[at].Finding(r.After.Locate("$.taskRoleArn"), pairs...))
}

// Check adds findings about the role of an admitted task that logs in to Consul. The
// error is about IAM that could not be asked.
func (c Checker) Check(ctx context.Context, r *admission.Result) error {
	if !r.Login {
		return nil
	}
	arn := r.After.Definition.TaskRoleARN
	switch {
	case arn == "" && slices.Contains(r.After.Unknown(), r.After.Locate("$.taskRoleArn")):
		add(r, codeUnknown)
		return nil
	case arn == "":
		add(r, codeRole, "role", "(absent)", "why", "a task without a task role has no identity in AWS", "fix", "set taskRoleArn")
		return nil
	case !strings.HasPrefix(arn, "arn:"):
		add(r, codeUnknown) // a name without its account
		return nil
	}
	role, err := c.IAM.Role(ctx, arn)
	switch {
	case errors.Is(err, awsutil.ErrNoRole):
		add(r, codeRole, "role", arn, "why", "it does not exist", "fix", "create it, or correct taskRoleArn")
		return nil
	case err != nil:
		return err
	}
	c.identity(r, role)
	trust(r, role)
	allowed, err := c.IAM.Allowed(ctx, role.ARN, "iam:GetRole", role.ARN)
	if err == nil && !allowed {
		add(r, codeRole, "role", role.ARN, "why", "it may not read itself, as Consul does in its name", "fix", "allow it iam:GetRole on itself")
	}
	return err
}

// identity compares path and tags, by which the auth method and its binding rules know a
// service or a gateway.
func (c Checker) identity(r *admission.Result, role awsutil.Role) {
	if !strings.HasPrefix(role.Path, c.Path) {
		add(r, codeRole, "role", role.ARN, "why", "its path is "+role.Path+", and the auth method takes roles below "+c.Path,
			"fix", "create it with the path "+c.Path+", or give that of the auth method as -iam-role-path")
	}
	want := func(tag string, values ...string) {
		if got := role.Tags[tag]; !slices.Contains(values, got) {
			add(r, codeTag, "role", role.ARN, "tag", tag, "got", strconv.Quote(got), "want", strings.Join(values, " or "))
		}
	}
	for namespace, used := range r.Usages {
		var gateways []string
		for _, kind := range used.Kinds {
			if name, _, _ := strings.Cut(kind, ":"); name != usage.Proxy && name != usage.Native {
				gateways = append(gateways, strings.TrimPrefix(name, "connect-")+"-gateway")
			}
		}
		switch {
		case len(used.Services) > 0:
			want(workload.TagServiceName, used.Services...)
		case len(gateways) > 0:
			want(workload.TagGatewayKind, gateways...)
		default:
			continue // a namespace that is only called
		}
		if namespace != "" {
			want(workload.TagNamespace, namespace)
		}
	}
}

// trust warns about others than ECS that may take the role.
func trust(r *admission.Result, role awsutil.Role) {
	others := slices.DeleteFunc(slices.Clone(role.Trusted), func(who string) bool { return who == ecsTasks })
	if len(others) > 0 {
		add(r, codeTrust, "role", role.ARN, "who", strings.Join(others, ", "))
	}
	if len(others) == len(role.Trusted) && !slices.Contains(others, "*") {
		add(r, codeRole, "role", role.ARN, "why", "its trust policy does not name "+ecsTasks, "fix", "let this service assume it")
	}
}
