package workload_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/workload"
)

const fargateARN = "arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a6465404e8b1b2356dc13c2f8"

func metadata(t testing.TB, name string) workload.Task {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "metadata-"+name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	task, err := workload.ParseTask(body)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// identity is all that a task says about itself.
type identity struct{ ID, Region, Partition, Cluster, IP string }

func identify(t *testing.T, task workload.Task) identity {
	t.Helper()
	ip, err := task.NodeIP()
	if err != nil {
		t.Error(err)
	}
	return identity{task.ID(), task.Region(), task.Partition(), task.ClusterARN(), ip}
}

func TestTaskIdentity(t *testing.T) {
	t.Parallel()
	fargate := identity{"0f9de17a6465404e8b1b2356dc13c2f8", "us-west-2", "aws",
		"arn:aws:ecs:us-west-2:111122223333:cluster/mesh", "10.0.1.23"}
	for name, want := range map[string]identity{
		"starting": fargate, "running": fargate, "unhealthy": fargate, "stopping": fargate,
		// The container listed first has no network yet.
		"ec2": {"7c1de0ff52d14a4fb9a6a1d2f9f7d0c1", "us-gov-west-1", "aws-us-gov",
			"arn:aws-us-gov:ecs:us-gov-west-1:111122223333:cluster/mesh", "10.0.1.23"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, identify(t, metadata(t, name))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClusterARN(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, cluster, taskARN, want string }{
		{"ARN on Fargate", "arn:aws:ecs:us-west-2:1:cluster/mesh", "arn:aws:ecs:us-west-2:1:task/mesh/id",
			"arn:aws:ecs:us-west-2:1:cluster/mesh"},
		{"short name on EC2", "mesh", "arn:aws-cn:ecs:cn-north-1:1:task/mesh/id",
			"arn:aws-cn:ecs:cn-north-1:1:cluster/mesh"},
		{"no cluster", "", "arn:aws:ecs:us-west-2:1:task/mesh/id", "arn:aws:ecs:us-west-2:1:cluster/mesh"},
		{"old task ARN, short name", "mesh", "arn:aws:ecs:us-west-2:1:task/id", "arn:aws:ecs:us-west-2:1:cluster/mesh"},
		{"old task ARN, ARN", "arn:aws:ecs:us-west-2:1:cluster/mesh", "arn:aws:ecs:us-west-2:1:task/id",
			"arn:aws:ecs:us-west-2:1:cluster/mesh"},
		{"old task ARN, no cluster", "", "arn:aws:ecs:us-west-2:1:task/id", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			task := workload.Task{Cluster: tt.cluster, TaskARN: tt.taskARN}
			if got := task.ClusterARN(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := task.ID(); got != "id" {
				t.Errorf("ID: got %q", got)
			}
		})
	}
}

func TestParseTaskRefusesOtherDocuments(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{"nothing", ``, `parse task metadata: want a JSON object, got ""`},
		{"empty object", `{}`, `parse task metadata: no TaskARN in "{}"`},
		{"quoted error", `"V4 task metadata handler: unable to get task"`,
			`parse task metadata: want a JSON object, got "\"V4 task metadata handler: unable to get task\""`},
		{"rate limit", "You have reached maximum request limit.",
			`parse task metadata: want a JSON object, got "You have reached maximum request limit."`},
		{"null", `null`, `parse task metadata: want a JSON object, got "null"`},
		{"list", `[{"TaskARN":"` + fargateARN + `"}]`, `parse task metadata: want a JSON object, got `},
		{"error object", `{"message":"throttled","code":429}`, `parse task metadata: no TaskARN in `},
		{"a single container", `{"DockerId":"5d1c","Name":"app"}`, `parse task metadata: no TaskARN in `},
		{"null ARN", `{"TaskARN":null}`, `parse task metadata: no TaskARN in `},
		{"cut off", `{"TaskARN":"` + fargateARN, `parse task metadata `},
		{"wrong type", `{"TaskARN":"` + fargateARN + `","Containers":"none"}`, `parse task metadata `},
		{"no ARN", `{"TaskARN":"0f9de17a"}`,
			`parse task metadata: TaskARN "0f9de17a": want arn:<partition>:ecs:<region>:<account>:task/<cluster>/<id>`},
		{"ARN without region", `{"TaskARN":"arn:aws:ecs::1:task/mesh/id"}`, `parse task metadata: TaskARN `},
		{"ARN of another service", `{"TaskARN":"arn:aws:iam:us-west-2:1:task/mesh/id"}`,
			`parse task metadata: TaskARN `},
		{"ARN of a cluster", `{"TaskARN":"arn:aws:ecs:us-west-2:1:cluster/mesh"}`, `parse task metadata: TaskARN `},
		{"ARN without ID", `{"TaskARN":"arn:aws:ecs:us-west-2:1:task/mesh/"}`, `parse task metadata: TaskARN `},
		{"ARN with only a kind", `{"TaskARN":"arn:aws:ecs:us-west-2:1:task"}`, `parse task metadata: TaskARN `},
		{"ARN with too many parts", `{"TaskARN":"arn:aws:ecs:us-west-2:1:task/a/b/c"}`,
			`parse task metadata: TaskARN `},
		{"long answer", `<html>` + strings.Repeat("x", 1000), `parse task metadata: want a JSON object, got "<html>` +
			strings.Repeat("x", 114) + `"...`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			task, err := workload.ParseTask([]byte(tt.body))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if !cmp.Equal(task, workload.Task{}) {
				t.Errorf("a task came with the error: %+v", task)
			}
		})
	}
}

func TestNodeIP(t *testing.T) {
	t.Parallel()
	with := func(networks ...workload.Network) workload.Container { return workload.Container{Networks: networks} }
	tests := []struct {
		name       string
		containers []workload.Container
		want       string
	}{
		{"no containers", nil, ""},
		{"no networks", []workload.Container{with()}, ""},
		{"no addresses", []workload.Container{with(workload.Network{})}, ""},
		{"one address", []workload.Container{with(workload.Network{IPv4Addresses: []string{"10.0.0.1"}})}, "10.0.0.1"},
		{"the first of several", []workload.Container{
			with(workload.Network{IPv4Addresses: []string{"10.0.0.1", "10.0.0.2"}},
				workload.Network{IPv4Addresses: []string{"10.0.0.3"}}),
			with(workload.Network{IPv4Addresses: []string{"10.0.0.4"}})}, "10.0.0.1"},
		{"IPv4 before IPv6", []workload.Container{with(workload.Network{IPv4Addresses: []string{"10.0.0.1"},
			IPv6Addresses: []string{"fd00::1"}})}, "10.0.0.1"},
		{"IPv6 only", []workload.Container{with(workload.Network{IPv6Addresses: []string{"fd00::1"}})}, "fd00::1"},
		{"a waiting container first", []workload.Container{with(),
			with(workload.Network{IPv4Addresses: []string{"10.0.0.4"}})}, "10.0.0.4"},
		{"no IP address", []workload.Container{with(workload.Network{IPv4Addresses: []string{"", "host"}})}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := workload.Task{Containers: tt.containers}.NodeIP()
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestStoppedNeedsBothStatuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		desired, known string
		want           bool
	}{
		{"RUNNING", "RUNNING", false},
		{"STOPPED", "RUNNING", false},
		{"RUNNING", "STOPPED", false}, // a non-essential container that ended
		{"STOPPED", "STOPPED", true},
		{"", "", false},
	} {
		if got := (workload.Container{DesiredStatus: tt.desired, KnownStatus: tt.known}).Stopped(); got != tt.want {
			t.Errorf("%s/%s: got %v", tt.desired, tt.known, got)
		}
	}
}

func TestApplicationsAreTheUsersContainers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		task   workload.Task
		ignore []string
		want   []string
	}{
		{"Fargate", metadata(t, "running"), nil, []string{"product-api"}},
		{"EC2 without the pause container", metadata(t, "ec2"), nil, []string{"audit", "product-api", "log-router"}},
		{"some ignored", metadata(t, "ec2"), []string{"log-router", "audit", "absent"}, []string{"product-api"}},
		{"our own", workload.Task{Containers: []workload.Container{
			{Name: "consul-ecs-mesh-init"}, {Name: "consul-client"}, {Name: "sidecar-proxy"},
			{Name: "consul-ecs-health-sync"},
			{Name: "consul-ecs-install"}, {Name: "consul-dataplane"}, {Name: "consul-ecs-control-plane"},
			{Name: "consul-ecs"}}}, nil, []string{"consul-ecs"}},
		{"an old agent that sends no type", workload.Task{Containers: []workload.Container{
			{Name: "~internal~ecs~pause"}, {Name: "app"}}}, nil, []string{"app"}},
		{"none", workload.Task{}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range tt.task.Applications(tt.ignore) {
				got = append(got, c.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParseTaskReadsContainers(t *testing.T) {
	t.Parallel()
	zero, killed := 0, 143
	task := metadata(t, "stopping")
	type line struct {
		Name, Type, Desired, Known, Health string
		Exit                               *int
	}
	var got []line
	for _, c := range task.Containers {
		got = append(got, line{c.Name, c.Type, c.DesiredStatus, c.KnownStatus, c.HealthStatus(), c.ExitCode})
	}
	one := 1
	want := []line{
		{"consul-ecs-mesh-init", "NORMAL", "STOPPED", "STOPPED", "", &zero},
		{"consul-dataplane", "NORMAL", "STOPPED", "RUNNING", "HEALTHY", nil},
		{"consul-ecs-health-sync", "NORMAL", "STOPPED", "STOPPED", "", &one},
		{"product-api", "NORMAL", "STOPPED", "STOPPED", "UNHEALTHY", &killed},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzParseTask(f *testing.F) {
	for _, name := range []string{"running", "ec2"} {
		body, err := os.ReadFile(filepath.Join("testdata", "metadata-"+name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, body := range []string{`{}`, `"error"`, `{"TaskARN":"arn:aws:ecs:r:1:task/id"}`,
		`{"TaskARN":"arn:aws:ecs:r:1:task//id"}`, `{"TaskARN":"a:b:c:d:e:f:g"}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		task, err := workload.ParseTask(body)
		if err != nil {
			return
		}
		if slices.Contains([]string{task.ID(), task.Region(), task.Partition()}, "") || strings.Contains(task.ID(), "/") {
			t.Errorf("accepted a task without identity: %+v", task)
		}
		if !strings.HasSuffix(task.TaskARN, "/"+task.ID()) {
			t.Errorf("ID %q is not the end of %q", task.ID(), task.TaskARN)
		}
		task.ClusterARN()
		task.NodeIP()
		if len(task.Applications(nil)) > len(task.Containers) {
			t.Error("more applications than containers")
		}
	})
}
