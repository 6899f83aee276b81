package controlplane_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

var begin = time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)

func TestServiceIsCreatedAndBecomesSteady(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	created := w.create(func(in *shapes.ServiceInput) {
		in.PropagateTags, in.Tags, in.EnableECSManagedTags = "SERVICE", []shapes.Tag{{Key: "of", Value: "service"}},
			new(true)
	})
	d := created.Deployments
	if len(d) != 1 {
		t.Fatalf("created: %+v", created)
	}
	testkit.Equal(t, "created: d[0].Status", d[0].Status, "PRIMARY")
	testkit.Equal(t, "created: d[0].RolloutState", d[0].RolloutState, "IN_PROGRESS")
	testkit.Equal(t, "created: RunningCount", created.RunningCount, 0)
	if !regexp.MustCompile(`^ecs-svc/\d{19}$`).MatchString(d[0].ID) {
		t.Errorf("created: %+v", created)
	}
	s := w.describe(account + "service/default/web")
	testkit.Equal(t, "steady: ServiceARN", s.ServiceARN, account+"service/default/web")
	testkit.Equal(t, "steady: Status", s.Status, "ACTIVE")
	testkit.Equal(t, "steady: RunningCount", s.RunningCount, 2)
	testkit.Equal(t, "steady: PendingCount", s.PendingCount, 0)
	testkit.Equal(t, "steady: TaskDefinition", s.TaskDefinition, account+"task-definition/web:1")
	testkit.Equal(t, "steady: Deployments[0].RolloutState", s.Deployments[0].RolloutState, "COMPLETED")
	testkit.Equal(t, "steady: CreatedBy", s.CreatedBy, caller)
	want := []string{
		"(service web) has started 2 tasks",
		"(service web) (deployment " + s.Deployments[0].ID + ") deployment completed.",
		"(service web) has reached a steady state.",
	}
	if got := messages(s); !reflect.DeepEqual(got, want) {
		t.Errorf("events: got %q, want %q", got, want)
	}
	tags := []shapes.Tag{
		{Key: "of", Value: "service"}, {Key: "aws:ecs:clusterName", Value: "default"},
		{Key: "aws:ecs:serviceName", Value: "web"},
	}
	for _, task := range w.running() {
		testkit.Equal(t, "task: Group", task.Group, "service:web")
		testkit.Equal(t, "task: StartedBy", task.StartedBy, s.Deployments[0].ID)
		if !reflect.DeepEqual(task.Tags, tags) {
			t.Errorf("task: %s %s %v", task.Group, task.StartedBy, task.Tags)
		}
	}
}

// A strategy is for all tasks of a service, however they are started.
func TestServiceIsSpreadOverCapacityProviders(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	w.create(func(in *shapes.ServiceInput) {
		in.LaunchType, in.DesiredCount = "", new(25)
		in.CapacityProviderStrategy = []shapes.StrategyItem{
			{CapacityProvider: "FARGATE", Base: 5, Weight: 1}, {CapacityProvider: "FARGATE_SPOT", Weight: 4},
		}
	})
	of := func() map[string]int {
		counts := map[string]int{}
		for _, task := range w.running() {
			counts[task.CapacityProviderName]++
		}
		return counts
	}
	if got := of(); got["FARGATE"] != 9 || got["FARGATE_SPOT"] != 16 {
		t.Errorf("got %v", got)
	}
	for _, task := range w.running()[:5] { // all of the base
		w.end(task.TaskARN[len(task.TaskARN)-32:])
	}
	w.settle()
	if got := of(); got["FARGATE"] != 9 || got["FARGATE_SPOT"] != 16 {
		t.Errorf("after the end of five: got %v", got)
	}
}

