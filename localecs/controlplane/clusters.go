package controlplane

import (
	"fmt"
	"maps"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/controlplane/arn"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/input"
	"github.com/meshtask/consul-ecs/localecs/controlplane/strategy"
	"github.com/meshtask/consul-ecs/taskdef"
)

// cluster is a cluster of the account. An inactive one stays known, as in AWS.
type cluster struct {
	name, status string
	tags         []ecs.Tag
	settings     []ecs.NameValue
	providers    []string
	strategy     []ecs.StrategyItem
}

// CreateCluster makes a cluster, or answers with the one of that name.
func (p *Plane) CreateCluster(_ ecs.Call, in ecs.CreateClusterInput) (ecs.ClusterOutput, error) {
	name := in.ClusterName
	if name == "" {
		name = arn.Default
	}
	if !taskdef.ValidName(name) {
		return ecs.ClusterOutput{}, ecs.Invalid("Cluster names can have up to 255 characters; uppercase and lowercase letters, numbers, hyphens, and underscores are allowed.")
	}
	if err := input.Tags(in.Tags); err != nil {
		return ecs.ClusterOutput{}, err
	}
	if err := strategy.Check(in.CapacityProviders, in.DefaultCapacityProviderStrategy); err != nil {
		return ecs.ClusterOutput{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clusters[name]
	if c == nil || c.status != ecs.Active {
		c = &cluster{
			name: name, status: ecs.Active, tags: in.Tags, settings: in.Settings,
			providers: in.CapacityProviders, strategy: in.DefaultCapacityProviderStrategy,
		}
		p.clusters[name] = c
	}
	return ecs.ClusterOutput{Cluster: p.clusterShape(c, []string{"SETTINGS", "TAGS"})}, nil
}

// DeleteCluster makes a cluster INACTIVE, when nothing of it is left.
func (p *Plane) DeleteCluster(_ ecs.Call, in ecs.ClusterInput) (ecs.ClusterOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.cluster(in.Cluster)
	if err != nil {
		return ecs.ClusterOutput{}, err
	}
	if shape := p.clusterShape(c, nil); shape.RunningTasks+shape.PendingTasks > 0 {
		return ecs.ClusterOutput{}, ecs.Errorf(ecs.ClusterContainsTasks, "The Cluster cannot be deleted while Tasks are active.")
	}
	c.status = ecs.Inactive
	return ecs.ClusterOutput{Cluster: p.clusterShape(c, nil)}, nil
}

// DescribeClusters finds clusters by name or ARN.
func (p *Plane) DescribeClusters(_ ecs.Call, in ecs.DescribeClustersInput) (ecs.DescribeClustersOutput, error) {
	out := ecs.DescribeClustersOutput{Clusters: []ecs.Cluster{}, Failures: []ecs.Failure{}}
	if err := input.AtMost("clusters", len(in.Clusters), input.MaxDescribed); err != nil {
		return out, err
	}
	if err := input.Enum("include", in.Include, "ATTACHMENTS", "CONFIGURATIONS", "SETTINGS", "STATISTICS", "TAGS"); err != nil {
		return out, err
	}
	refs := in.Clusters
	if len(refs) == 0 {
		refs = []string{arn.Default}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ref := range refs {
		name, err := p.account.ClusterName(ref)
		if err != nil {
			return out, err
		}
		if c := p.clusters[name]; c != nil {
			out.Clusters = append(out.Clusters, p.clusterShape(c, in.Include))
			continue
		}
		out.Failures = append(out.Failures, ecs.Failure{ARN: p.account.Cluster(name), Reason: ecs.Missing})
	}
	return out, nil
}

// ListClusters lists the active clusters.
func (p *Plane) ListClusters(call ecs.Call, in ecs.PageInput) (ecs.ListClustersOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.clusters)) {
		if p.clusters[name].status == ecs.Active {
			names = append(names, name)
		}
	}
	names, next, err := input.Page(names, in, "clusters", call.Now, input.Ascending, func(name string) string { return name })
	out := ecs.ListClustersOutput{ClusterARNs: []string{}, NextToken: next}
	for _, name := range names {
		out.ClusterARNs = append(out.ClusterARNs, p.account.Cluster(name))
	}
	return out, err
}

// clusterShape is the cluster as the API shows it, with what include names.
func (p *Plane) clusterShape(c *cluster, include []string) ecs.Cluster {
	shape := ecs.Cluster{
		ClusterARN: p.account.Cluster(c.name), ClusterName: c.name, Status: c.status,
		Statistics: []ecs.NameValue{}, Tags: []ecs.Tag{}, Settings: []ecs.NameValue{},
		CapacityProviders:               append([]string{}, c.providers...),
		DefaultCapacityProviderStrategy: append([]ecs.StrategyItem{}, c.strategy...),
	}
	for _, r := range p.records {
		if r.Cluster != c.name {
			continue
		}
		switch r.Task.LastStatus {
		case ecs.Running:
			shape.RunningTasks++
		case ecs.Provisioning, ecs.Pending, ecs.Activating:
			shape.PendingTasks++
		}
	}
	if slices.Contains(include, "TAGS") {
		shape.Tags = append(shape.Tags, c.tags...)
	}
	if slices.Contains(include, "SETTINGS") {
		shape.Settings = append(shape.Settings, c.settings...)
		if len(c.settings) == 0 {
			shape.Settings = append(shape.Settings, ecs.NameValue{Name: "containerInsights", Value: "disabled"})
		}
	}
	if slices.Contains(include, "STATISTICS") {
		shape.Statistics = []ecs.NameValue{
			{Name: "runningFargateTasksCount", Value: fmt.Sprint(shape.RunningTasks)},
			{Name: "pendingFargateTasksCount", Value: fmt.Sprint(shape.PendingTasks)},
		}
	}
	return shape
}
