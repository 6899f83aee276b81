package disturb

import (
	"net/http"

	"github.com/meshtask/consul-ecs/localecs/endpoints"
	"github.com/meshtask/consul-ecs/localecs/endpoints/awsapi"
	"github.com/meshtask/consul-ecs/localecs/endpoints/ecsapi"
	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
	"github.com/meshtask/consul-ecs/localecs/endpoints/metadata"
	"github.com/meshtask/consul-ecs/localecs/endpoints/sigv4"
	"github.com/meshtask/consul-ecs/localecs/fault"
)

// place is an endpoint as faults know it.
type place struct {
	name, task string
	// fail answers with an error in the endpoint's own form.
	fail func(w http.ResponseWriter, status int)
}

// Task wraps what a task finds at 169.254.170.2. name is the task's in faults.
func (f *Faults) Task(name, taskARN string, t endpoints.Task) endpoints.Task {
	wrap := func(endpoint string, next http.Handler, fail func(http.ResponseWriter, int)) http.Handler {
		if next == nil {
			return nil
		}
		p := place{endpoint, name, func(w http.ResponseWriter, status int) {
			if status == http.StatusTooManyRequests {
				endpoints.TooMany(w)
				return
			}
			fail(w, status)
		}}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(p, next, w, r) })
	}
	return endpoints.Task{
		Metadata:    wrap(fault.Metadata, t.Metadata, func(w http.ResponseWriter, status int) { metadata.Fail(w, taskARN, status) }),
		Credentials: wrap(fault.Credentials, t.Credentials, identity.Fail),
		Agent:       wrap(fault.Protection, t.Agent, func(w http.ResponseWriter, status int) { metadata.FailProtection(w, taskARN, status) }),
	}
}

// AWS wraps STS, IAM and the ECS API at their common address.
func (f *Faults) AWS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(awsPlace(r), next, w, r) })
}

func awsPlace(r *http.Request) place {
	switch {
	case ecsapi.Wanted(r):
		return place{name: fault.ECS, fail: ecsapi.Fail}
	case sigv4.ClaimedService(r) == fault.IAM:
		return place{name: fault.IAM, fail: func(w http.ResponseWriter, status int) { awsapi.Fail(w, fault.IAM, status) }}
	}
	return place{name: fault.STS, fail: func(w http.ResponseWriter, status int) { awsapi.Fail(w, fault.STS, status) }}
}
