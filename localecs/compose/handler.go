package compose

import (
	"context"
	"net/http"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// Stats returns the statistics of a container of the engine; nil while it has none.
type Stats func(ctx context.Context, id string) *metadata.Stats

// TaskHandler serves all tasks of the project at 169.254.170.2. Endpoint and credentials IDs identify the task.
func (a *Agent) TaskHandler(ctx context.Context, stats Stats) http.Handler {
	lookup := func(endpointID string) (metadata.Snapshot, bool) {
		m, ok := a.state.lookup(endpointID)
		// The caller is running: if the state differs, the container has just started, maybe in
		// another run of its task.
		if (!ok || !isRunning(m, endpointID)) && a.Update(ctx) == nil {
			m, ok = a.state.lookup(endpointID)
		}
		return m, ok
	}
	return metadata.TaskHandler(metadata.Task{
		Metadata: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			task := taskOf(r.URL.Path)
			metadata.New(metadata.Options{Lookup: lookup, Stats: func(container string) *metadata.Stats {
				if id := a.state.containerID(task, container); id != "" {
					return stats(r.Context(), id)
				}
				return nil
			}}).ServeHTTP(w, r)
		}),
		Credentials: a.credentialsHandler(ctx),
		Agent:       metadata.ProtectionHandler(lookup, metadata.NewProtections()),
	})
}

// isRunning reports whether the container of an endpoint ID is running.
func isRunning(m metadata.Snapshot, endpointID string) bool {
	for name, c := range m.Facts.Containers {
		if c.EndpointID == endpointID {
			v, ok := m.View.Container(name)
			return ok && v.KnownStatus == scheduler.StatusRunning
		}
	}
	return false
}

// taskOf returns the task's name in the path of task metadata, /v4/<task>.<container>.
func taskOf(path string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// credentialsHandler serves a task's credentials by the task's name, which is in the compose file.
func (a *Agent) credentialsHandler(ctx context.Context) http.Handler {
	inner := iam.Handler(a.store)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, iam.CredentialsPath)
		id, ok := a.credentials(name)
		if !ok && a.Update(ctx) == nil {
			id, _ = a.credentials(name)
		}
		r = r.Clone(r.Context())
		if name != "" {
			r.URL.Path = iam.CredentialsPath + "-"
		}
		if id != "" {
			r.URL.Path = iam.CredentialsPath + id
		}
		inner.ServeHTTP(w, r)
	})
}

// AWSHandler answers for STS, IAM and ECS at one address.
func (a *Agent) AWSHandler(region string) http.Handler {
	ecs := controlplane.NewHandler(controlplane.HandlerOptions{Store: a.store, Region: region, Operations: a.state.operations(), Log: a.log})
	others := iam.New(a.store, region)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if controlplane.IsECSRequest(r) {
			ecs.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}
