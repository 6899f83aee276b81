package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	sdk "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// insideProgram runs in containers of the image "inside": this test binary. It asks the ECS API for
// its own task with nothing but what ECS gives it, and prints the answers.
func insideProgram() int {
	ctx := context.Background()
	if len(os.Args) > 1 {
		return protect(ctx)
	}
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

// protect protects its own task from scale-in, prints the answer, and waits for TERM.
func protect(ctx context.Context) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, os.Getenv("ECS_AGENT_URI")+"/task-protection/v1/state",
		strings.NewReader(`{"ProtectionEnabled": true}`))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	fmt.Println(res.Status, string(text), err)
	<-ctx.Done()
	return 0
}

// refusal returns AWS's part of an error.
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
	w := newServeFixture(t)
	w.register("inside", "inside", "exec /bin/inside")
	environment := []shapes.EnvironmentVariable{
		{Name: "AWS_ENDPOINT_URL_ECS", Value: "http://10.42.0.1"}, {Name: "GORACE", Value: "atexit_sleep_ms=0"},
	}
	for role, refused := range map[string]string{
		"lister": "ecs:StopTask",
		"shop":   "ecs:ListTasks", // it has no actions
	} {
		arn := w.run(shapes.RunTaskInput{TaskDefinition: "inside", Overrides: shapes.Overrides{
			TaskRoleARN: "arn:aws:iam::" + account + ":role/" + role, Containers: []shapes.ContainerOverride{
				{Name: "app", Environment: environment},
			},
		}}).TaskARN
		task := w.await("", arn, shapes.Stopped)
		operation, _ := strings.CutPrefix(refused, "ecs:")
		want := operation + " AccessDeniedException: User: arn:aws:sts::" + account + ":assumed-role/" + role + "/" +
			idOf(arn) +
			" is not authorized to perform: " + refused + " because no identity-based policy allows the " + refused +
			" action\n"
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

// The agent's endpoint and the ECS API have one protection for a task, in every
// partition. It ends with the task.
func TestTaskThatProtectsItselfIsProtectedInTheAPI(t *testing.T) {
	t.Parallel()
	w := newServeFixtureIn(t, "us-gov-west-1")
	var out shapes.Empty
	must := func(operation string, in any) {
		t.Helper()
		if err := w.call(operation, in, &out); err != nil {
			t.Fatal(err)
		}
	}
	must("RegisterTaskDefinition", map[string]any{
		"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": []string{"FARGATE"}, "cpu": "256",
		"memory":      "512",
		"taskRoleArn": "arn:aws-us-gov:iam::" + account + ":role/shop",
		"containerDefinitions": []any{map[string]any{"name": "app", "image": "inside",
			"entryPoint": []string{"/bin/inside", "protect"}}},
	})
	must("CreateService", map[string]any{
		"serviceName": "web", "taskDefinition": "web", "desiredCount": 1, "launchType": "FARGATE",
		"networkConfiguration": map[string]any{"awsvpcConfiguration": map[string]any{"subnets": []string{"subnet-1"}}},
	})
	tasks := func() []string {
		var list shapes.ListTasksOutput
		if err := w.call("ListTasks", shapes.ListTasksInput{ServiceName: "web"}, &list); err != nil {
			t.Fatal(err)
		}
		return list.TaskARNs
	}
	testkit.Eventually(t, "the service has a task", func() bool { return len(tasks()) == 1 })
	arn := tasks()[0]
	w.await("", arn, shapes.Running)
	testkit.Eventually(t, "the task has an answer", func() bool { return w.log("web", arn) != "" })
	if log := w.log("web", arn); !strings.Contains(log, `"ProtectionEnabled":true,"TaskArn":"`+arn+`"`) {
		t.Errorf("the endpoint's answer %s", log)
	}
	var got shapes.TaskProtectionOutput
	err := w.call("GetTaskProtection", shapes.TaskProtectionInput{Tasks: []string{arn}}, &got)
	if err != nil || len(got.ProtectedTasks) != 1 {
		t.Fatalf("protection in the API: %+v, %v", got, err)
	}
	if !got.ProtectedTasks[0].ProtectionEnabled {
		t.Errorf("protection in the API: %+v, %v", got, err)
	}
	must("DeleteService", map[string]any{"service": "web", "force": true})
	testkit.Eventually(t, "the protection ends with the task", func() bool {
		_, protected := w.Region().Cluster().Protections().Until(arn, time.Now())
		return !protected
	})
}

// inside reports whether this process is a container's program.
func inside() bool { return strings.HasSuffix(os.Args[0], "/inside") }
