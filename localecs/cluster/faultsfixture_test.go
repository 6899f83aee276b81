package cluster_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const (
	account = "123456789012"
	region  = "us-east-1"
	arn     = "arn:aws:ecs:us-east-1:123456789012:task/default/0f9de17a6465404e8b1b2356dc13c2f8"
)

// started returns the time at which the only container of each task has started.
func started() time.Time { return time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC) }

// fixture is a task's endpoints and AWS's, as the simulator serves them.
type fixture struct {
	faults *cluster.Faults
	store  *iam.Store
	key    iam.Key
	// metadata is ECS_CONTAINER_METADATA_URI_V4 of the task "web", other that of
	// "api"; credentials and protection are web's, aws is STS, IAM and ECS.
	metadata, other, credentials, protection, aws string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{faults: &cluster.Faults{}, store: iam.NewStore()}
	role := iam.Role{Account: account, Path: "/consul-ecs/", Name: "web", Actions: []string{"ecs:*", "iam:GetRole"},
		Tags: map[string]string{"consul.hashicorp.com.service-name": "web"}}
	w.store.PutRole(role)
	id, err := w.store.Issue(role.ARN(), "session", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if w.key, err = w.store.Current(id); err != nil {
		t.Fatal(err)
	}
	web := serve(t, metadata.TaskHandler(w.faults.Task("web", arn, w.task())))
	w.metadata, w.credentials, w.protection = web+"/v4/e1", web+iam.RelativeURI(id), web+"/api/e1/task-protection/v1/state"
	w.other = serve(t, metadata.TaskHandler(w.faults.Task("api", arn, w.task()))) + "/v4/e1"

	identities := iam.New(w.store, region)
	api := controlplane.NewHandler(controlplane.HandlerOptions{Store: w.store, Region: region, Log: hclog.NewNullLogger(), Operations: map[string]controlplane.Operation{
		"ListClusters": controlplane.Op(func(shapes.Call, shapes.Empty) (map[string]any, error) {
			return map[string]any{"clusterArns": []string{"arn:c"}}, nil
		}),
		"DescribeTasks": controlplane.Op(func(shapes.Call, shapes.Empty) (map[string]any, error) {
			tag := []map[string]string{{"key": "consul.hashicorp.com/mesh", "value": "true"}}
			return map[string]any{"tasks": []map[string]any{{"taskArn": arn, "tags": tag}}, "failures": []string{}}, nil
		}),
	}})
	w.aws = serve(t, w.faults.AWS(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if controlplane.IsECSRequest(r) {
			api.ServeHTTP(rw, r)
			return
		}
		identities.ServeHTTP(rw, r)
	})))
	return w
}

// serve serves with the agent's own timeouts.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := metadata.Serve(l, h)
	t.Cleanup(func() { _ = stop() })
	return "http://" + l.Addr().String()
}

// task returns a running task of one container protected or not.
func (w *fixture) task() metadata.Task {
	snapshot := metadata.Snapshot{
		Facts: metadata.Facts{
			ClusterARN: "arn:aws:ecs:us-east-1:123456789012:cluster/default", TaskARN: arn,
			Family: "web", Revision: "1", ServiceName: "web", HasRole: true,
			Containers: map[string]metadata.ContainerFacts{"web": {EndpointID: "e1", DockerID: "e1"}},
		},
		View: scheduler.View{DesiredStatus: "RUNNING", KnownStatus: "RUNNING", Containers: []scheduler.ContainerView{{
			Name: "web", Essential: true, DesiredStatus: "RUNNING", KnownStatus: "RUNNING", StartedAt: started(),
			Health: &scheduler.HealthView{Status: "HEALTHY", Since: started()},
		}}},
		Clock: &metadata.ClockDrift{ClockErrorBound: 0.5, ReferenceTimestamp: started(), ClockSynchronizationStatus: "SYNCHRONIZED"},
	}
	lookup := func(id string) (metadata.Snapshot, bool) { return snapshot, id == "e1" }
	return metadata.Task{
		Metadata:    metadata.New(metadata.Options{Lookup: lookup}),
		Credentials: iam.Handler(w.store),
		Agent:       metadata.ProtectionHandler(lookup, metadata.NewProtections()),
	}
}

// get asks once, without keeping the connection.
func get(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	return http.DefaultClient.Do(req)
}
