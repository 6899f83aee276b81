package metadata_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/endpoints/metadata"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
	"github.com/meshtask/consul-ecs/workload"
)

// lookup knows the endpoint IDs of one task.
func lookup(m metadata.Moment) func(string) (metadata.Moment, bool) {
	return func(id string) (metadata.Moment, bool) {
		for _, c := range m.Facts.Containers {
			if c.EndpointID == id {
				return m, true
			}
		}
		return metadata.Moment{}, false
	}
}

// get asks the handler and returns status and body.
func get(h http.Handler, path string) (int, string) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec.Code, rec.Body.String()
}

func getJSON(t *testing.T, h http.Handler, path string) map[string]any {
	t.Helper()
	status, body := get(h, path)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, status, body)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("GET %s: %v in %s", path, err, body)
	}
	return out
}

func example(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		t.Fatal(err)
	}
	return compact.Bytes()
}

// The examples are the specification's, byte for byte but for line breaks and a
// trailing zero in a fraction, which Go (and so the ECS agent) does not print.
func TestPhasesEqualTheSpecification(t *testing.T) {
	t.Parallel()
	for name, m := range phases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := example(t, name)
			h := metadata.New(metadata.Options{Lookup: lookup(m)})
			for _, id := range []string{initID, dataplaneID, syncID, appID} {
				status, got := get(h, "/v4/"+id+"/task")
				if status != http.StatusOK {
					t.Fatalf("status %d", status)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Fatalf("%s from %s (-want +got):\n%s", name, id, diff)
				}
			}
			task := getJSON(t, h, "/v4/"+appID+"/task")
			for i, id := range []string{initID, dataplaneID, syncID, appID} {
				if diff := cmp.Diff(task["Containers"].([]any)[i], any(getJSON(t, h, "/v4/"+id))); diff != "" {
					t.Errorf("%s: the base path is not the container itself (-task +base):\n%s", id, diff)
				}
			}
		})
	}
}

func TestConsulECSReadsTheAnswer(t *testing.T) {
	t.Parallel()
	_, body := get(metadata.New(metadata.Options{Lookup: lookup(phases(t)["phase-d-stopping"])}), "/v4/"+syncID+"/task")
	var task workload.Task
	if err := json.Unmarshal([]byte(body), &task); err != nil {
		t.Fatal(err)
	}
	app := task.Containers[3]
	if task.TaskARN != taskARN || app.Name != "product-api" || app.Health.Status != "UNHEALTHY" ||
		app.KnownStatus != "STOPPED" || app.DesiredStatus != "STOPPED" || app.Networks[0].IPv4Addresses[0] != "10.0.1.23" {
		t.Errorf("got %+v", task)
	}
}

// ec2Moment is phase B on EC2, product-api pulled and not created, health-sync
// not pulled yet.
func ec2Moment(t *testing.T) metadata.Moment {
	t.Helper()
	m := phases(t)["phase-b-running"]
	m.Facts.LaunchType, m.Facts.VPCID, m.Facts.ServiceName = metadata.EC2, "vpc-0a1b2c", "product-api"
	f := m.Facts.Containers["consul-dataplane"]
	f.EndpointID, f.DockerID = "2d0e3f3a-7c0e-4a39-8f0e-3e1b9a3fd111", "5d1c6a3ee4b0c9f1a2b7d8e9f00112233445566778899aabbccddeeff0011223"
	f.DockerName, f.LogDriver, f.LogOptions = "ecs-product-api-7-consul-dataplane-c6e9b1d2a3f4e5d6a701", "", nil
	f.Volumes = []metadata.Volume{{
		DockerName:  "ecs-product-api-7-consul_data-b4f0c1d2e3a4b5c6d701",
		Source:      "/var/lib/docker/volumes/ecs-product-api-7-consul_data-b4f0c1d2e3a4b5c6d701/_data",
		Destination: "/consul",
	}}
	m.Facts.Containers["consul-dataplane"] = f
	c := m.View.Containers
	c[1].CreatedAt, c[1].StartedAt = at(t, "2026-03-02T17:08:57.101Z"), at(t, "2026-03-02T17:08:57.302Z")
	c[1].Health = &scheduler.HealthView{}
	c[2] = scheduler.ContainerView{Name: c[2].Name, DesiredStatus: "RUNNING", KnownStatus: "NONE"}
	c[3] = scheduler.ContainerView{Name: c[3].Name, DesiredStatus: "RUNNING", KnownStatus: "PULLED"}
	c[0], c[3] = c[3], c[0] // the pulled one is first in the definition
	return m
}

