package controller

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// slow answers each request after a while, as a server far away does.
type slow struct {
	next  http.RoundTripper
	delay time.Duration
}

// RoundTrip implements http.RoundTripper.
func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	<-time.After(s.delay)
	return s.next.RoundTrip(r)
}

// inMemory returns a Cleaner beside a Consul without a socket.
func inMemory(t *testing.T, consul http.RoundTripper, ecs ECS) *Cleaner {
	t.Helper()
	client, err := consulutil.NewClient(
		consulutil.Options{Address: "consul:8500", Wrap: func(http.RoundTripper) http.RoundTripper { return consul }})
	if err != nil {
		t.Fatal(err)
	}
	return NewCleaner(
		CleanerOptions{Consul: client, ECS: ecs, Cluster: shop(t), Leftovers: agent(), Log: hclog.NewNullLogger()})
}

// populated returns a Consul with two tokens, a service and its proxy of each task.
func populated(t *testing.T, ids []string) *fakeConsul {
	t.Helper()
	consul := newFakeConsul()
	consul.deleted = func(string, string) {}
	for _, id := range ids {
		for _, method := range agent().Methods {
			consul.login(method, loginText(id, clusterARN))
		}
		meta := map[string]string{"source": "consul-ecs", "task-id": id, "task-arn": shop(t).TaskARN(id)}
		consul.register("node-"+id, "web", "web-"+id, meta)
		consul.register("node-"+id, "web-sidecar-proxy", "web-"+id+"-sidecar-proxy", meta)
		consul.nodes["node-"+id] = "critical"
	}
	return consul
}

// TestFiveHundredDeadTasks: what they left is gone more than five times as fast as
// with one deletion after the other. At 45 ms each, as version 0.6 was measured.
func TestFiveHundredDeadTasks(t *testing.T) {
	t.Parallel()
	const dead, delay = 500, 45 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		ecs := &fakeECS{}
		var ids []string
		for i := range dead {
			ids = append(ids, fmt.Sprintf("%032x", i))
			ecs.stop(ids[i])
		}
		consul := populated(t, ids)
		c := inMemory(t, slow{consul, delay}, ecs)
		r, err := c.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := c.Apply(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		if left := len(consul.tokens) + len(consul.services) + len(consul.nodes); left != 0 ||
			len(r.Deleted) != 5*dead {
			t.Errorf("%d things left, %d deleted", left, len(r.Deleted))
		}
		serially := time.Duration(consul.writes) * delay
		t.Logf("%s, one after the other %s: %.1f times as fast", took, serially, float64(serially)/float64(took))
		if took*5 > serially {
			t.Errorf("took %s, one after the other %s", took, serially)
		}
	})
}

// TestTenThousandTasks: AWS calls and Consul writes of a first and a steady pass,
// on the ECS API with AWS's SDK.
func TestTenThousandTasks(t *testing.T) {
	t.Parallel()
	const tasks = 10_000
	ecs := awstest.NewECS(t, awstest.ECSOptions{})
	var ids []string
	for _, arn := range ecs.Run(awstest.TaskGroup{Family: "web", Count: tasks, Cluster: "shop"}) {
		ids = append(ids, arn[len(arn)-32:])
	}
	consul := populated(t, ids)
	c := inMemory(t, consul, awsutil.NewECSReader(ecs.Config(), awsutil.ECSReaderOptions{CallsPerSecond: 1e6}))
	for i, most := range []int{220, 110} {
		name, start := []string{"a first pass", "a steady pass"}[i], time.Now()
		r, err := once(t, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d AWS calls, %d Consul writes, %s", name, r.AWS.Calls, consul.writes, time.Since(start))
		if r.AWS.Calls > most {
			t.Errorf("%s: %d AWS calls, want %d at most", name, r.AWS.Calls, most)
		}
		testkit.Equal(t, name+": writes, tasks, tokens and services",
			[]int{consul.writes, r.Running, r.Tokens, r.Services}, []int{0, tasks, 2 * tasks, 2 * tasks})
	}
}

// TestOutdatedPlanIsNotApplied: a process that was paused for longer than a proof
// is good for looks again.
func TestOutdatedPlanIsNotApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ecs := &fakeECS{}
		ecs.stop(task1)
		consul := populated(t, []string{task1})
		c := inMemory(t, consul, ecs)
		r, err := c.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(proofLife + time.Second)
		if err := c.Apply(t.Context(), &r); err == nil {
			t.Error("the outdated plan was applied")
		}
		testkit.Equal(t, "failures, writes and errors of Consul", []int{len(r.Failed), consul.writes, r.ConsulErrors},
			[]int{4, 0, 0})
		if r, err = once(t, c); err != nil || len(r.Deleted) != 5 {
			t.Errorf("the next pass: %+v, %v", r, err)
		}
	})
}
