package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestRunTaskRefuses(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	w.register(`{"family": "bridge", "containerDefinitions": [{"name": "app", "image": "a", "memory": 64}]}`)
	w.register(planeTask("gone"))
	_, err1 := w.DeregisterTaskDefinition(w.call(), shapes.TaskDefinitionInput{TaskDefinition: "gone:1"})
	_, err2 := w.CreateCluster(w.call(), shapes.CreateClusterInput{ClusterName: "bare"})
	_, err3 := w.CreateCluster(w.call(), shapes.CreateClusterInput{ClusterName: "old"})
	_, err4 := w.DeleteCluster(w.call(), shapes.ClusterInput{Cluster: "old"})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		want   string
		change func(*shapes.RunTaskInput)
	}{
		{"ClientException: TaskDefinition can not be blank.", func(in *shapes.RunTaskInput) { in.TaskDefinition = "" }},
		{"ClientException: TaskDefinition not found.", func(in *shapes.RunTaskInput) { in.TaskDefinition = "web:2" }},
		{"ClientException: TaskDefinition is inactive", func(in *shapes.RunTaskInput) { in.TaskDefinition = "gone:1" }},
		{"InvalidParameterException: Invalid revision number. Number: x", func(in *shapes.RunTaskInput) {
			in.TaskDefinition = "web:x"
		}},
		{"ClusterNotFoundException: Cluster not found.", func(in *shapes.RunTaskInput) { in.Cluster = "nowhere" }},
		{"ClusterNotFoundException: The referenced cluster was inactive.", func(in *shapes.RunTaskInput) {
			in.Cluster = planeAccount + "cluster/old"
		}},
		{"InvalidParameterException: Invalid identifier: Unexpected number of separators",
			func(in *shapes.RunTaskInput) { in.Cluster = "a/b" }},
		{"InvalidParameterException: count must be between 1 and 10.", func(in *shapes.RunTaskInput) {
			in.Count = new(11)
		}},
		{"InvalidParameterException: startedBy can have at most 128 characters.", func(in *shapes.RunTaskInput) {
			in.StartedBy = strings.Repeat("x", 129)
		}},
		{"InvalidParameterException: clientToken can have at most 64 characters.", func(in *shapes.RunTaskInput) {
			in.ClientToken = strings.Repeat("x", 65)
		}},
		{"InvalidParameterException: Invalid namespace for group.", func(in *shapes.RunTaskInput) {
			in.Group = "service:web"
		}},
		{"InvalidParameterException: propagateTags cannot be SERVICE when running a task.",
			func(in *shapes.RunTaskInput) { in.PropagateTags = "SERVICE" }},
		{"InvalidParameterException: 1 validation error detected: Value 'MOON' at 'launchType' failed to satisfy " +
			"constraint: Member must satisfy enum value set: [EC2, FARGATE, EXTERNAL, MANAGED_INSTANCES]",
			func(in *shapes.RunTaskInput) {
				in.LaunchType = "MOON"
			}},
		{"InvalidParameterException: No Container Instances were found in your cluster.",
			func(in *shapes.RunTaskInput) {
				in.LaunchType = "EC2"
			}},
		{"InvalidParameterException: Tag keys can't start with 'aws:'.", func(in *shapes.RunTaskInput) {
			in.Tags = []shapes.Tag{{Key: "AWS:x"}}
		}},
		{"InvalidParameterException: Specifying both a launch type and capacity provider strategy is not supported. " +
			"Remove one and try again.", func(in *shapes.RunTaskInput) {
			in.LaunchType, in.CapacityProviderStrategy = "FARGATE", []shapes.StrategyItem{{CapacityProvider: "FARGATE"}}
		}},
		{"InvalidParameterException: Placement constraints are not supported with FARGATE launch type.",
			func(in *shapes.RunTaskInput) { in.PlacementConstraints = []map[string]any{{}} }},
		{"InvalidParameterException: Placement strategies are not supported with FARGATE launch type.",
			func(in *shapes.RunTaskInput) { in.PlacementStrategy = []map[string]any{{}} }},
		{"PlatformUnknownException: The specified platform does not exist.", func(in *shapes.RunTaskInput) {
			in.PlatformVersion = "9.9"
		}},
		{"InvalidParameterException: Task definition does not support launch_type FARGATE.",
			func(in *shapes.RunTaskInput) { in.TaskDefinition = "bridge" }},
		{"InvalidParameterException: Network Configuration must be provided when networkMode 'awsvpc' is specified.",
			func(in *shapes.RunTaskInput) { in.NetworkConfiguration = nil }},
		{"InvalidParameterException: subnets can not be empty.", func(in *shapes.RunTaskInput) {
			in.NetworkConfiguration.AWSVPC.Subnets = nil
		}},
		{"InvalidParameterException: subnets can have at most 16 items.", func(in *shapes.RunTaskInput) {
			in.NetworkConfiguration.AWSVPC.Subnets = strings.Fields(strings.Repeat("subnet-1 ", 17))
		}},
		{"InvalidParameterException: securityGroups can have at most 5 items.", func(in *shapes.RunTaskInput) {
			in.NetworkConfiguration.AWSVPC.SecurityGroups = make([]string, 6)
		}},
		{"InvalidParameterException: Error retrieving subnet information for [x]: The subnet ID 'x' does not exist " +
			"(ErrorCode: InvalidSubnetID.NotFound)", func(in *shapes.RunTaskInput) {
			in.NetworkConfiguration.AWSVPC.Subnets = []string{"x"}
		}},
		{"InvalidParameterException: Override for container named x is not a container in the TaskDefinition.",
			func(in *shapes.RunTaskInput) { in.Overrides.Containers = []shapes.ContainerOverride{{Name: "x"}} }},
		{"InvalidParameterException: Container Overrides length must be at most 8192", func(in *shapes.RunTaskInput) {
			in.Overrides.Containers = []shapes.ContainerOverride{
				{Name: "app", Command: []string{strings.Repeat("x", 8192)}},
			}
		}},
		{"ClientException: Tasks using the Fargate launch type do not support GPU resource requirements.",
			func(in *shapes.RunTaskInput) {
				gpu := []taskdef.ResourceRequirement{{Type: "GPU", Value: "1"}}
				in.Overrides.Containers = []shapes.ContainerOverride{{Name: "app", Resources: gpu}}
			}},
		{"ClientException: No Fargate configuration exists for given values: 256 CPU, 4096 memory. See the Amazon " +
			"ECS documentation for the valid values.", func(in *shapes.RunTaskInput) { in.Overrides.Memory = "4096" }},
	} {
		_, err := w.RunTask(w.call(), planeInput(c.change))
		testkit.WantError[*shapes.Error](t, err, c.want)
	}
	// A cluster without a strategy means EC2, unless the call names one.
	_, err := w.RunTask(w.call(), planeInput(func(in *shapes.RunTaskInput) { in.Cluster = "bare" }))
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: No Container Instances were found in your cluster.")
	if len(w.launches) != 0 || len(w.events) != 0 {
		t.Errorf("launched %d", len(w.launches))
	}
}

