package awsutil

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// RoleUsers returns the families whose latest active revision has the task role, sorted
// by name as ECS lists them. An error means that the list may lack some.
func (r *ECSReader) RoleUsers(ctx context.Context, roleARN string) ([]string, error) {
	var found []string
	pages := ecs.NewListTaskDefinitionFamiliesPaginator(r.client, &ecs.ListTaskDefinitionFamiliesInput{Status: types.TaskDefinitionFamilyStatusActive})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return found, fmt.Errorf("list the families of task definitions: %w", err)
		}
		for _, family := range page.Families {
			latest, err := r.definition(ctx, family, nil)
			if err != nil {
				return found, err
			}
			if aws.ToString(latest.TaskRoleArn) == roleARN {
				found = append(found, family)
			}
		}
	}
	return found, nil
}