func TestEC2Container(t *testing.T) {
	t.Parallel()
	h := metadata.New(metadata.Options{Lookup: lookup(ec2Moment(t))})
	got := getJSON(t, h, "/v4/2d0e3f3a-7c0e-4a39-8f0e-3e1b9a3fd111")
	var want map[string]any
	if err := json.Unmarshal(example(t, "ec2-container"), &want); err != nil {
		t.Fatal(err)
	}
	labels := want["Labels"].(map[string]any) // the example shows two of five
	labels["com.amazonaws.ecs.task-arn"] = taskARN
	labels["com.amazonaws.ecs.task-definition-family"] = "product-api"
	labels["com.amazonaws.ecs.task-definition-version"] = "7"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEC2Task(t *testing.T) {
	t.Parallel()
	h := metadata.New(metadata.Options{Lookup: lookup(ec2Moment(t))})
	task := getJSON(t, h, "/v4/"+initID+"/task")
	for field, want := range map[string]any{
		"Cluster": "mesh", "LaunchType": "EC2", "VPCID": "vpc-0a1b2c", "ServiceName": "product-api",
		"ClockDrift": nil, "EphemeralStorageMetrics": nil, "FaultInjectionEnabled": false,
	} {
		if task[field] != want {
			t.Errorf("%s is %v, want %v", field, task[field], want)
		}
	}
	var names []string
	for _, c := range task["Containers"].([]any) {
		names = append(names, c.(map[string]any)["Name"].(string))
	}
	// health-sync is not pulled: absent. product-api is pulled only: last.
	if want := []string{"consul-dataplane", "consul-ecs-mesh-init", "product-api"}; !slices.Equal(names, want) {
		t.Fatalf("containers %v, want %v", names, want)
	}
	last := task["Containers"].([]any)[2].(map[string]any)
	if last["DockerId"] != "" || last["DockerName"] != "" {
		t.Errorf("a container that is only pulled has ID %q and name %q", last["DockerId"], last["DockerName"])
	}
	const want = `"V4 container metadata handler: unable to get container ID from request: unable to get docker ID from v3 endpoint ID: ` + appID + `"`
	if status, body := get(h, "/v4/"+appID); status != http.StatusNotFound || body != want {
		t.Errorf("container not created: %d %s", status, body)
	}
	if status, _ := get(h, "/v4/"+appID+"/task"); status != http.StatusOK {
		t.Errorf("task form of a container not created: %d", status)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	h := metadata.New(metadata.Options{Lookup: lookup(phases(t)["phase-b-running"])})
	const notFound = "404 page not found\n"
	for _, c := range []struct {
		path   string
		status int
		body   string
	}{
		{"/v4/nope", 404, `"V4 container metadata handler: unable to get container ID from request: unable to get docker ID from v3 endpoint ID: nope"`},
		{"/v4/nope/task", 404, `"V4 task metadata handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ID: nope"`},
		{"/v4/nope/taskWithTags", 404, `"V4 task metadata handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ID: nope"`},
		{"/v4/nope/stats", 404, `"V4 container stats handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ID: nope"`},
		{"/v4/nope/task/stats", 404, `"V4 task stats handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ID: nope"`},
		{"/v4/", 404, `"V4 container metadata handler: unable to get container ID from request: unable to get docker ID from v3 endpoint ID: "`},
		{"/v3/nope/task", 500, `"V3 task metadata handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ID: nope"`},
		{"/v4/" + appID + "/", 404, notFound},
		{"/v4/" + appID + "/task/", 404, notFound},
		{"/v4/" + appID + "/tasks", 404, notFound},
		{"/v4", 404, notFound},
		{"/v5/" + appID, 404, notFound},
	} {
		if status, body := get(h, c.path); status != c.status || body != c.body {
			t.Errorf("GET %s: %d %s\nwant %d %s", c.path, status, body, c.status, c.body)
		}
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodDelete, "/v4/nope", nil))
	if rec.Code != 404 || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("any method is served: %d %s", rec.Code, rec.Header().Get("Content-Type"))
	}
}