func TestServiceReplacesTasksAndScales(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	s := w.create(nil)
	w.end(w.order[0])
	w.settle()
	if got := len(w.running()); got != 2 || len(w.order) != 3 {
		t.Errorf("after an end: %d of %d tasks run", got, len(w.order))
	}
	first := w.running()[0].TaskARN
	if listed, err := w.ListTasks(w.call(), shapes.ListTasksInput{ServiceName: "web"}); err != nil ||
		len(listed.TaskARNs) != 2 {
		t.Errorf("listed: %+v, %v", listed, err)
	}
	if _, err := w.UpdateTaskProtection(w.call(),
		shapes.TaskProtectionInput{Tasks: []string{first}, ProtectionEnabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	w.update(shapes.ServiceInput{DesiredCount: new(1)})
	w.settle()
	left := w.running()
	if len(left) != 1 || left[0].TaskARN != first {
		t.Errorf("left: %+v", left)
	}
	stopped, err := w.DescribeTasks(w.call(), shapes.DescribeTasksInput{Tasks: []string{w.order[2]}})
	want := "Scaling activity initiated by (deployment " + s.Deployments[0].ID + ")"
	if err != nil {
		t.Fatalf("stopped: %+v, %v", stopped.Tasks, err)
	}
	testkit.Equal(t, "stopped: Tasks[0].StopCode", stopped.Tasks[0].StopCode, "ServiceSchedulerInitiated")
	testkit.Equal(t, "stopped: Tasks[0].StoppedReason", stopped.Tasks[0].StoppedReason, want)
}

func TestUpdateBeginsADeploymentOnlyWhenTasksChange(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	w.create(nil)
	w.register("web")
	for _, c := range []struct {
		name string
		in   shapes.ServiceInput
		new  bool
	}{
		{"count", shapes.ServiceInput{DesiredCount: new(3)}, false},
		{"percentages", shapes.ServiceInput{
			DeploymentConfiguration: &shapes.DeploymentConfiguration{MinimumHealthyPercent: new(50)},
		}, false},
		{"same definition", shapes.ServiceInput{TaskDefinition: "web:1"}, false},
		{"execute command", shapes.ServiceInput{EnableExecuteCommand: new(true)}, false},
		{"ECS's tags", shapes.ServiceInput{EnableECSManagedTags: new(true)}, false},
		{"no constraints", shapes.ServiceInput{PlacementConstraints: []map[string]any{},
			PlacementStrategy: []map[string]any{}}, false},
		{"zones", shapes.ServiceInput{ZoneRebalancing: "DISABLED"}, false},
		{"default platform", shapes.ServiceInput{PlatformVersion: "LATEST"}, false},
		{"default network", shapes.ServiceInput{NetworkConfiguration: network("subnet-1", "DISABLED")}, false},
		{"other definition", shapes.ServiceInput{TaskDefinition: "web"}, true},
		{"forced", shapes.ServiceInput{ForceNewDeployment: true}, true},
		{"subnet", shapes.ServiceInput{NetworkConfiguration: network("subnet-2", "")}, true},
		{"platform", shapes.ServiceInput{PlatformVersion: "1.4.0"}, true},
	} {
		before := w.describe("web").Deployments[0].ID
		s := w.update(c.in)
		if (s.Deployments[0].ID != before) != c.new {
			t.Errorf("%s: deployments %+v", c.name, s.Deployments)
		}
		if c.new {
			testkit.Equal(t, c.name+": deployments", len(s.Deployments), 2)
			testkit.Equal(t, c.name+": status of the old one", s.Deployments[1].Status, "ACTIVE")
			testkit.Equal(t, c.name+": tasks of the old one", s.Deployments[1].RunningCount, 3)
		}
		w.settle()
		if s := w.describe("web"); len(s.Deployments) != 1 || s.RunningCount != s.DesiredCount {
			t.Errorf("%s: not steady: %+v", c.name, s)
		}
	}
	s := w.describe("web")
	testkit.Equal(t, "at last: ZoneRebalancing", s.ZoneRebalancing, "DISABLED")
	if !s.EnableExecuteCommand || !s.EnableECSManagedTags {
		t.Errorf("at last: %+v", s)
	}
	testkit.Equal(t, "at last: PlatformVersion", s.PlatformVersion, "1.4.0")
	testkit.Equal(t, "at last: TaskDefinition", s.TaskDefinition, account+"task-definition/web:2")
	testkit.Equal(t, "at last: DeploymentConfiguration.MinimumHealthyPercent",
		*s.DeploymentConfiguration.MinimumHealthyPercent, 50)
	testkit.Equal(t, "at last: DeploymentConfiguration.MaximumPercent", *s.DeploymentConfiguration.MaximumPercent, 200)
}

func network(subnet, publicIP string) *shapes.NetworkConfiguration {
	return &shapes.NetworkConfiguration{
		AWSVPC: &shapes.VPCConfiguration{
			Subnets: []string{subnet}, SecurityGroups: []string{}, AssignPublicIP: publicIP,
		},
	}
}

func TestServiceShowsWhatItGotByDefault(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	w.create(func(in *shapes.ServiceInput) { in.LaunchType = "" })
	s := w.describe("web")
	testkit.Equal(t, "ZoneRebalancing", s.ZoneRebalancing, "ENABLED")
	testkit.Equal(t, "PlatformVersion", s.PlatformVersion, "LATEST")
	testkit.Equal(t, "Deployments[0].PlatformVersion", s.Deployments[0].PlatformVersion, "1.4.0")
	if !reflect.DeepEqual(s.NetworkConfiguration, network("subnet-1", "DISABLED")) {
		t.Errorf("got %+v", s)
	}
	testkit.Equal(t, "LaunchType", s.LaunchType, "")
	if !reflect.DeepEqual(s.CapacityProviderStrategy, []shapes.StrategyItem{{CapacityProvider: "FARGATE", Weight: 1}}) {
		t.Errorf("got %+v", s)
	}
	s = w.update(shapes.ServiceInput{CapacityProviderStrategy: []shapes.StrategyItem{}})
	if s.LaunchType != "FARGATE" || s.CapacityProviderStrategy != nil {
		t.Errorf("without a strategy: got %+v", s)
	}
}

func TestServiceKeepsUsingAnInactiveRevision(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	w.create(nil)
	if _, err := w.DeregisterTaskDefinition(w.call(), shapes.TaskDefinitionInput{TaskDefinition: "web:1"}); err != nil {
		t.Fatal(err)
	}
	w.update(shapes.ServiceInput{DesiredCount: new(3)})
	w.update(shapes.ServiceInput{ForceNewDeployment: true})
	w.settle()
	if s := w.describe("web"); s.RunningCount != 3 || len(s.Deployments) != 1 {
		t.Errorf("got %+v", s)
	}
	_, err := w.UpdateService(w.call(),
		shapes.ServiceInput{Service: "web", CapacityProviderStrategy: []shapes.StrategyItem{{CapacityProvider: "x"}}})
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: The specified capacity provider strategy cannot contain a capacity provider that "+
			"is not associated with the cluster. Associate the capacity provider with the cluster and try again.")
	_, err = w.CreateService(w.call(), input(func(in *shapes.ServiceInput) {
		in.ServiceName, in.TaskDefinition = "other", "web:1"
	}))
	testkit.WantError[*shapes.Error](t, err, "ClientException: TaskDefinition is inactive")
}

func TestServiceIsDeleted(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	w.create(nil)
	_, err := w.DeleteCluster(w.call(), shapes.ClusterInput{})
	testkit.WantError[*shapes.Error](t, err,
		"ClusterContainsServicesException: The Cluster cannot be deleted while Services are active.")
	_, err = w.DeleteService(w.call(), shapes.DeleteServiceInput{Service: "web"})
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: The service cannot be stopped while it is scaled above 0.")
	out, err := w.DeleteService(w.call(), shapes.DeleteServiceInput{Service: "web", Force: true})
	if err != nil || out.Service.Status != "DRAINING" {
		t.Fatalf("got %+v, %v", out, err)
	}
	_, err = w.CreateService(w.call(), input(nil))
	testkit.WantError[*shapes.Error](t, err,
		"InvalidParameterException: Unable to Start a service that is still Draining.")
	w.settle()
	if s := w.describe("web"); s.Status != "INACTIVE" || len(w.running()) != 0 {
		t.Errorf("got %+v", s)
	}
	_, err = w.UpdateService(w.call(), shapes.ServiceInput{Service: "web", DesiredCount: new(1)})
	testkit.WantError[*shapes.Error](t, err, "ServiceNotActiveException: Service was not ACTIVE.")
	_, err = w.DeleteService(w.call(), shapes.DeleteServiceInput{Service: "web"})
	testkit.WantError[*shapes.Error](t, err, "ServiceNotFoundException: Service not found.")
	if s := w.create(nil); s.Status != "ACTIVE" || len(w.running()) != 2 {
		t.Errorf("made again: %+v", s)
	}
}

func TestServiceIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	token := func(in *shapes.ServiceInput) { in.ClientToken = "once" }
	w.create(token)
	w.create(token)
	w.create(nil)
	if got := len(w.running()); got != 2 {
		t.Errorf("%d tasks", got)
	}
	_, err := w.CreateService(w.call(), input(func(in *shapes.ServiceInput) { in.DesiredCount = new(3) }))
	testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: Creation of service was not idempotent.")
	_, err = w.CreateService(w.call(), input(func(in *shapes.ServiceInput) {
		in.ClientToken, in.ServiceName = "once", "other"
	}))
	testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: Creation of service was not idempotent.")
}

