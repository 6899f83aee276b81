package serve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	sdk "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
)

// insideProgram is what containers of the image "inside" run: this test binary,
// which asks the ECS API for its own task with nothing but what ECS gives it, and
// says what comes of it.
func insideProgram() int {
	ctx := context.Background()
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	client := sdk.NewFromConfig(c)
	listed, err := client.ListTasks(ctx, &sdk.ListTasksInput{Family: aws.String("inside")})
	if err != nil || len(listed.TaskArns) != 1 {
		fmt.Println("ListTasks", listed, refusal(err))
		return 1
	}
	described, err := client.DescribeTasks(ctx, &sdk.DescribeTasksInput{Tasks: listed.TaskArns})
	if err != nil || len(described.Tasks) != 1 {
		fmt.Println("DescribeTasks", described, refusal(err))
		return 1
	}
	fmt.Println("DescribeTasks", *described.Tasks[0].TaskArn, *described.Tasks[0].Containers[0].Name)
	_, err = client.StopTask(ctx, &sdk.StopTaskInput{Task: described.Tasks[0].TaskArn})
	fmt.Println("StopTask", refusal(err))
	return 0
}

// refusal is AWS's part of an error.
func refusal(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return refused.ErrorCode() + ": " + refused.ErrorMessage()
	}
	return fmt.Sprint(err)
}

// A task calls the same API as the user, at the VPC's gateway, with the
// credentials of its role and as far as the role's actions go.
func TestATaskCallsTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("inside", "inside", "exec /bin/inside")
	environment := []ecs.EnvironmentVariable{{Name: "AWS_ENDPOINT_URL_ECS", Value: "http://10.42.0.1"}, {Name: "GORACE", Value: "atexit_sleep_ms=0"}}
	for role, refused := range map[string]string{
		"lister": "ecs:StopTask",
		"shop":   "ecs:ListTasks", // it has no actions
	} {
		arn := w.run(ecs.RunTaskInput{TaskDefinition: "inside", Overrides: ecs.Overrides{
			TaskRoleARN: "arn:aws:iam::" + account + ":role/" + role, Containers: []ecs.ContainerOverride{{Name: "app", Environment: environment}},
		}}).TaskARN
		task := w.await("", arn, ecs.Stopped)
		operation, _ := strings.CutPrefix(refused, "ecs:")
		want := operation + " AccessDeniedException: User: arn:aws:sts::" + account + ":assumed-role/" + role + "/" + idOf(arn) +
			" is not authorized to perform: " + refused + " because no identity-based policy allows the " + refused + " action\n"
		code := 1
		if role == "lister" {
			want = "DescribeTasks " + arn + " app\n" + want
			code = 0
		} else {
			want = strings.Replace(want, "ListTasks ", "ListTasks <nil> ", 1)
		}
		if d := cmp.Diff(want, w.log("inside", arn)); d != "" || *task.Containers[0].ExitCode != code {
			t.Errorf("%s: exit code %d, (-want +got):\n%s", role, *task.Containers[0].ExitCode, d)
		}
	}
}

// inside says whether this process is a container's program.
func inside() bool { return strings.HasSuffix(os.Args[0], "/inside") }
