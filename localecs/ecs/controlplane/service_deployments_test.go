package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func (w *fixture) serviceDeployments(in shapes.ListServiceDeploymentsInput) shapes.ServiceDeploymentsOutput {
	w.t.Helper()
	in.Service = "web"
	out, err := w.ListServiceDeployments(w.call(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func TestServiceDeploymentsAreDescribed(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	w.create(func(in *shapes.ServiceInput) {
		in.DeploymentConfiguration = &shapes.DeploymentConfiguration{
			CircuitBreaker: &shapes.CircuitBreaker{Enable: true, Rollback: true},
		}
	})
	first := w.describe("web")
	w.now = w.now.Add(time.Minute)
	second := w.update(shapes.ServiceInput{ForceNewDeployment: true})
	w.settle()

	listed := w.serviceDeployments(shapes.ListServiceDeploymentsInput{}).ServiceDeployments
	var arns []string
	for _, d := range listed {
		arns = append(arns, d.ARN)
	}
	want := []string{second.CurrentDeployment, first.CurrentDeployment}
	if d := cmp.Diff(want, arns); d != "" {
		t.Fatalf("listed (-want +got):\n%s", d)
	}
	out, err := w.DescribeServiceDeployments(w.call(), shapes.DescribeServiceDeploymentsInput{
		ARNs: append(arns, account+"service-deployment/default/web/unknown"),
	})
	if err != nil {
		t.Fatal(err)
	}
	failures := []shapes.Failure{{ARN: account + "service-deployment/default/web/unknown", Reason: "MISSING"}}
	if d := cmp.Diff(failures, out.Failures); d != "" {
		t.Errorf("failures (-want +got):\n%s", d)
	}
	revision := func(s shapes.Service) string {
		return account + "service-revision/default/web/" + strings.TrimPrefix(s.Deployments[0].ID, "ecs-svc/")
	}
	testkit.Equal(t, "target in the list", listed[0].TargetRevisionARN, revision(second))
	started := shapes.At(w.now)
	configuration := first.DeploymentConfiguration
	described := shapes.ServiceDeployment{
		ARN: arns[0], ServiceARN: account + "service/default/web", ClusterARN: account + "cluster/default",
		CreatedAt: started, StartedAt: started, FinishedAt: started, UpdatedAt: started,
		Sources: []shapes.RevisionSummary{{ARN: revision(first)}},
		Target:  &shapes.RevisionSummary{ARN: revision(second), Requested: 2, Running: 2},
		Status:  "SUCCESSFUL", Configuration: &configuration,
		Breaker: &shapes.BreakerState{Status: "MONITORING_COMPLETE", Threshold: 3},
		Alarms:  &shapes.AlarmState{Status: "DISABLED"},
	}
	if d := cmp.Diff(described, out.ServiceDeployments[0]); d != "" {
		t.Errorf("described (-want +got):\n%s", d)
	}
	testkit.Equal(t, "sources of the first", len(out.ServiceDeployments[1].Sources), 0)
	testkit.Equal(t, "revisions of the service", w.describe("web").CurrentRevisions[0], *described.Target)

	revisions, err := w.DescribeServiceRevisions(w.call(), shapes.DescribeServiceRevisionsInput{
		ARNs: []string{revision(second), account + "service-revision/default/web/1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantRevisions := shapes.ServiceRevisionsOutput{
		ServiceRevisions: []shapes.ServiceRevision{{
			ARN: revision(second), ServiceARN: account + "service/default/web", ClusterARN: account + "cluster/default",
			TaskDefinition: account + "task-definition/web:1", LaunchType: "FARGATE",
			PlatformVersion: shapes.PlatformVersion, PlatformFamily: "Linux",
			NetworkConfiguration: second.NetworkConfiguration, CreatedAt: started,
			ContainerImages: []shapes.ContainerImage{
				{Name: "app", Image: "app:1", Digest: shapes.ImageDigest("app:1")},
			},
		}},
		Failures: []shapes.Failure{{ARN: account + "service-revision/default/web/1", Reason: "MISSING"}},
	}
	if d := cmp.Diff(wantRevisions, revisions); d != "" {
		t.Errorf("revisions (-want +got):\n%s", d)
	}
}

func TestListServiceDeploymentsFilters(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	w.create(nil)
	times := []time.Time{w.now}
	for range 2 {
		w.now = w.now.Add(time.Minute)
		times = append(times, w.now)
		w.update(shapes.ServiceInput{ForceNewDeployment: true})
	}
	for _, c := range []struct {
		name string
		in   shapes.ListServiceDeploymentsInput
		want []time.Time
	}{
		{"all", shapes.ListServiceDeploymentsInput{}, []time.Time{times[2], times[1], times[0]}},
		{"status", shapes.ListServiceDeploymentsInput{Status: []string{"IN_PROGRESS", "SUCCESSFUL"}},
			[]time.Time{times[2], times[0]}},
		{"after", shapes.ListServiceDeploymentsInput{CreatedAt: shapes.Period{After: shapes.At(times[1])}},
			[]time.Time{times[2]}},
		{"before", shapes.ListServiceDeploymentsInput{CreatedAt: shapes.Period{Before: shapes.At(times[1])}},
			[]time.Time{times[0]}},
	} {
		var got []time.Time
		for _, d := range w.serviceDeployments(c.in).ServiceDeployments {
			got = append(got, d.CreatedAt.Time)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	page := w.serviceDeployments(shapes.ListServiceDeploymentsInput{PageInput: shapes.PageInput{MaxResults: new(2)}})
	testkit.Equal(t, "first page", len(page.ServiceDeployments), 2)
	page = w.serviceDeployments(shapes.ListServiceDeploymentsInput{
		PageInput: shapes.PageInput{MaxResults: new(2), NextToken: page.NextToken},
	})
	testkit.Equal(t, "second page", len(page.ServiceDeployments), 1)
	testkit.Equal(t, "token of the last page", page.NextToken, "")
}

func TestCallsAboutServiceDeploymentsRefuse(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	if _, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{ClusterName: "other"}); err != nil {
		t.Fatal(err)
	}
	w.create(func(in *shapes.ServiceInput) { in.Cluster = "other" })
	arn := account + "service/other/web"
	out, err := w.ListServiceDeployments(w.call(), shapes.ListServiceDeploymentsInput{Service: arn})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "deployments by the ARN of a service", len(out.ServiceDeployments), 1)
	for want, in := range map[string]shapes.ListServiceDeploymentsInput{
		"ServiceNotFoundException: Service not found.":      {Service: "web"},
		"ClusterNotFoundException: Cluster not found.":      {Service: "web", Cluster: "none"},
		"ClientException: Service can not be blank.":        {},
		"failed to satisfy constraint: Member must satisfy": {Service: "web", Status: []string{"x"}},
		"is for cluster other.":                             {Service: arn, Cluster: "default"},
	} {
		_, err := w.ListServiceDeployments(w.call(), in)
		testkit.ErrorContains(t, err, want)
	}
	for want, page := range map[string]shapes.PageInput{
		"maxResults must be between 1 and 100.":    {MaxResults: new(101)},
		"InvalidParameterException: Invalid token": {NextToken: "x"},
	} {
		_, err := w.ListServiceDeployments(w.call(),
			shapes.ListServiceDeploymentsInput{Service: "web", Cluster: "other", PageInput: page})
		testkit.ErrorContains(t, err, want)
	}
	for want, arns := range map[string][]string{
		"serviceDeploymentArns cannot be empty.":           nil,
		"serviceDeploymentArns can have at most 20 items.": make([]string, 21),
		"Identifier is not an ARN.":                        {"x"},
		"Expected a service-deployment, got a service-rev": {account + "service-revision/other/web/1"},
		"ServiceNotFoundException: Service not found.":     {account + "service-deployment/other/none/1"},
		"ClusterNotFoundException: Cluster not found.":     {account + "service-deployment/none/web/1"},
	} {
		_, err := w.DescribeServiceDeployments(w.call(), shapes.DescribeServiceDeploymentsInput{ARNs: arns})
		testkit.ErrorContains(t, err, want)
	}
	gone := shapes.DeleteServiceInput{Cluster: "other", Service: "web", Force: true}
	if _, err := w.DeleteService(w.call(), gone); err != nil {
		t.Fatal(err)
	}
	out, err = w.ListServiceDeployments(w.call(), shapes.ListServiceDeploymentsInput{Cluster: "other", Service: "web"})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "deployments of a deleted service", len(out.ServiceDeployments), 0)
}
