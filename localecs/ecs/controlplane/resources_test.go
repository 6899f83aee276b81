package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestClusters(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	made, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{
		ClusterName: "mesh", Tags: []shapes.Tag{{Key: "a", Value: "b"}}, CapacityProviders: []string{"FARGATE"},
		DefaultCapacityProviderStrategy: []shapes.StrategyItem{{CapacityProvider: "FARGATE", Weight: 1}},
	})
	want := shapes.Cluster{
		ClusterARN: planeAccount + "cluster/mesh", ClusterName: "mesh", Status: "ACTIVE",
		Statistics: []shapes.NameValue{},
		Tags:       []shapes.Tag{{Key: "a", Value: "b"}}, Settings: []shapes.NameValue{
			{Name: "containerInsights", Value: "disabled"},
		},
		CapacityProviders: []string{"FARGATE"}, DefaultCapacityProviderStrategy: []shapes.StrategyItem{
			{CapacityProvider: "FARGATE", Weight: 1},
		},
	}
	if d := cmp.Diff(want, made.Cluster); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	again, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{ClusterName: "mesh"})
	if d := cmp.Diff(want, again.Cluster); err != nil || d != "" {
		t.Errorf("a second time: %v (-want +got):\n%s", err, d)
	}
	ids := w.run(func(in *shapes.RunTaskInput) { in.Cluster, in.Count = "mesh", new(2) })
	w.start(ids[0])
	out, err := w.DescribeClusters(w.call(),
		shapes.DescribeClustersInput{Clusters: []string{planeAccount + "cluster/mesh", "nowhere"},
			Include: []string{"STATISTICS"}})
	want.RunningTasks, want.PendingTasks, want.Tags, want.Settings = 1, 1, []shapes.Tag{}, []shapes.NameValue{}
	want.Statistics = []shapes.NameValue{
		{Name: "runningFargateTasksCount", Value: "1"}, {Name: "pendingFargateTasksCount", Value: "1"},
	}
	wantOut := shapes.DescribeClustersOutput{
		Clusters: []shapes.Cluster{want}, Failures: []shapes.Failure{
			{ARN: planeAccount + "cluster/nowhere", Reason: "MISSING"},
		},
	}
	if d := cmp.Diff(wantOut, out); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	list, err := w.ListClusters(w.call(), shapes.PageInput{})
	if d := cmp.Diff([]string{planeAccount + "cluster/default", planeAccount + "cluster/mesh"},
		list.ClusterARNs); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	_, err = w.DeleteCluster(w.call(), shapes.ClusterInput{Cluster: "mesh"})
	testkit.WantError[*shapes.Error](t, err,
		"ClusterContainsTasksException: The Cluster cannot be deleted while Tasks are active.")
	for _, id := range ids {
		w.start(id)
		w.end(id, 0)
	}
	deleted, err := w.DeleteCluster(w.call(), shapes.ClusterInput{Cluster: "mesh"})
	if err != nil || deleted.Cluster.Status != "INACTIVE" {
		t.Errorf("%+v, %v", deleted, err)
	}
	if list, err := w.ListClusters(w.call(), shapes.PageInput{}); err != nil || len(list.ClusterARNs) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = w.ListTasks(w.call(), shapes.ListTasksInput{Cluster: "mesh"})
	testkit.WantError[*shapes.Error](t, err, "ClusterNotFoundException: The referenced cluster was inactive.")
}

func TestClustersThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	for want, in := range map[string]shapes.CreateClusterInput{
		"InvalidParameterException: Cluster names can have up to 255 characters; uppercase and lowercase letters, " +
			"numbers, hyphens, and underscores are allowed.": {ClusterName: "a b"},
		"InvalidParameterException: The specified capacity provider 'mine' was not found. Specify a valid name or " +
			"ARN and try again.": {CapacityProviders: []string{"mine"}},
		"InvalidParameterException: Duplicate tag keys found.": {Tags: []shapes.Tag{{Key: "a"}, {Key: "a"}}},
	} {
		_, err := w.CreateCluster(w.call(), in)
		testkit.WantError[*shapes.Error](t, err, want)
	}
	_, err := w.DescribeClusters(w.call(), shapes.DescribeClustersInput{Clusters: make([]string, 101)})
	testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: clusters can have at most 100 items.")
	out, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{})
	if err != nil || out.Cluster.ClusterName != "default" {
		t.Errorf("without a name: %+v, %v", out, err)
	}
}

