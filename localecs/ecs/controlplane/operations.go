package controlplane

import (
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Operation is one operation of the API: from a body to an answer.
type Operation func(call shapes.Call, body []byte) (any, error)

// Op makes an operation of a function. Members that In does not have are
// ignored, as AWS does; values of a wrong type are a SerializationException.
func Op[In, Out any](f func(shapes.Call, In) (Out, error)) Operation {
	return func(call shapes.Call, body []byte) (any, error) {
		var in In
		if err := decode(body, &in); err != nil {
			return nil, err
		}
		out, err := f(call, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// Operations are all of a Plane. What is not here is unknown, as AWS says it.
func Operations(p *Plane) map[string]Operation {
	return map[string]Operation{
		"CreateCluster":              Op(p.CreateCluster),
		"DeleteCluster":              Op(p.DeleteCluster),
		"DeleteTaskDefinitions":      Op(p.DeleteTaskDefinitions),
		"DeregisterTaskDefinition":   Op(p.DeregisterTaskDefinition),
		"DescribeClusters":           Op(p.DescribeClusters),
		"DescribeContainerInstances": Op(p.DescribeContainerInstances),
		"DescribeTaskDefinition":     Op(p.DescribeTaskDefinition),
		"DescribeTasks":              Op(p.DescribeTasks),
		"GetTaskProtection":          Op(p.GetTaskProtection),
		"ListClusters":               Op(p.ListClusters),
		"ListContainerInstances":     Op(p.ListContainerInstances),
		"ListTagsForResource":        Op(p.ListTagsForResource),
		"ListTaskDefinitionFamilies": Op(p.ListTaskDefinitionFamilies),
		"ListTaskDefinitions":        Op(p.ListTaskDefinitions),
		"ListTasks":                  Op(p.ListTasks),
		"RegisterTaskDefinition":     Op(p.RegisterTaskDefinition),
		"RunTask":                    Op(p.RunTask),
		"StartTask":                  Op(p.StartTask),
		"StopTask":                   Op(p.StopTask),
		"TagResource":                Op(p.TagResource),
		"UntagResource":              Op(p.UntagResource),
		"UpdateTaskProtection":       Op(p.UpdateTaskProtection),
	}
}

// ServiceOperations are those of services, and those of a Plane that have to
// know of them, too.
func ServiceOperations(s *Services) map[string]Operation {
	return map[string]Operation{
		"CreateService":       Op(s.CreateService),
		"DeleteCluster":       Op(s.DeleteCluster),
		"DeleteService":       Op(s.DeleteService),
		"DescribeClusters":    Op(s.DescribeClusters),
		"DescribeServices":    Op(s.DescribeServices),
		"ListServices":        Op(s.ListServices),
		"ListTagsForResource": Op(s.ListTagsForResource),
		"ListTasks":           Op(s.ListTasks),
		"TagResource":         Op(s.TagResource),
		"UntagResource":       Op(s.UntagResource),
		"UpdateService":       Op(s.UpdateService),
	}
}
