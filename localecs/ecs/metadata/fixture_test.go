package metadata_test

import (
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

const (
	taskID  = "0f9de17a6465404e8b1b2356dc13c2f8"
	taskARN = "arn:aws:ecs:us-west-2:111122223333:task/mesh/" + taskID

	initID      = taskID + "-2531612879"
	dataplaneID = taskID + "-1207953370"
	syncID      = taskID + "-3681103124"
	appID       = taskID + "-0413370066"
)

// meshFacts returns the task of the AWS documentation's example.
func meshFacts() metadata.Facts {
	container := func(endpoint, image, name, last string) metadata.ContainerFacts {
		return metadata.ContainerFacts{
			EndpointID: endpoint, DockerID: endpoint,
			ImageID:   "sha256:" + strings.Repeat(image, 64),
			LogDriver: "awslogs",
			LogOptions: map[string]string{
				"awslogs-group":  "/ecs/product-api",
				"awslogs-region": "us-west-2",
				"awslogs-stream": name + "/" + name + "/" + taskID,
			},
			ContainerARN: "arn:aws:ecs:us-west-2:111122223333:container/mesh/" + taskID +
				"/05281997-76f6-4508-a13c-19f1a2ecc00" + last,
		}
	}
	return metadata.Facts{
		ClusterARN: "arn:aws:ecs:us-west-2:111122223333:cluster/mesh",
		TaskARN:    taskARN, Family: "product-api", Revision: "7",
		AvailabilityZone: "us-west-2b",
		Limits:           &metadata.TaskLimits{CPU: 0.5, Memory: 1024},
		Network: metadata.Network{
			IP: "10.0.1.23", MAC: "0a:1b:2c:3d:4e:5f", CIDR: "10.0.1.0/24", Gateway: "10.0.1.1",
			Resolver: "10.0.0.2", PrivateDNSName: "ip-10-0-1-23.us-west-2.compute.internal",
		},
		Containers: map[string]metadata.ContainerFacts{
			"consul-ecs-mesh-init":   container(initID, "1", "consul-ecs-mesh-init", "1"),
			"consul-dataplane":       container(dataplaneID, "2", "consul-dataplane", "2"),
			"consul-ecs-health-sync": container(syncID, "1", "consul-ecs-health-sync", "3"),
			"product-api":            container(appID, "3", "product-api", "4"),
		},
	}
}

func at(t testing.TB, value string) time.Time {
	t.Helper()
	// In another zone on purpose: answers are in UTC.
	parsed, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.In(time.FixedZone("CET", 3600))
}

func code(n int) *int { return &n }

// phases returns four moments of a task, each built upon the one before.
func phases(t testing.TB) map[string]metadata.Snapshot {
	t.Helper()
	m := metadata.Snapshot{
		Facts: meshFacts(),
		View: scheduler.View{
			DesiredStatus: "RUNNING", KnownStatus: "NONE",
			PullStartedAt: at(t, "2026-03-02T17:08:41.102337458Z"),
			PullStoppedAt: at(t, "2026-03-02T17:08:52.904115007Z"),
			Containers: []scheduler.ContainerView{
				{Name: "consul-ecs-mesh-init", Image: "hashicorp/consul-ecs:0.9.0", DesiredStatus: "RUNNING",
					KnownStatus: "RUNNING",
					StartedAt:   at(t, "2026-03-02T17:08:53.211904113Z")},
				{Name: "consul-dataplane", Image: "hashicorp/consul-dataplane:1.5.0", DesiredStatus: "RUNNING",
					KnownStatus: "PULLED",
					Health:      &scheduler.HealthView{}},
				{Name: "consul-ecs-health-sync", Image: "hashicorp/consul-ecs:0.9.0", DesiredStatus: "RUNNING",
					KnownStatus: "PULLED"},
				{Name: "product-api", Image: "111122223333.dkr.ecr.us-west-2.amazonaws.com/product-api:7",
					Essential:     true,
					DesiredStatus: "RUNNING", KnownStatus: "PULLED", Health: &scheduler.HealthView{}},
			},
		},
	}
	out := map[string]metadata.Snapshot{}
	save := func(name, reference string, utilized int64) {
		saved := m
		saved.View.Containers = append([]scheduler.ContainerView(nil), m.View.Containers...)
		saved.Clock = &metadata.ClockDrift{ClockErrorBound: 0.5458,
			ReferenceTimestamp:         at(t, reference).Add(123 * time.Millisecond),
			ClockSynchronizationStatus: "SYNCHRONIZED"}
		saved.Storage = &metadata.EphemeralStorage{Utilized: utilized, Reserved: 20496}
		out[name] = saved
	}
	c := m.View.Containers
	save("phase-a-starting", "2026-03-02T17:08:47Z", 214)

	m.View.KnownStatus = "RUNNING"
	c[0].KnownStatus, c[0].ExitCode, c[0].FinishedAt = "STOPPED", code(0), at(t, "2026-03-02T17:08:56.400712998Z")
	for i, start := range []string{"2026-03-02T17:08:57.302771204Z", "2026-03-02T17:08:57.355120086Z",
		"2026-03-02T17:09:04.118840001Z"} {
		c[i+1].KnownStatus, c[i+1].StartedAt = "RUNNING", at(t, start)
	}
	c[1].Health = &scheduler.HealthView{Status: "HEALTHY", Since: at(t, "2026-03-02T17:09:02.611038455Z")}
	c[3].Health = &scheduler.HealthView{Status: "HEALTHY", Since: at(t, "2026-03-02T17:09:34.190022716Z")}
	save("phase-b-running", "2026-03-02T17:11:12Z", 214)

	c[2].KnownStatus, c[2].ExitCode, c[2].FinishedAt = "STOPPED", code(1), at(t, "2026-03-02T17:21:10.730044981Z")
	c[3].Health = &scheduler.HealthView{Status: "UNHEALTHY", Since: at(t, "2026-03-02T17:24:40.002917340Z"),
		ExitCode: 1,
		Output:   "dial tcp 127.0.0.1:9090: connect: connection refused\n"}
	save("phase-c-unhealthy", "2026-03-02T17:25:03Z", 231)

	m.View.DesiredStatus, m.View.ExecutionStoppedAt = "STOPPED", at(t, "2026-03-02T17:40:04.511870275Z")
	for i := range c {
		c[i].DesiredStatus = "STOPPED"
	}
	c[3].KnownStatus, c[3].ExitCode, c[3].FinishedAt = "STOPPED", code(143), at(t, "2026-03-02T17:40:04.507193362Z")
	save("phase-d-stopping", "2026-03-02T17:39:41Z", 240)
	return out
}