func TestTagsOfResources(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(nil)[0]
	for _, arn := range []string{planeAccount + "cluster/default", planeAccount + "task/default/" + id,
		planeAccount + "task-definition/web:1"} {
		_, err1 := w.UntagResource(w.call(), shapes.ResourceInput{ResourceARN: arn, TagKeys: []string{"team"}})
		_, err2 := w.TagResource(w.call(),
			shapes.ResourceInput{ResourceARN: arn, Tags: []shapes.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}})
		_, err3 := w.TagResource(w.call(),
			shapes.ResourceInput{ResourceARN: arn, Tags: []shapes.Tag{{Key: "a", Value: "3"}}})
		_, err4 := w.UntagResource(w.call(), shapes.ResourceInput{ResourceARN: arn, TagKeys: []string{"b", "c"}})
		out, err5 := w.ListTagsForResource(w.call(), shapes.ResourceInput{ResourceARN: arn})
		if d := cmp.Diff([]shapes.Tag{{Key: "a", Value: "3"}}, out.Tags); d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", arn, []error{err1, err2, err3, err4, err5}, d)
		}
	}
	if tags := w.describe(id).Tags; len(tags) != 1 {
		t.Errorf("%v", tags)
	}
	many := make([]shapes.Tag, 50)
	for i := range many {
		many[i].Key = fmt.Sprint(i)
	}
	_, err := w.TagResource(w.call(),
		shapes.ResourceInput{ResourceARN: planeAccount + "task/default/" + id, Tags: many})
	testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: tags can have at most 50 items.")
	if tags := w.describe(id).Tags; len(tags) != 1 {
		t.Errorf("a refused call has changed them: %v", tags)
	}
	w.start(id)
	w.end(id, 0)
	for _, c := range []struct{ want, arn string }{
		{"InvalidParameterException: The specified task is stopped. Specify a running task and try again.",
			planeAccount + "task/default/" + id},
		{"InvalidParameterException: The specified task-definition is not found. Specify a valid task-definition and " +
			"try again.", planeAccount + "task-definition/web:9"},
		{"InvalidParameterException: The specified task is not found. Specify a valid task and try again.",
			planeAccount + "task/other/" + id},
		{"ClusterNotFoundException: Cluster not found.", planeAccount + "cluster/nowhere"},
		{"InvalidParameterException: Invalid identifier: Identifier is not an ARN.", "web"},
	} {
		_, err := w.TagResource(w.call(), shapes.ResourceInput{ResourceARN: c.arn})
		testkit.WantError[*shapes.Error](t, err, c.want)
	}
}

func TestTaskProtection(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	out, err := w.RunForService(w.call(), "front", planeInput(nil))
	if err != nil {
		t.Fatal(err)
	}
	arn, alone := out.Tasks[0].TaskARN, w.run(nil)[0]
	const unknown = "0123456789abcdef0123456789abcdef"
	set := shapes.TaskProtectionInput{Tasks: []string{arn, alone, unknown}, ProtectionEnabled: new(true)}
	got, err := w.UpdateTaskProtection(w.call(), set)
	want := shapes.TaskProtectionOutput{
		ProtectedTasks: []shapes.ProtectedTask{
			{TaskARN: arn, ProtectionEnabled: true, ExpirationDate: shapes.At(planeStart.Add(2 * time.Hour))},
		},
		Failures: []shapes.Failure{
			{ARN: planeAccount + "task/default/" + alone, Reason: "TASK_NOT_VALID"},
			{ARN: planeAccount + "task/default/" + unknown, Reason: "MISSING"},
		},
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	w.now = planeStart.Add(2*time.Hour - time.Second)
	state := func() bool {
		got, err := w.GetTaskProtection(w.call(), shapes.TaskProtectionInput{Tasks: []string{arn}})
		if err != nil || len(got.ProtectedTasks) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		return got.ProtectedTasks[0].ProtectionEnabled
	}
	if !state() {
		t.Error("not protected for two hours")
	}
	set.ProtectionEnabled = new(false)
	if _, err := w.UpdateTaskProtection(w.call(), set); err != nil || state() {
		t.Errorf("still protected: %v", err)
	}
	for want, in := range map[string]shapes.TaskProtectionInput{
		"InvalidParameterException: protectionEnabled must not be null.": {Tasks: []string{arn}},
		"InvalidParameterException: expiresInMinutes must be between 1 and 2880.": {Tasks: []string{arn},
			ProtectionEnabled: new(true), ExpiresInMinutes: new(2881)},
		"InvalidParameterException: Tasks cannot be empty.": {ProtectionEnabled: new(true)},
		"InvalidParameterException: taskIds can have at most 10 items.": {Tasks: make([]string, 11),
			ProtectionEnabled: new(true)},
		"ClusterNotFoundException: Cluster not found.": {Cluster: "nowhere", Tasks: []string{arn},
			ProtectionEnabled: new(true)},
	} {
		_, err := w.UpdateTaskProtection(w.call(), in)
		testkit.WantError[*shapes.Error](t, err, want)
	}
}
