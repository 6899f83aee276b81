package controlplane

import (
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// tagAPI has the calls about tags.
type tagAPI struct{ state *state }

// TagResource adds tags to a cluster, a task, a service or a task definition.
func (a *tagAPI) TagResource(call shapes.Call, in shapes.ResourceInput) (shapes.Empty, error) {
	if err := Tags(in.Tags); err != nil {
		return shapes.Empty{}, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	tags, err := a.writableTags(in.ResourceARN, call.Now)
	if err != nil {
		return shapes.Empty{}, err
	}
	merged := MergeTags(*tags, in.Tags...)
	if err := atMost("tags", len(merged), maxTags); err != nil {
		return shapes.Empty{}, err
	}
	*tags = merged
	return shapes.Empty{}, nil
}

// UntagResource removes tags. Those that do not exist are ignored.
func (a *tagAPI) UntagResource(call shapes.Call, in shapes.ResourceInput) (shapes.Empty, error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	tags, err := a.writableTags(in.ResourceARN, call.Now)
	if err != nil {
		return shapes.Empty{}, err
	}
	*tags = slices.DeleteFunc(slices.Clone(*tags), func(t shapes.Tag) bool {
		return slices.Contains(in.TagKeys, t.Key)
	})
	return shapes.Empty{}, nil
}

// ListTagsForResource lists a resource's tags.
func (a *tagAPI) ListTagsForResource(call shapes.Call, in shapes.ResourceInput) (shapes.TagsOutput, error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	r, err := a.state.account.Parse(in.ResourceARN)
	if err != nil {
		return shapes.TagsOutput{}, err
	}
	out := shapes.TagsOutput{Tags: []shapes.Tag{}}
	if t := a.state.tasks[r.Name]; r.Kind == "task" && t != nil &&
		call.Now.Sub(t.Task.CreatedAt.Time) < a.state.options.Lag.Tags {
		return out, nil
	}
	tags, err := a.tags(r, call.Now)
	if err == nil {
		out.Tags = append(out.Tags, *tags...)
	}
	return out, err
}

func (a *tagAPI) writableTags(arn string, now time.Time) (*[]shapes.Tag, error) {
	r, err := a.state.account.Parse(arn)
	if err != nil {
		return nil, err
	}
	switch c, t := a.state.clusters[r.Name], a.state.tasks[r.Name]; {
	case r.Kind == "cluster" && c != nil && c.status != shapes.Active:
		return nil, shapes.Invalid("The specified cluster is inactive. Specify an active cluster and try again.")
	case r.Kind == "task" && t.Is(r.Cluster, now) && t.Task.LastStatus == shapes.Stopped:
		return nil, shapes.Invalid("The specified task is stopped. Specify a running task and try again.")
	}
	return a.tags(r, now)
}

// tags returns the tags of a resource. The slice must be replaced, not modified.
func (a *tagAPI) tags(r shapes.Resource, now time.Time) (*[]shapes.Tag, error) {
	switch r.Kind {
	case "cluster":
		if c := a.state.clusters[r.Name]; c != nil {
			return &c.tags, nil
		}
		return nil, shapes.Errorf(shapes.ClusterNotFoundException, "Cluster not found.")
	case "task-definition":
		if revision, _ := a.state.revision(r.Name); revision != nil {
			return &revision.Tags, nil
		}
	case "task":
		if t := a.state.tasks[r.Name]; t.Is(r.Cluster, now) {
			return &t.Task.Tags, nil
		}
	case "service":
		if r.Cluster == "" { // the old short form
			r.Cluster = shapes.Default
		}
		if v := a.state.services[a.state.account.Service(r.Cluster, r.Name)]; v != nil && v.status != shapes.Inactive {
			return &v.tags, nil
		}
	}
	return nil, shapes.Invalid("The specified %s is not found. Specify a valid %s and try again.", r.Kind, r.Kind)
}
