package subcommand

import (
	"cmp"
	"context"
	"flag"
	"strings"

	"github.com/meshtask/consul-ecs/admission"
	"github.com/meshtask/consul-ecs/admission/taskrole"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/controller/wanted"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// admitRole are the flags of admit that are about the task's role in IAM.
type admitRole struct {
	check bool
	path  string
}

func (o *admitRole) declare(fs *flag.FlagSet) {
	fs.BoolVar(&o.check, "check-iam", false, "read the task role from IAM, and check whether it can log in to Consul as its service")
	fs.StringVar(&o.path, "iam-role-path", wanted.DefaultRolePath, "`path` of the IAM roles that the auth method takes, for -check-iam")
}

// run adds the findings about the role when it is asked to.
func (o *admitRole) run(ctx context.Context, inv *cli.Invocation, r *admission.Result) error {
	if !o.check {
		return nil
	}
	path := "/"
	if inner := strings.Trim(o.path, "/"); inner != "" {
		path += inner + "/"
	}
	reader := awsutil.RoleReader{
		Load:     awsutil.LoadOptions{UserAgent: admitAgent, Version: cli.Version(), DefaultRegion: "us-east-1"},
		Endpoint: cmp.Or(inv.Getenv("AWS_ENDPOINT_URL_IAM"), inv.Getenv("AWS_ENDPOINT_URL")),
	}
	ctx, cancel := context.WithTimeout(ctx, checkWhole)
	defer cancel()
	if err := (taskrole.Checker{IAM: reader, Path: path}).Check(ctx, r); err != nil {
		return awsFailed(inv, err)
	}
	return nil
}
