package metadata_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/workload"
)

// lookup knows the endpoint IDs of one task.
func lookup(m metadata.Snapshot) func(string) (metadata.Snapshot, bool) {
	return func(id string) (metadata.Snapshot, bool) {
		for _, c := range m.Facts.Containers {
			if c.EndpointID == id {
				return m, true
			}
		}
		return metadata.Snapshot{}, false
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
	testkit.Equal(t, "TaskARN", task.TaskARN, taskARN)
	testkit.Equal(t, "Name", app.Name, "product-api")
	testkit.Equal(t, "Health.Status", app.Health.Status, "UNHEALTHY")
	testkit.Equal(t, "KnownStatus", app.KnownStatus, "STOPPED")
	testkit.Equal(t, "DesiredStatus", app.DesiredStatus, "STOPPED")
	testkit.Equal(t, "Networks[0].IPv4Addresses[0]", app.Networks[0].IPv4Addresses[0], "10.0.1.23")
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
		{"/v4/nope", 404, `"V4 container metadata handler: unable to get container ID from request: unable to get ` +
			`docker ID from v3 endpoint ID: nope"`},
		{"/v4/nope/task", 404, `"V4 task metadata handler: unable to get task arn from request: unable to get task ` +
			`Arn from v3 endpoint ID: nope"`},
		{"/v4/nope/taskWithTags", 404,
			`"V4 task metadata handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ` +
				`ID: nope"`},
		{"/v4/nope/stats", 404, `"V4 container stats handler: unable to get task arn from request: unable to get ` +
			`task Arn from v3 endpoint ID: nope"`},
		{"/v4/nope/task/stats", 404,
			`"V4 task stats handler: unable to get task arn from request: unable to get task Arn from v3 endpoint ` +
				`ID: nope"`},
		{"/v4/", 404, `"V4 container metadata handler: unable to get container ID from request: unable to get docker ` +
			`ID from v3 endpoint ID: "`},
		{"/v3/nope/task", 500, `"V3 task metadata handler: unable to get task arn from request: unable to get task ` +
			`Arn from v3 endpoint ID: nope"`},
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
	m.Facts.Containers["product-api"] = f
	m.View.Containers[3].RestartCount = code(0)
	got := getJSON(t, metadata.New(metadata.Options{Lookup: lookup(m)}), "/v4/"+appID)
	if diff := cmp.Diff(any(map[string]any{"CPU": 128.0, "Memory": 512.0}), got["Limits"]); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any([]any{map[string]any{"ContainerPort": 9090.0, "Protocol": "tcp", "HostPort": 9090.0}}),
		got["Ports"]); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	labels := got["Labels"].(map[string]any)
	if labels["team"] != "shop" || labels["com.amazonaws.ecs.container-name"] != "product-api" {
		t.Errorf("labels %v", labels)
	}
	if got["RestartCount"] != 0.0 {
		t.Errorf("RestartCount %v, want 0 with an enabled policy", got["RestartCount"])
	}
	if len(f.Labels) != 2 {
		t.Errorf("rendering changed the facts: %v", f.Labels)
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
	testkit.Equal(t, `own["id"]`, own["id"], appID)
	testkit.Equal(t, `own["name"]`, own["name"], "product-api")
	testkit.Equal(t, `own["memory_stats"].(map[string]any)["usage"]`, own["memory_stats"].(map[string]any)["usage"],
		4096.0)
	testkit.Equal(t, `own["network_rate_stats"].(map[string]any)["rx_bytes_per_sec"]`,
		own["network_rate_stats"].(map[string]any)["rx_bytes_per_sec"], 1.5)
	all := getJSON(t, h, "/v4/"+appID+"/task/stats")
	none := map[string]any{}
	// mesh-init and health-sync have ended, the dataplane has no figures yet.
	if diff := cmp.Diff(map[string]any{initID: none, dataplaneID: none, syncID: none, appID: own}, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, early := get(h, "/v4/"+dataplaneID+"/stats")
	testkit.Equal(t, "stats of a container without figures", early, "{}")
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
