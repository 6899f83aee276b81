package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"crypto/rand"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/workload"
)

// Where our tasks run. It is never looked up.
const (
	region     = "us-west-2"
	account    = "111122223333"
	clusterARN = "arn:aws:ecs:" + region + ":" + account + ":cluster/bench"
)

// task is an ECS task as its containers see it. The bench is its scheduler.
type task struct {
	id, service string
	// dir is its bootstrap directory.
	dir string
	// uri is ECS_CONTAINER_METADATA_URI_V4; reads its record.
	uri   string
	reads *recorder

	mu   sync.Mutex
	view scheduler.View
}

// newTask starts the metadata endpoint of a task with these running, healthy
// containers.
func (s *fixture) newTask(service string, containers ...string) (*task, error) {
	t := &task{id: newTaskID(), service: service, reads: &recorder{}}
	t.dir = filepath.Join(s.harness.dir, t.id)
	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return nil, err
	}
	t.view = scheduler.View{DesiredStatus: scheduler.StatusRunning, KnownStatus: scheduler.StatusRunning}
	facts := metadata.Facts{
		ClusterARN: clusterARN,
		TaskARN:    "arn:aws:ecs:" + region + ":" + account + ":task/bench/" + t.id,
		Family:     service, Revision: "1",
		AvailabilityZone: region + "a",
		Network:          metadata.Network{IP: "127.0.0.1", CIDR: "127.0.0.0/8"},
		Containers:       map[string]metadata.ContainerFacts{},
	}
	now := time.Now()
	for i, name := range containers {
		endpoint := fmt.Sprintf("%s-%010d", t.id, i)
		facts.Containers[name] = metadata.ContainerFacts{EndpointID: endpoint, DockerID: endpoint}
		t.view.Containers = append(t.view.Containers, scheduler.ContainerView{
			Name: name, Essential: true, StartedAt: now,
			DesiredStatus: scheduler.StatusRunning, KnownStatus: scheduler.StatusRunning,
			Health: &scheduler.HealthView{Status: scheduler.HealthHealthy, Since: now},
		})
	}
	handler := metadata.New(metadata.Options{Lookup: func(string) (metadata.Snapshot, bool) {
		return metadata.Snapshot{Facts: facts, View: t.now()}, true
	}})
	address, err := s.serve("", t.reads.around(handler))
	t.uri = fmt.Sprintf("http://%s/v4/%s-%010d", address, t.id, 0)
	return t, err
}

func newTaskID() string {
	id := make([]byte, 16)
	rand.Read(id) // never fails, see crypto/rand
	return hex.EncodeToString(id)
}

func (t *task) now() scheduler.View {
	t.mu.Lock()
	defer t.mu.Unlock()
	view := t.view
	view.Containers = append([]scheduler.ContainerView(nil), view.Containers...)
	return view
}

// change changes a container and returns the moment.
func (t *task) change(container string, f func(*scheduler.ContainerView)) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.view.Containers {
		if c := &t.view.Containers[i]; c.Name == container {
			f(c)
		}
	}
	return time.Now()
}

// health makes a container healthy or not and returns the moment.
func (t *task) health(container string, healthy bool) time.Time {
	status := scheduler.HealthUnhealthy
	if healthy {
		status = scheduler.HealthHealthy
	}
	return t.change(container, func(c *scheduler.ContainerView) {
		c.Health = &scheduler.HealthView{Status: status, Since: time.Now()}
	})
}

// stopContainer makes a container stopped and returns the moment.
func (t *task) stopContainer(container string) time.Time {
	return t.change(container, func(c *scheduler.ContainerView) {
		c.DesiredStatus, c.KnownStatus, c.FinishedAt = scheduler.StatusStopped, scheduler.StatusStopped, time.Now()
	})
}

func (t *task) serviceID() string { return workload.ServiceID(t.service, t.id) }
func (t *task) proxyID() string   { return workload.ProxyID(t.serviceID()) }

// object is a piece of configuration.
type object map[string]any

// env returns the environment of an in-task command whose local agent has that
// address; more adds to the configuration.
func (t *task) env(agent string, c *consul, more object) ([]string, error) {
	doc := object{"bootstrapDir": t.dir, "service": object{"name": t.service, "port": 9090}}
	for key, value := range more {
		doc[key] = value
	}
	text, err := json.Marshal(doc)
	return []string{
		config.EnvVar + "=" + string(text),
		awsutil.MetadataEnvVar + "=" + t.uri,
		"CONSUL_HTTP_ADDR=" + agent,
		"CONSUL_GRPC_ADDR=" + c.GRPCAddr,
	}, err
}
