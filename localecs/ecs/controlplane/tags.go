package controlplane

import (
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// TagResource adds tags to a cluster, a task or a task definition.
func (p *Plane) TagResource(call shapes.Call, in shapes.TagResourceInput) (shapes.Empty, error) {
	if err := Tags(in.Tags); err != nil {
		return shapes.Empty{}, err
	}
	return shapes.Empty{}, p.retag(call, in.ResourceARN, func(tags []shapes.Tag) ([]shapes.Tag, error) {
		merged := MergeTags(tags, in.Tags...)
		return merged, AtMost("tags", len(merged), MaxTags)
	})
}

// UntagResource takes tags away. Those that are not there are no news.
func (p *Plane) UntagResource(call shapes.Call, in shapes.UntagResourceInput) (shapes.Empty, error) {
	return shapes.Empty{}, p.retag(call, in.ResourceARN, func(tags []shapes.Tag) ([]shapes.Tag, error) {
		return slices.DeleteFunc(slices.Clone(tags), func(t shapes.Tag) bool { return slices.Contains(in.TagKeys, t.Key) }), nil
	})
}

// ListTagsForResource lists a resource's tags.
func (p *Plane) ListTagsForResource(call shapes.Call, in shapes.ResourceInput) (shapes.TagsOutput, error) {
	r, err := p.account.Parse(in.ResourceARN)
	if err != nil {
		return shapes.TagsOutput{}, err
	}
	out := shapes.TagsOutput{Tags: []shapes.Tag{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.tasks[r.Name]; r.Kind == "task" && t != nil && call.Now.Sub(t.Created) < p.lag.Tags {
		return out, nil
	}
	return out, p.changeTags(r, call.Now, func(tags []shapes.Tag) ([]shapes.Tag, error) {
		out.Tags = append(out.Tags, tags...)
		return tags, nil
	})
}

// retag changes the tags of what has the ARN. What is on its way out cannot be
// tagged any more.
func (p *Plane) retag(call shapes.Call, resource string, change func([]shapes.Tag) ([]shapes.Tag, error)) error {
	r, err := p.account.Parse(resource)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c, t := p.clusters[r.Name], p.tasks[r.Name]; {
	case r.Kind == "cluster" && c != nil && c.status != shapes.Active:
		return shapes.Invalid("The specified cluster is inactive. Specify an active cluster and try again.")
	case r.Kind == "task" && t.Is(r.Cluster, call.Now) && t.Task.LastStatus == shapes.Stopped:
		return shapes.Invalid("The specified task is stopped. Specify a running task and try again.")
	}
	return p.changeTags(r, call.Now, change)
}

// changeTags finds the resource and replaces its tags.
func (p *Plane) changeTags(r shapes.Resource, now time.Time, change func([]shapes.Tag) ([]shapes.Tag, error)) error {
	var tags *[]shapes.Tag
	switch r.Kind {
	case "cluster":
		c := p.clusters[r.Name]
		if c == nil {
			return shapes.Errorf(shapes.ClusterNotFoundException, "Cluster not found.")
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
		return shapes.Invalid("The specified %s is not found. Specify a valid %s and try again.", r.Kind, r.Kind)
	}
	changed, err := change(*tags)
	if err == nil {
		*tags = changed
	}
	return err
}
