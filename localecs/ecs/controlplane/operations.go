package controlplane

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Operation is one operation of the API: from a body to an answer.
type Operation func(call shapes.Call, body []byte) (any, error)

// Op makes an operation of a function. Members that In does not have are
// ignored, as in AWS; values of a wrong type are a SerializationException.
func Op[In, Out any](f func(shapes.Call, In) (Out, error)) Operation {
	return func(call shapes.Call, body []byte) (any, error) {
		var in In
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		return f(call, in)
	}
}

// Handler returns the Plane's API, for the callers that store has.
func (p *Plane) Handler(store *iam.Store, log hclog.Logger) http.Handler {
	o := HandlerOptions{Store: store, Region: p.state.account.Region, Operations: Operations(p), Log: log}
	if p.state.options.Throttle {
		o.Buckets = NewBuckets()
	}
	return NewHandler(o)
}

// Operations returns all of a Plane. All others are unknown.
func Operations(p *Plane) map[string]Operation {
	return map[string]Operation{
		"CreateCluster":               Op(p.CreateCluster),
		"CreateService":               Op(p.CreateService),
		"DeleteCluster":               Op(p.DeleteCluster),
		"DeleteService":               Op(p.DeleteService),
		"DeleteTaskDefinitions":       Op(p.DeleteTaskDefinitions),
		"DeregisterTaskDefinition":    Op(p.DeregisterTaskDefinition),
		"DescribeCapacityProviders":   Op(p.DescribeCapacityProviders),
		"DescribeClusters":            Op(p.DescribeClusters),
		"DescribeContainerInstances":  Op(p.DescribeContainerInstances),
		"DescribeServiceDeployments":  Op(p.DescribeServiceDeployments),
		"DescribeServiceRevisions":    Op(p.DescribeServiceRevisions),
		"DescribeServices":            Op(p.DescribeServices),
		"DescribeTaskDefinition":      Op(p.DescribeTaskDefinition),
		"DescribeTasks":               Op(p.DescribeTasks),
		"GetTaskProtection":           Op(p.GetTaskProtection),
		"ListAccountSettings":         Op(p.ListAccountSettings),
		"ListClusters":                Op(p.ListClusters),
		"ListContainerInstances":      Op(p.ListContainerInstances),
		"ListServiceDeployments":      Op(p.ListServiceDeployments),
		"ListServices":                Op(p.ListServices),
		"ListTagsForResource":         Op(p.ListTagsForResource),
		"ListTaskDefinitionFamilies":  Op(p.ListTaskDefinitionFamilies),
		"ListTaskDefinitions":         Op(p.ListTaskDefinitions),
		"ListTasks":                   Op(p.ListTasks),
		"PutClusterCapacityProviders": Op(p.PutClusterCapacityProviders),
		"RegisterTaskDefinition":      Op(p.RegisterTaskDefinition),
		"RunTask":                     Op(p.RunTask),
		"StartTask":                   Op(p.StartTask),
		"StopTask":                    Op(p.StopTask),
		"TagResource":                 Op(p.TagResource),
		"UntagResource":               Op(p.UntagResource),
		"UpdateCluster":               Op(p.UpdateCluster),
		"UpdateClusterSettings":       Op(p.UpdateCluster),
		"UpdateService":               Op(p.UpdateService),
		"UpdateTaskProtection":        Op(p.UpdateTaskProtection),
	}
}

// withoutTags returns an answer whose tags are empty: its own, and those of the tasks, services and
// clusters in it.
func withoutTags(answer any) any {
	text, err := json.Marshal(answer)
	if err != nil {
		return answer // write reports the error
	}
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&tree) != nil {
		return answer
	}
	dropTags(tree)
	for _, member := range tree {
		list, several := member.([]any)
		if !several {
			list = []any{member}
		}
		for _, item := range list {
			if resource, ok := item.(map[string]any); ok {
				dropTags(resource)
			}
		}
	}
	return tree
}

func dropTags(resource map[string]any) {
	if _, has := resource["tags"]; has {
		resource["tags"] = []any{}
	}
}