func TestOverridesAreApplied(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(func(in *shapes.RunTaskInput) {
		in.Overrides = shapes.Overrides{
			CPU: "512", Memory: "1024", TaskRoleARN: "arn:aws:iam::123456789012:role/r",
			ExecutionRoleARN: "arn:aws:iam::123456789012:role/e",
			EphemeralStorage: &shapes.EphemeralStorage{SizeInGiB: 30},
			Containers: []shapes.ContainerOverride{{
				Name: "app", Command: []string{"other"}, CPU: new(128), Memory: new(256), MemoryReservation: new(64),
				Environment: []shapes.EnvironmentVariable{{Name: "B", Value: "new"}, {Name: "C", Value: "3"}},
			}},
		}
	})[0]
	got := w.launches[id].Definition
	c := got.ContainerDefinitions[0]
	testkit.Equal(t, "CPU", got.CPU, "512")
	testkit.Equal(t, "Memory", got.Memory, "1024")
	testkit.Equal(t, "TaskRoleARN", got.TaskRoleARN, "arn:aws:iam::123456789012:role/r")
	testkit.Equal(t, "ExecutionRoleARN", got.ExecutionRoleARN, "arn:aws:iam::123456789012:role/e")
	testkit.Equal(t, "CPU", *c.CPU, 128)
	testkit.Equal(t, "Memory", *c.Memory, 256)
	testkit.Equal(t, "MemoryReservation", *c.MemoryReservation, 64)
	testkit.Equal(t, "EphemeralStorage.SizeInGiB", got.EphemeralStorage.SizeInGiB, 30)
	wantEnv := []taskdef.KeyValue{{Name: "A", Value: "1"}, {Name: "B", Value: "new"}, {Name: "C", Value: "3"}}
	if d := cmp.Diff(wantEnv, c.Environment); d != "" || c.Command[0] != "other" {
		t.Errorf("%q (-want +got):\n%s", c.Command, d)
	}
	task := w.describe(id)
	testkit.Equal(t, "CPU", task.CPU, "512")
	testkit.Equal(t, "Containers[0].CPU", task.Containers[0].CPU, "128")
	testkit.Equal(t, "Containers[0].Memory", task.Containers[0].Memory, "256")
	testkit.Equal(t, "Overrides.Containers[0].Command[0]", task.Overrides.Containers[0].Command[0], "other")
	// The revision is as it was.
	other := w.launches[w.run(nil)[0]].Definition
	e := other.ContainerDefinitions[0].Environment
	if len(e) != 2 {
		t.Fatalf("%+v", other)
	}
	testkit.Equal(t, "e[1].Value", e[1].Value, "2")
	testkit.Equal(t, "CPU", other.CPU, "256")
}

