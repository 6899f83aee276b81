package subcommand

import (
	"bytes"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/taskdef"
)

// admitAgent is the user agent of admit for AWS.
const admitAgent = "consul-ecs-admit"

// registerAdmitted registers an admitted definition as it is printed, and prints its ARN. It is
// one call, which is not repeated: each makes a revision.
func registerAdmitted(ctx context.Context, inv *cli.Invocation, admitted *taskdef.Document) error {
	ctx, cancel := context.WithTimeout(ctx, awsutil.RequestTimeout)
	defer cancel()
	conf, err := awsutil.LoadConfig(ctx, awsutil.LoadOptions{UserAgent: admitAgent, Version: cli.Version()})
	if err != nil {
		return err
	}
	client := ecs.NewFromConfig(conf, func(o *ecs.Options) {
		o.Retryer = aws.NopRetryer{}
		o.APIOptions = append(o.APIOptions, replaceBody(admitted.Bytes()))
	})
	family := admitted.Definition.Family
	output, err := client.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family: &family, ContainerDefinitions: []types.ContainerDefinition{}, // what the SDK requires
	})
	if err != nil {
		return fmt.Errorf("register task definition %s: %w", family, err)
	}
	fmt.Fprintf(inv.Stderr, "registered %s\n", aws.ToString(output.TaskDefinition.TaskDefinitionArn))
	return nil
}

// replaceBody returns an option of a client that sends a body in place of the serialized input,
// signed as that would be: the SDK's types may lack members that ECS has.
func replaceBody(body []byte) func(*middleware.Stack) error {
	return func(s *middleware.Stack) error {
		replace := func(ctx context.Context, in middleware.SerializeInput,
			next middleware.SerializeHandler) (middleware.SerializeOutput, middleware.Metadata, error) {
			request, ok := in.Request.(*smithyhttp.Request)
			if !ok {
				return middleware.SerializeOutput{}, middleware.Metadata{},
					fmt.Errorf("replace the body of a %T: want an HTTP request", in.Request)
			}
			request, err := request.SetStream(bytes.NewReader(body))
			if err != nil {
				return middleware.SerializeOutput{}, middleware.Metadata{}, err
			}
			in.Request = request
			return next.HandleSerialize(ctx, in)
		}
		return s.Serialize.Add(middleware.SerializeMiddlewareFunc("ReplaceBody", replace), middleware.After)
	}
}