func TestVersion3IsOlder(t *testing.T) {
	t.Parallel()
	h := metadata.New(metadata.Options{Lookup: lookup(phases(t)["phase-b-running"])})
	task := getJSON(t, h, "/v3/"+appID+"/task")
	for _, field := range []string{"LaunchType", "ClockDrift", "EphemeralStorageMetrics", "FaultInjectionEnabled"} {
		if v, ok := task[field]; ok {
			t.Errorf("V3 task has %s = %v", field, v)
		}
	}
	container := task["Containers"].([]any)[3].(map[string]any)
	for _, field := range []string{"ContainerARN", "LogDriver", "LogOptions", "Snapshotter"} {
		if v, ok := container[field]; ok {
			t.Errorf("V3 container has %s = %v", field, v)
		}
	}
	want := []any{map[string]any{"NetworkMode": "awsvpc", "IPv4Addresses": []any{"10.0.1.23"}}}
	if diff := cmp.Diff(any(want), container["Networks"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(container, getJSON(t, h, "/v3/"+appID)); diff != "" {
		t.Errorf("(-task +base):\n%s", diff)
	}
}

func TestContainerDetails(t *testing.T) {
	t.Parallel()
	m := phases(t)["phase-b-running"]
	f := m.Facts.Containers["product-api"]
	f.CPU, f.Memory = 128, 512
	f.Labels = map[string]string{"team": "shop", "com.amazonaws.ecs.container-name": "forged"}
	f.Ports = []metadata.Port{{ContainerPort: 9090, Protocol: "tcp", HostPort: 9090}}
	f.Volumes = []metadata.Volume{{Destination: "/consul"}}
	m.Facts.Containers["product-api"] = f
	m.View.Containers[3].RestartCount = code(0)
	got := getJSON(t, metadata.New(metadata.Options{Lookup: lookup(m)}), "/v4/"+appID)
	if diff := cmp.Diff(any(map[string]any{"CPU": 128.0, "Memory": 512.0}), got["Limits"]); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any([]any{map[string]any{"ContainerPort": 9090.0, "Protocol": "tcp", "HostPort": 9090.0}}), got["Ports"]); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	labels := got["Labels"].(map[string]any)
	if labels["team"] != "shop" || labels["com.amazonaws.ecs.container-name"] != "product-api" {
		t.Errorf("labels %v", labels)
	}
	if got["RestartCount"] != 0.0 {
		t.Errorf("RestartCount %v, want 0 with an enabled policy", got["RestartCount"])
	}
	if v, ok := got["Volumes"]; ok {
		t.Errorf("Fargate shows volumes %v", v)
	}
	if len(f.Labels) != 2 {
		t.Errorf("rendering changed the facts: %v", f.Labels)
	}
}

func TestTagsAndShuffle(t *testing.T) {
	t.Parallel()
	m := phases(t)["phase-b-running"]
	m.Facts.TaskTags = map[string]string{"consul.hashicorp.com/mesh": "true"}
	m.Facts.TagErrors = []metadata.TagError{{ErrorField: "ContainerInstanceTags", ErrorCode: "AccessDeniedException", StatusCode: 400}}
	reverse := func(n int, swap func(i, j int)) {
		for i := range n / 2 {
			swap(i, n-1-i)
		}
	}
	h := metadata.New(metadata.Options{Lookup: lookup(m), Shuffle: reverse})
	plain, tagged := getJSON(t, h, "/v4/"+appID+"/task"), getJSON(t, h, "/v4/"+appID+"/taskWithTags")
	if first := plain["Containers"].([]any)[0].(map[string]any)["Name"]; first != "product-api" {
		t.Errorf("shuffled task begins with %v", first)
	}
	if _, ok := plain["TaskTags"]; ok {
		t.Error("/task shows tags")
	}
	if diff := cmp.Diff(any(map[string]any{"consul.hashicorp.com/mesh": "true"}), tagged["TaskTags"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if code := tagged["Errors"].([]any)[0].(map[string]any)["ErrorCode"]; code != "AccessDeniedException" {
		t.Errorf("Errors %v", tagged["Errors"])
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	m := phases(t)["phase-c-unhealthy"]
	h := metadata.New(metadata.Options{Lookup: lookup(m), Stats: func(container string) *metadata.Stats {
		if container == "consul-dataplane" {
			return nil
		}
		return &metadata.Stats{
			Memory:   metadata.MemoryStats{Usage: 4096},
			Networks: map[string]metadata.NetworkStats{"eth1": {RxBytes: 7}},
			Rate:     &metadata.NetworkRate{Rx: 1.5},
		}
	}})
	own := getJSON(t, h, "/v4/"+appID+"/stats")
	if own["id"] != appID || own["name"] != "product-api" || own["memory_stats"].(map[string]any)["usage"] != 4096.0 ||
		own["network_rate_stats"].(map[string]any)["rx_bytes_per_sec"] != 1.5 {
		t.Errorf("own stats %v", own)
	}
	all := getJSON(t, h, "/v4/"+appID+"/task/stats")
	// mesh-init and health-sync have ended, the dataplane has no figures yet.
	if diff := cmp.Diff(map[string]any{initID: nil, dataplaneID: nil, syncID: nil, appID: own}, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, body := get(h, "/v4/"+syncID+"/stats"); body != "{}" {
		t.Errorf("stats of a stopped container: %s", body)
	}
}

// 10,000 polls a second are far from what a task does; the limit is 2 ms each.
func BenchmarkTask(b *testing.B) {
	m := phases(b)["phase-d-stopping"]
	h := metadata.New(metadata.Options{Lookup: lookup(m)})
	b.ReportAllocs()
	for b.Loop() {
		if _, body := get(h, "/v4/"+appID+"/task"); !strings.HasPrefix(body, "{") {
			b.Fatal(body)
		}
	}
}
