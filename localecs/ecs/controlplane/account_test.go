package controlplane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestCapacityProvidersAreDescribed(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	if _, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{
		ClusterName: "spot", CapacityProviders: []string{"FARGATE_SPOT"},
	}); err != nil {
		t.Fatal(err)
	}
	missing := []shapes.Failure{{ARN: account + "capacity-provider/mine", Reason: "MISSING"}}
	for _, c := range []struct {
		name     string
		in       shapes.DescribeCapacityProvidersInput
		want     []string
		failures []shapes.Failure
	}{
		{"all", shapes.DescribeCapacityProvidersInput{}, []string{"FARGATE", "FARGATE_SPOT"}, nil},
		{"of a cluster", shapes.DescribeCapacityProvidersInput{Cluster: "spot"}, []string{"FARGATE_SPOT"}, nil},
		{"by name and ARN", shapes.DescribeCapacityProvidersInput{
			CapacityProviders: []string{account + "capacity-provider/FARGATE", "mine"},
		}, []string{"FARGATE"}, missing},
		{"unknown", shapes.DescribeCapacityProvidersInput{CapacityProviders: []string{"mine"}}, nil, missing},
		{"a page", shapes.DescribeCapacityProvidersInput{PageInput: shapes.PageInput{MaxResults: new(1)}},
			[]string{"FARGATE"}, nil},
	} {
		out, err := w.DescribeCapacityProviders(w.call(), c.in)
		if err != nil {
			t.Fatal(err)
		}
		want := shapes.DescribeCapacityProvidersOutput{
			CapacityProviders: []shapes.CapacityProvider{}, Failures: append([]shapes.Failure{}, c.failures...),
			NextToken: out.NextToken,
		}
		for _, name := range c.want {
			want.CapacityProviders = append(want.CapacityProviders, shapes.CapacityProvider{
				ARN: account + "capacity-provider/" + name, Name: name, Type: name, Status: "ACTIVE",
				Tags: []shapes.Tag{},
			})
		}
		if d := cmp.Diff(want, out); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestAccountSettings(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	page := shapes.ListAccountSettingsInput{EffectiveSettings: true}
	settings := map[string]string{}
	for {
		out, err := w.ListAccountSettings(w.call(), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range out.Settings {
			settings[s.Name] = s.Value
			testkit.Equal(t, "principal", s.PrincipalARN, "arn:aws:iam::123456789012:root")
		}
		if page.NextToken = out.NextToken; out.NextToken == "" {
			break
		}
	}
	testkit.Equal(t, "settings", len(settings), 11)
	testkit.Equal(t, "long ARNs of tasks", settings["taskLongArnFormat"], "enabled")
	for _, c := range []struct {
		in   shapes.ListAccountSettingsInput
		want int
	}{
		{shapes.ListAccountSettingsInput{}, 0}, // none was set
		{shapes.ListAccountSettingsInput{EffectiveSettings: true, Name: "awsvpcTrunking"}, 1},
		{shapes.ListAccountSettingsInput{EffectiveSettings: true, Name: "awsvpcTrunking", Value: "enabled"}, 0},
	} {
		out, err := w.ListAccountSettings(w.call(), c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(out.Settings); got != c.want {
			t.Errorf("%+v: %d settings, want %d", c.in, got, c.want)
		}
	}
	for want, in := range map[string]shapes.ListAccountSettingsInput{
		"A value requires a name.":             {Value: "enabled"},
		"Member must satisfy enum value set":   {Name: "x"},
		"maxResults must be between 1 and 10.": {PageInput: shapes.PageInput{MaxResults: new(11)}},
	} {
		_, err := w.ListAccountSettings(w.call(), in)
		testkit.ErrorContains(t, err, want)
	}
}

func TestClustersChange(t *testing.T) {
	t.Parallel()
	w := newFixture(t, begin)
	insights := func(value string) []shapes.NameValue {
		return []shapes.NameValue{{Name: "containerInsights", Value: value}}
	}
	logging := map[string]any{"executeCommandConfiguration": map[string]any{"logging": "NONE"}}
	if _, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{
		ClusterName: "mesh", Settings: insights("disabled"), Configuration: logging,
	}); err != nil {
		t.Fatal(err)
	}
	namespace := map[string]any{"namespace": "mesh"}
	if _, err := w.UpdateCluster(w.call(), shapes.CreateClusterInput{
		Cluster: "mesh", Settings: insights("enabled"), ServiceConnectDefaults: namespace,
	}); err != nil {
		t.Fatal(err)
	}
	spot := []shapes.StrategyItem{{CapacityProvider: "FARGATE_SPOT", Weight: 1}}
	out, err := w.PutClusterCapacityProviders(w.call(), shapes.CreateClusterInput{
		Cluster: "mesh", CapacityProviders: []string{"FARGATE_SPOT"}, DefaultCapacityProviderStrategy: spot,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := shapes.Cluster{
		ClusterARN: account + "cluster/mesh", ClusterName: "mesh", Status: "ACTIVE", Statistics: []shapes.NameValue{},
		Tags: []shapes.Tag{}, Settings: insights("enabled"), CapacityProviders: []string{"FARGATE_SPOT"},
		DefaultCapacityProviderStrategy: spot, Configuration: logging, ServiceConnectDefaults: namespace,
	}
	if d := cmp.Diff(want, out.Cluster); d != "" {
		t.Errorf("cluster (-want +got):\n%s", d)
	}
	_, err = w.PutClusterCapacityProviders(w.call(), shapes.CreateClusterInput{CapacityProviders: []string{"mine"}})
	testkit.ErrorContains(t, err, "The specified capacity provider 'mine' was not found.")
	_, err = w.UpdateCluster(w.call(), shapes.CreateClusterInput{Cluster: "none"})
	testkit.ErrorContains(t, err, "ClusterNotFoundException")
}
