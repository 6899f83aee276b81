package cluster

import (
	"net/http"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
)

// endpoint is where faults apply.
type endpoint struct {
	name, task string
	// fail answers with an error in the endpoint's own form.
	fail func(w http.ResponseWriter, status int)
}

// Task wraps what a task finds at 169.254.170.2. name is the task's in faults.
func (f *Faults) Task(name, taskARN string, t metadata.Task) metadata.Task {
	wrap := func(kind string, next http.Handler, fail func(http.ResponseWriter, int)) http.Handler {
		if next == nil {
			return nil
		}
		e := endpoint{kind, name, func(w http.ResponseWriter, status int) {
			if status == http.StatusTooManyRequests {
				metadata.TooMany(w)
				return
			}
			fail(w, status)
		}}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(e, next, w, r) })
	}
	return metadata.Task{
		Metadata: wrap(chaos.Metadata, t.Metadata, func(w http.ResponseWriter, status int) {
			metadata.Fail(w, taskARN, status)
		}),
		Credentials: wrap(chaos.Credentials, t.Credentials, iam.FailCredentials),
		Agent: wrap(chaos.Protection, t.Agent, func(w http.ResponseWriter, status int) {
			metadata.FailProtection(w, taskARN, status)
		}),
	}
}

// AWS wraps STS, IAM and the ECS API at their common address.
func (f *Faults) AWS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(awsEndpoint(r), next, w, r) })
}

func awsEndpoint(r *http.Request) endpoint {
	if controlplane.IsECSRequest(r) {
		return endpoint{name: chaos.ECS, fail: controlplane.Fail}
	}
	name := chaos.STS
	if iam.ClaimedService(r) == chaos.IAM {
		name = chaos.IAM
	}
	return endpoint{name: name, fail: func(w http.ResponseWriter, status int) { iam.FailAWS(w, name, status) }}
}