func TestCapacityProviders(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	strategy := []shapes.StrategyItem{
		{CapacityProvider: "FARGATE", Weight: 1}, {CapacityProvider: "FARGATE_SPOT", Weight: 4},
	}
	for want, change := range map[string]func(*shapes.RunTaskInput){
		"FARGATE":      nil, // the default cluster's
		"":             func(in *shapes.RunTaskInput) { in.LaunchType = "FARGATE" },
		"FARGATE_SPOT": func(in *shapes.RunTaskInput) { in.CapacityProviderStrategy = strategy },
	} {
		if got := w.describe(w.run(change)[0]); got.CapacityProviderName != want || got.LaunchType != "FARGATE" {
			t.Errorf("got %q, want %q", got.CapacityProviderName, want)
		}
	}
	_, err := w.RunTask(w.call(), planeInput(func(in *shapes.RunTaskInput) {
		in.CapacityProviderStrategy = []shapes.StrategyItem{{CapacityProvider: "mine"}}
	}))
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: The specified capacity provider strategy cannot contain a capacity provider that "+
			"is not associated with the cluster. Associate the capacity provider with the cluster and try again.")
}

func TestTagsOfTasks(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	explicit := []shapes.Tag{{Key: "team", Value: "other"}, {Key: "x", Value: "y"}}
	for name, tt := range map[string]struct {
		change func(*shapes.RunTaskInput)
		want   []shapes.Tag
	}{
		"none":     {nil, []shapes.Tag{}},
		"explicit": {func(in *shapes.RunTaskInput) { in.Tags = explicit }, explicit},
		"of the definition": {func(in *shapes.RunTaskInput) { in.PropagateTags = "TASK_DEFINITION" },
			[]shapes.Tag{{Key: "team", Value: "shop"}}},
		"explicit ones win": {func(in *shapes.RunTaskInput) {
			in.PropagateTags, in.Tags = "TASK_DEFINITION", explicit
		}, explicit},
		"managed": {func(in *shapes.RunTaskInput) { in.EnableECSManagedTags = true },
			[]shapes.Tag{{Key: "aws:ecs:clusterName", Value: "default"}}},
	} {
		if d := cmp.Diff(tt.want, w.describe(w.run(tt.change)[0]).Tags); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	id := w.run(func(in *shapes.RunTaskInput) { in.Tags = explicit })[0]
	out, err := w.DescribeTasks(w.call(), shapes.DescribeTasksInput{Tasks: []string{id}})
	if err != nil || len(out.Tasks[0].Tags) != 0 {
		t.Errorf("without TAGS: %+v, %v", out.Tasks, err)
	}
}

func TestClientTokens(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	token := func(in *shapes.RunTaskInput) { in.ClientToken, in.Count = "token", new(2) }
	first := w.run(token)
	w.start(first[0])
	if d := cmp.Diff(first, w.run(token)); d != "" || len(w.launches) != 2 {
		t.Errorf("%d launches (-want +got):\n%s", len(w.launches), d)
	}
	_, err := w.RunTask(w.call(), planeInput(func(in *shapes.RunTaskInput) { in.ClientToken = "token" }))
	testkit.WantError[*shapes.Error](t, err,
		"ConflictException: The provided clientToken is already in use with a different RunTask request.")
	if e := err.(*shapes.Error); len(e.ResourceIDs) != 2 || e.ResourceIDs[0] != planeAccount+"task/default/"+first[0] {
		t.Errorf("%q", e.ResourceIDs)
	}
	w.now = w.now.Add(24 * time.Hour)
	if again := w.run(token); again[0] == first[0] {
		t.Error("the token is good for ever")
	}
}

func TestFargateLaunchesAreThrottled(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, func(o *controlplane.Options) { o.Throttle = true })
	ten := func(in *shapes.RunTaskInput) { in.Count = new(10) }
	for range 10 {
		w.run(ten)
	}
	_, err := w.RunTask(w.call(), planeInput(nil))
	testkit.WantError[*shapes.Error](t, err, "ThrottlingException: Rate exceeded")
	w.now = w.now.Add(500 * time.Millisecond)
	w.run(ten)
	_, err = w.RunTask(w.call(), planeInput(nil))
	testkit.WantError[*shapes.Error](t, err, "ThrottlingException: Rate exceeded")
	if len(w.launches) != 110 {
		t.Errorf("%d launches", len(w.launches))
	}
}
