package controlplane

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// cluster is a cluster of the account. An inactive one stays known, as in AWS.
type cluster struct {
	name, status string
	tags         []shapes.Tag
	settings     []shapes.NameValue
	providers    []string
	strategy     []shapes.StrategyItem
	// Both are shown, and have no effect.
	configuration, connect map[string]any
}

// clusterAPI has the calls about clusters.
type clusterAPI struct{ state *state }

// CreateCluster makes a cluster, or returns the one of that name.
func (a *clusterAPI) CreateCluster(_ shapes.Call, in shapes.CreateClusterInput) (shapes.ClusterOutput, error) {
	name := cmp.Or(in.ClusterName, shapes.Default)
	if !taskdef.ValidName(name) {
		return shapes.ClusterOutput{},
			shapes.Invalid("Cluster names can have up to 255 characters; uppercase and lowercase letters, numbers, " +
				"hyphens, and underscores are allowed.")
	}
	if err := cmp.Or(Tags(in.Tags), Check(in.CapacityProviders, in.DefaultCapacityProviderStrategy)); err != nil {
		return shapes.ClusterOutput{}, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	c := a.state.clusters[name]
	if c == nil || c.status != shapes.Active {
		c = &cluster{
			name: name, status: shapes.Active, tags: in.Tags, settings: in.Settings,
			providers: in.CapacityProviders, strategy: in.DefaultCapacityProviderStrategy,
			configuration: in.Configuration, connect: in.ServiceConnectDefaults,
		}
		a.state.clusters[name] = c
	}
	return shapes.ClusterOutput{Cluster: a.clusterShape(c, []string{"CONFIGURATIONS", "SETTINGS", "TAGS"})}, nil
}

// UpdateCluster changes settings of a cluster, and what is shown of it. UpdateClusterSettings is a part of it.
func (a *clusterAPI) UpdateCluster(_ shapes.Call, in shapes.CreateClusterInput) (shapes.ClusterOutput, error) {
	return a.change(in.Cluster, func(c *cluster) {
		for _, s := range in.Settings {
			c.settings = append(slices.DeleteFunc(slices.Clone(c.settings), func(o shapes.NameValue) bool {
				return o.Name == s.Name
			}), s)
		}
		if in.Configuration != nil {
			c.configuration = in.Configuration
		}
		if in.ServiceConnectDefaults != nil {
			c.connect = in.ServiceConnectDefaults
		}
	})
}

// PutClusterCapacityProviders replaces the capacity providers of a cluster, and its default strategy.
func (a *clusterAPI) PutClusterCapacityProviders(_ shapes.Call, in shapes.CreateClusterInput) (shapes.ClusterOutput,
	error) {
	if err := Check(in.CapacityProviders, in.DefaultCapacityProviderStrategy); err != nil {
		return shapes.ClusterOutput{}, err
	}
	return a.change(in.Cluster, func(c *cluster) {
		c.providers, c.strategy = in.CapacityProviders, in.DefaultCapacityProviderStrategy
	})
}

func (a *clusterAPI) change(ref string, change func(*cluster)) (shapes.ClusterOutput, error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	c, err := a.state.cluster(ref)
	if err != nil {
		return shapes.ClusterOutput{}, err
	}
	change(c)
	return shapes.ClusterOutput{Cluster: a.clusterShape(c, []string{"CONFIGURATIONS", "SETTINGS", "TAGS"})}, nil
}

// DeleteCluster makes a cluster INACTIVE, when it has neither services nor tasks.
func (a *clusterAPI) DeleteCluster(_ shapes.Call, in shapes.ClusterInput) (shapes.ClusterOutput, error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	c, err := a.state.cluster(in.Cluster)
	if err != nil {
		return shapes.ClusterOutput{}, err
	}
	switch shape := a.clusterShape(c, nil); {
	case shape.ActiveServices > 0:
		return shapes.ClusterOutput{},
			shapes.Errorf(shapes.ClusterContainsServices, "The Cluster cannot be deleted while Services are active.")
	case shape.RunningTasks+shape.PendingTasks > 0:
		return shapes.ClusterOutput{},
			shapes.Errorf(shapes.ClusterContainsTasks, "The Cluster cannot be deleted while Tasks are active.")
	}
	c.status = shapes.Inactive
	return shapes.ClusterOutput{Cluster: a.clusterShape(c, nil)}, nil
}

// DescribeClusters finds clusters by name or ARN.
func (a *clusterAPI) DescribeClusters(_ shapes.Call, in shapes.DescribeClustersInput) (shapes.DescribeClustersOutput,
	error) {
	out := shapes.DescribeClustersOutput{Clusters: []shapes.Cluster{}, Failures: []shapes.Failure{}}
	err := cmp.Or(
		atMost("clusters", len(in.Clusters), MaxDescribed),
		enum("include", in.Include, "ATTACHMENTS", "CONFIGURATIONS", "SETTINGS", "STATISTICS", "TAGS"))
	if err != nil {
		return out, err
	}
	refs := in.Clusters
	if len(refs) == 0 {
		refs = []string{shapes.Default}
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	for _, ref := range refs {
		name, err := a.state.account.ClusterName(ref)
		if err != nil {
			return out, err
		}
		if c := a.state.clusters[name]; c != nil {
			out.Clusters = append(out.Clusters, a.clusterShape(c, in.Include))
			continue
		}
		out.Failures = append(out.Failures, shapes.Failure{ARN: a.state.account.Cluster(name), Reason: shapes.Missing})
	}
	return out, nil
}

// ListClusters lists the active clusters.
func (a *clusterAPI) ListClusters(call shapes.Call, in shapes.PageInput) (shapes.ListClustersOutput, error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	active := func(name string) bool { return a.state.clusters[name].status == shapes.Active }
	names, next, err := Page(slices.Sorted(maps.Keys(a.state.clusters)), active, in, "clusters", call.Now, false,
		itself)
	out := shapes.ListClustersOutput{ClusterARNs: []string{}, NextToken: next}
	for _, name := range names {
		out.ClusterARNs = append(out.ClusterARNs, a.state.account.Cluster(name))
	}
	return out, err
}

func (a *clusterAPI) clusterShape(c *cluster, include []string) shapes.Cluster {
	shape := shapes.Cluster{
		ClusterARN: a.state.account.Cluster(c.name), ClusterName: c.name, Status: c.status,
		Statistics: []shapes.NameValue{}, Tags: []shapes.Tag{}, Settings: []shapes.NameValue{},
		CapacityProviders:               append([]string{}, c.providers...),
		DefaultCapacityProviderStrategy: append([]shapes.StrategyItem{}, c.strategy...),
		ServiceConnectDefaults:          c.connect,
	}
	if slices.Contains(include, "CONFIGURATIONS") {
		shape.Configuration = c.configuration
	}
	for _, r := range a.state.records {
		if r.Cluster != c.name {
			continue
		}
		switch r.Task.LastStatus {
		case shapes.Running:
			shape.RunningTasks++
		case shapes.Provisioning, shapes.Pending, shapes.Activating:
			shape.PendingTasks++
		}
	}
	for _, v := range a.state.services {
		if v.cluster == c.name && v.status == shapes.Active {
			shape.ActiveServices++
		}
	}
	if slices.Contains(include, "TAGS") {
		shape.Tags = append(shape.Tags, c.tags...)
	}
	if slices.Contains(include, "SETTINGS") {
		shape.Settings = append(shape.Settings, c.settings...)
		if len(c.settings) == 0 {
			shape.Settings = append(shape.Settings, shapes.NameValue{Name: "containerInsights", Value: "disabled"})
		}
	}
	if slices.Contains(include, "STATISTICS") {
		shape.Statistics = []shapes.NameValue{
			{Name: "runningFargateTasksCount", Value: fmt.Sprint(shape.RunningTasks)},
			{Name: "pendingFargateTasksCount", Value: fmt.Sprint(shape.PendingTasks)},
		}
	}
	return shape
}
