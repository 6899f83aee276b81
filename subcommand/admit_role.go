package subcommand

import (
	"cmp"
	"context"
	"flag"
	"time"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/controller/setup"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// admitRole are the flags of admit that are about the task's role in IAM.
type admitRole struct {
	check bool
	path  string
}

func (o *admitRole) declare(fs *flag.FlagSet) {
	fs.BoolVar(&o.check, "check-iam", false,
		"read the task role from IAM, and check whether it can log in to Consul as its service")
	fs.StringVar(&o.path, "iam-role-path", "",
		"`path` of the IAM roles that the auth method takes (default that of the mesh file, or "+setup.DefaultRolePath+
			")")
}

// Calls a second, of the 20 that AWS grants, and the time of the search for others with
// the role; and that of all about the role.
const (
	familyRate  = 15
	familyLimit = time.Minute
	roleLimit   = familyLimit + 2*checkWhole
)

// roleUsers reads from ECS, within a limit, which families have the role.
func roleUsers(ctx context.Context, load awsutil.LoadOptions, roleARN string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, familyLimit)
	defer cancel()
	conf, err := awsutil.LoadConfig(ctx, load)
	if err != nil {
		return nil, err
	}
	return awsutil.NewECSReader(conf, awsutil.ECSReaderOptions{CallsPerSecond: familyRate}).RoleUsers(ctx, roleARN)
}

// run adds the findings about the role when it is asked to. Consul is asked as check says.
// The error is AWS's.
func (o *admitRole) run(ctx context.Context, inv *cli.Invocation, r *admission.Result, check *admitCheck) error {
	if !o.check {
		return nil
	}
	load := awsutil.LoadOptions{UserAgent: admitAgent, Version: cli.Version()}
	iam := load
	iam.DefaultRegion = "us-east-1"
	checker := admission.RoleChecker{
		IAM: awsutil.RoleReader{Load: iam, Endpoint: cmp.Or(inv.Getenv("AWS_ENDPOINT_URL_IAM"),
			inv.Getenv("AWS_ENDPOINT_URL"))},
		Path: r.RolePath, Rights: check.login(inv),
		Families: func(ctx context.Context, roleARN string) ([]string, error) { return roleUsers(ctx, load, roleARN) },
	}
	ctx, cancel := context.WithTimeout(ctx, roleLimit)
	defer cancel()
	return checker.Check(ctx, r)
}