func TestCreateServiceRefusals(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	for _, c := range []struct {
		change func(*shapes.ServiceInput)
		want   string
	}{
		{func(in *shapes.ServiceInput) {
			in.ServiceName = "a b"
		}, "InvalidParameterException: Service names can have up to 255 characters; uppercase and lowercase letters, " +
			"numbers, hyphens, and underscores are allowed."},
		{func(in *shapes.ServiceInput) { in.TaskDefinition = "none" }, "ClientException: TaskDefinition not found."},
		{func(in *shapes.ServiceInput) { in.Cluster = "none" }, "ClusterNotFoundException: Cluster not found."},
		{func(in *shapes.ServiceInput) {
			in.LoadBalancers = []map[string]any{{}}
		}, "UnsupportedFeatureException: localecs does not have loadBalancers: leave it out."},
		{func(in *shapes.ServiceInput) {
			in.NetworkConfiguration = nil
		}, "InvalidParameterException: Network Configuration must be provided when networkMode 'awsvpc' is specified."},
		{func(in *shapes.ServiceInput) {
			in.DeploymentConfiguration = &shapes.DeploymentConfiguration{MaximumPercent: new(201)}
		}, "InvalidParameterException: maximumPercent must be between 1 and 200."},
		{func(in *shapes.ServiceInput) {
			in.DeploymentConfiguration = &shapes.DeploymentConfiguration{MaximumPercent: new(100)}
		}, "InvalidParameterException: Both maximumPercent and minimumHealthyPercent cannot be 100 as this will " +
			"block deployments."},
	} {
		_, err := w.CreateService(w.call(), input(c.change))
		testkit.WantError[*shapes.Error](t, err, c.want)
	}
	_, err := w.UpdateService(w.call(), shapes.ServiceInput{Service: "web"})
	testkit.WantError[*shapes.Error](t, err, "ServiceNotFoundException: Service not found.")
	_, err = w.ListTasks(w.call(), shapes.ListTasksInput{ServiceName: "web"})
	testkit.WantError[*shapes.Error](t, err, "ServiceNotFoundException: Service not found.")
	out, err := w.DescribeServices(w.call(), shapes.DescribeServicesInput{Services: []string{"web"}})
	want := []shapes.Failure{{ARN: account + "service/default/web", Reason: "MISSING"}}
	if err != nil || !reflect.DeepEqual(out.Failures, want) {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestServicesAreListedInPages(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	for i := range 12 {
		w.create(func(in *shapes.ServiceInput) { in.ServiceName, in.DesiredCount = fmt.Sprintf("s%02d", i), new(0) })
	}
	first, err := w.ListServices(w.call(), shapes.ListServicesInput{LaunchType: "FARGATE"})
	if err != nil || len(first.ServiceARNs) != 10 {
		t.Fatalf("got %+v, %v", first, err)
	}
	if !strings.HasSuffix(first.ServiceARNs[9], "/s09") {
		t.Fatalf("got %+v, %v", first, err)
	}
	rest, err := w.ListServices(w.call(),
		shapes.ListServicesInput{LaunchType: "FARGATE", PageInput: shapes.PageInput{NextToken: first.NextToken}})
	if err != nil {
		t.Fatalf("got %+v, %v", rest, err)
	}
	testkit.Equal(t, "len(rest.ServiceARNs)", len(rest.ServiceARNs), 2)
	testkit.Equal(t, "NextToken", rest.NextToken, "")
}

func TestTagsOfServices(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	resource := w.create(nil).ServiceARN
	if _, err := w.TagResource(w.call(),
		shapes.ResourceInput{ResourceARN: resource,
			Tags: []shapes.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.UntagResource(w.call(),
		shapes.ResourceInput{ResourceARN: resource, TagKeys: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	out, err := w.ListTagsForResource(w.call(), shapes.ResourceInput{ResourceARN: resource})
	want := []shapes.Tag{{Key: "b", Value: "2"}}
	if err != nil {
		t.Fatalf("got %+v, %v", out, err)
	}
	if !reflect.DeepEqual(out.Tags, want) || !reflect.DeepEqual(w.describe("web").Tags, want) {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestServicesAreReconciledWhenATaskEndsUntilClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, time.Now())
		w.Start()
		if _, err := w.CreateService(w.call(), input(nil)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s := w.describe("web")
		testkit.Equal(t, "not steady at once: RunningCount", s.RunningCount, 2)
		if len(s.Deployments) != 1 {
			t.Fatalf("not steady at once: %+v", s)
		}
		testkit.Equal(t, "not steady at once: Deployments[0].RolloutState", s.Deployments[0].RolloutState, "COMPLETED")
		w.end(w.order[0])
		synctest.Wait()
		if got := len(w.running()); got != 2 || len(w.order) != 3 {
			t.Errorf("after an end: %d of %d tasks run", got, len(w.order))
		}
		w.Close()
	})
}
