package controlplane

import (
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/controlplane/arn"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/input"
)

// TagResource adds tags to a cluster, a task or a task definition.
func (p *Plane) TagResource(call ecs.Call, in ecs.TagResourceInput) (ecs.Empty, error) {
	if err := input.Tags(in.Tags); err != nil {
		return ecs.Empty{}, err
	}
	return ecs.Empty{}, p.retag(call, in.ResourceARN, func(tags []ecs.Tag) ([]ecs.Tag, error) {
		merged := input.MergeTags(tags, in.Tags...)
		return merged, input.AtMost("tags", len(merged), input.MaxTags)
	})
}

// UntagResource takes tags away. Those that are not there are no news.
func (p *Plane) UntagResource(call ecs.Call, in ecs.UntagResourceInput) (ecs.Empty, error) {
	return ecs.Empty{}, p.retag(call, in.ResourceARN, func(tags []ecs.Tag) ([]ecs.Tag, error) {
		return slices.DeleteFunc(slices.Clone(tags), func(t ecs.Tag) bool { return slices.Contains(in.TagKeys, t.Key) }), nil
	})
}

// ListTagsForResource lists a resource's tags.
func (p *Plane) ListTagsForResource(call ecs.Call, in ecs.ResourceInput) (ecs.TagsOutput, error) {
	r, err := p.account.Parse(in.ResourceARN)
	if err != nil {
		return ecs.TagsOutput{}, err
	}
	out := ecs.TagsOutput{Tags: []ecs.Tag{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.tasks[r.Name]; r.Kind == "task" && t != nil && call.Now.Sub(t.Created) < p.lag.Tags {
		return out, nil
	}
	return out, p.changeTags(r, call.Now, func(tags []ecs.Tag) ([]ecs.Tag, error) {
		out.Tags = append(out.Tags, tags...)
		return tags, nil
	})
}

// retag changes the tags of what has the ARN. What is on its way out cannot be
// tagged any more.
func (p *Plane) retag(call ecs.Call, resource string, change func([]ecs.Tag) ([]ecs.Tag, error)) error {
	r, err := p.account.Parse(resource)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c, t := p.clusters[r.Name], p.tasks[r.Name]; {
	case r.Kind == "cluster" && c != nil && c.status != ecs.Active:
		return ecs.Invalid("The specified cluster is inactive. Specify an active cluster and try again.")
	case r.Kind == "task" && t.Is(r.Cluster, call.Now) && t.Task.LastStatus == ecs.Stopped:
		return ecs.Invalid("The specified task is stopped. Specify a running task and try again.")
	}
	return p.changeTags(r, call.Now, change)
}

// changeTags finds the resource and replaces its tags.
func (p *Plane) changeTags(r arn.Resource, now time.Time, change func([]ecs.Tag) ([]ecs.Tag, error)) error {
	var tags *[]ecs.Tag
	switch r.Kind {
	case "cluster":
		c := p.clusters[r.Name]
		if c == nil {
			return ecs.Errorf(ecs.ClusterNotFoundException, "Cluster not found.")
		}
		tags = &c.tags
	case "task-definition":
		if known, err := p.Retag(r.Name, change); known {
			return err
		}
	case "task":
		if t := p.tasks[r.Name]; t.Is(r.Cluster, now) {
			tags = &t.Tags
		}
	}
	if tags == nil {
		return ecs.Invalid("The specified %s is not found. Specify a valid %s and try again.", r.Kind, r.Kind)
	}
	changed, err := change(*tags)
	if err == nil {
		*tags = changed
	}
	return err
}
