package awsutil

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// servicesPage is the most services that DescribeServices takes.
const servicesPage = 10

// ECSService is what ECS answers about a service.
type ECSService struct {
	Name string
	// Definition is the ARN of the task definition that the service deploys; empty when an external controller
	// deploys.
	Definition string
	// Desired, Running and Pending count tasks, of all deployments.
	Desired, Running, Pending int
	// Deploying means that a deployment is in progress, Failure why the last one failed.
	Deploying bool
	Failure   string
}

// Services returns the active services of the cluster: one call for each hundred, and one for each ten.
func (r *ECSReader) Services(ctx context.Context, cluster string) ([]ECSService, error) {
	var arns []string
	pages := ecs.NewListServicesPaginator(r.client,
		&ecs.ListServicesInput{Cluster: aws.String(cluster), MaxResults: aws.Int32(pageSize)},
		func(o *ecs.ListServicesPaginatorOptions) { o.StopOnDuplicateToken = true })
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list services: %w",
				permissionRemedy("ecs:ListServices", r.explain(ctx, cluster, err)))
		}
		arns = append(arns, page.ServiceArns...)
	}
	var all []ECSService
	for chunk := range slices.Chunk(arns, servicesPage) {
		out, err := r.client.DescribeServices(ctx,
			&ecs.DescribeServicesInput{Cluster: aws.String(cluster), Services: chunk})
		if err != nil {
			return nil, fmt.Errorf("describe %d services: %w", len(chunk),
				permissionRemedy("ecs:DescribeServices", err))
		}
		for _, s := range out.Services { // without those that were deleted since
			if aws.ToString(s.Status) != "INACTIVE" {
				all = append(all, serviceOf(s))
			}
		}
	}
	return all, nil
}

func serviceOf(s types.Service) ECSService {
	service := ECSService{
		Name: aws.ToString(s.ServiceName), Definition: aws.ToString(s.TaskDefinition),
		Desired: int(s.DesiredCount), Running: int(s.RunningCount), Pending: int(s.PendingCount),
		Deploying: len(s.Deployments) > 1,
	}
	for _, d := range s.Deployments {
		switch d.RolloutState {
		case types.DeploymentRolloutStateInProgress:
			service.Deploying = true
		case types.DeploymentRolloutStateFailed:
			service.Failure = aws.ToString(d.RolloutStateReason)
		}
	}
	return service
}

// Environment returns the family of a task definition, by the ARN of its revision, and the value of a variable in its
// container of that name. The error is errors.ErrUnsupported when it has no such container.
func (r *ECSReader) Environment(
	ctx context.Context, arn, container, variable string,
) (family, value string, err error) {
	definition, err := r.definition(ctx, arn, nil)
	if err != nil {
		return "", "", err
	}
	i := slices.IndexFunc(definition.ContainerDefinitions, func(c types.ContainerDefinition) bool {
		return aws.ToString(c.Name) == container
	})
	if i < 0 {
		return "", "", fmt.Errorf("container %s of task definition %s: %w", container, arn, errors.ErrUnsupported)
	}
	for _, v := range definition.ContainerDefinitions[i].Environment {
		if aws.ToString(v.Name) == variable {
			value = aws.ToString(v.Value)
		}
	}
	return aws.ToString(definition.Family), value, nil
}
