package subcommand

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// admitAgent is the user agent of admit for AWS.
const admitAgent = "consul-ecs-admit"

// registerAdmitted registers an admitted definition and prints its ARN. It is one call,
// which is not repeated: each makes a revision.
func registerAdmitted(ctx context.Context, inv *cli.Invocation, input *ecs.RegisterTaskDefinitionInput) error {
	ctx, cancel := context.WithTimeout(ctx, awsutil.RequestTimeout)
	defer cancel()
	conf, err := awsutil.LoadConfig(ctx, awsutil.LoadOptions{UserAgent: admitAgent, Version: cli.Version()})
	if err != nil {
		return err
	}
	client := ecs.NewFromConfig(conf, func(o *ecs.Options) { o.Retryer = aws.NopRetryer{} })
	output, err := client.RegisterTaskDefinition(ctx, input)
	if err != nil {
		return fmt.Errorf("register task definition %s: %w", aws.ToString(input.Family), err)
	}
	fmt.Fprintf(inv.Stderr, "registered %s\n", aws.ToString(output.TaskDefinition.TaskDefinitionArn))
	return nil
}
