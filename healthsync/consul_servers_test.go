package healthsync_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// newTaskAtServers starts what newTask does, for a task without an agent.
func newTaskAtServers(t *testing.T, c *testkit.Consul, name string, containers ...string) *task {
	t.Helper()
	k := newTaskOf(t, c, c.Require(t).HTTPAddr, &config.Config{
		ConsulServers:        &config.ConsulServers{Hosts: "consul.example"},
		HealthSyncContainers: containers,
		Service:              &config.Service{Name: name, Port: 8080},
		Proxy: &config.Proxy{PublicListenerPort: 20000, HealthCheckPort: 22000,
			Mode: config.ProxyDirect},
	})
	k.deps.DeregisterAtServers = nil // for tasks with an agent
	k.deps.Serves = func(context.Context, int, string) error { return os.ErrNotExist }
	return k
}

// catalog returns what the servers have of the task: checks by ID without the service's, and
// without those of a session, which some versions have.
func (k *task) catalog() map[string]*api.HealthCheck {
	k.t.Helper()
	all := map[string]*api.HealthCheck{}
	for _, name := range []string{k.w.Name, k.w.Proxy.Name} {
		checks, _, err := k.management.Health().Checks(name, nil)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, c := range checks {
			if c.Type == "session" {
				continue
			}
			all[c.CheckID[len(k.w.ID)+1:]] = c
		}
	}
	return all
}

func (k *task) statuses() map[string]string {
	k.t.Helper()
	all := map[string]string{}
	for id, c := range k.catalog() {
		all[id] = c.Status
	}
	return all
}

func (k *task) eventuallyAll(want map[string]string) {
	k.t.Helper()
	testkit.Eventually(k.t, fmt.Sprint("the checks are ", want), func() bool { return cmp.Equal(k.statuses(), want) })
}

const proxyCheck = "sidecar-proxy-consul-dataplane"

func threeChecks(app, service, proxy string) map[string]string {
	return map[string]string{"app": app, "consul-dataplane": service, proxyCheck: proxy}
}

// TestConsulWithoutAnAgent: all checks of the task in one write, none without a change, and
// nothing is left of the task at the end.
func TestConsulWithoutAnAgent(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*testkit.Consul{"open": open, "secured": secured} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTaskAtServers(t, server, "servers-"+name, "app")
			reads := make(chan error, 1000)
			k.deps.Metadata = observed{k.deps.Metadata, reads}
			k.answer(200, health("app", "HEALTHY", "consul-dataplane", "HEALTHY"))
			k.start()
			k.eventuallyAll(threeChecks("passing", "passing", "passing"))
			first := k.catalog()
			if a, b, c := first["app"].ModifyIndex, first["consul-dataplane"].ModifyIndex,
				first[proxyCheck].ModifyIndex; a != b || b != c {
				t.Errorf("indexes %d, %d, %d are of more than one write", a, b, c)
			}
			k.answer(200, health("app", "HEALTHY"))
			k.eventuallyAll(threeChecks("passing", "critical", "critical"))
			if got := k.catalog()["app"].ModifyIndex; got != first["app"].ModifyIndex {
				t.Error("the application's check was written without a change")
			}
			k.answer(200, health("app", "UNHEALTHY", "consul-dataplane", "HEALTHY"))
			k.eventuallyAll(threeChecks("critical", "critical", "critical"))
			k.answer(200, health("app", "HEALTHY", "consul-dataplane", "HEALTHY"))
			k.eventuallyAll(threeChecks("passing", "passing", "passing"))

			before := k.catalog()
			for range 3 + len(reads) {
				<-reads
			}
			for id, c := range k.catalog() {
				if c.ModifyIndex != before[id].ModifyIndex {
					t.Errorf("check %s was written without a change", id)
				}
			}

			ended := make(chan error, 1)
			go func() { _, err := k.term(); ended <- err }()
			k.eventuallyAll(threeChecks("critical", "critical", "critical"))
			last := k.catalog()
			if last["app"].ModifyIndex != last[proxyCheck].ModifyIndex {
				t.Error("critical was more than one write")
			}
			for range 5 + len(reads) { // the task is HEALTHY in ECS all the while
				<-reads
			}
			if got := k.catalog()["app"]; got.Status != "critical" || got.ModifyIndex != last["app"].ModifyIndex {
				t.Errorf("after TERM %s", got.Status)
			}
			k.answer(200, nil) // the proxy has stopped
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if got := k.statuses(); len(got) > 0 {
				t.Errorf("left in the catalog: %v", got)
			}
			if k.token != "" && tokenExists(t, k.management, k.token) {
				t.Error("service-token still works")
			}
		})
	}
}

// TestConsulDeregisteredTaskComesBack with the next write.
func TestConsulDeregisteredTaskComesBack(t *testing.T) {
	t.Parallel()
	k := newTaskAtServers(t, secured, "servers-deregistered", "app")
	k.answer(200, health("app", "HEALTHY", "consul-dataplane", "HEALTHY"))
	k.start()
	k.eventuallyAll(threeChecks("passing", "passing", "passing"))
	for _, id := range []string{k.w.ID, k.w.Proxy.ID} {
		if _, err := k.management.Catalog().Deregister(&api.CatalogDeregistration{Node: k.w.Node, ServiceID: id},
			nil); err != nil {
			t.Fatal(err)
		}
	}
	k.answer(200, health("app", "UNHEALTHY", "consul-dataplane", "HEALTHY"))
	k.eventuallyAll(threeChecks("critical", "critical", "critical"))
	k.answer(200, nil)
	if _, err := k.term(); err != nil {
		t.Error(err)
	}
}

// TestConsulRenewal: the task goes on with the new token, and neither is left. Its life is
// over a minute at the least, so the old token is made older than it is.
func TestConsulRenewal(t *testing.T) {
	t.Parallel()
	k := newTaskAtServers(t, secured, "servers-renewal", "app")
	k.deps.ReadToken = func(ctx context.Context, secret string) (consulutil.Token, error) {
		token, err := consulutil.ReadToken(ctx, k.management, secret)
		token.Expires = token.Created.Add(time.Second)
		return token, err
	}
	k.deps.LogIn = func(ctx context.Context, w workload.Workload, _ workload.Task) (consulutil.Token, error) {
		return consulutil.ReadToken(ctx, k.management, loginToken(t, k.management, w.Name))
	}
	presented := &presenting{Registrar: k.registrar}
	k.deps.Registrar = presented
	k.answer(200, health("app", "HEALTHY", "consul-dataplane", "HEALTHY"))
	k.start()
	path := filepath.Join(k.cfg.BootstrapDir, workload.FileServiceToken)
	var renewed string
	testkit.Eventually(t, "the token is renewed", func() bool {
		data, err := os.ReadFile(path)
		renewed = string(data)
		return err == nil && renewed != k.token
	})
	if !tokenExists(t, k.management, k.token) {
		t.Error("the old token does not work any more, though the proxy may present it")
	}
	k.answer(200, health("app", "UNHEALTHY", "consul-dataplane", "HEALTHY"))
	k.eventuallyAll(threeChecks("critical", "critical", "critical"))
	if presented.last.Load() != renewed {
		t.Error("health-sync presents the old token")
	}
	k.answer(200, nil)
	if _, err := k.term(); err != nil {
		t.Error(err)
	}
	if tokenExists(t, k.management, k.token) || tokenExists(t, k.management, renewed) {
		t.Error("a token still works")
	}
}

// presenting keeps the token that was presented last.
type presenting struct {
	registrar.Registrar
	last atomic.Value
}

func (p *presenting) Set(
	ctx context.Context, token string, w workload.Workload, updates []registrar.Update,
) []registrar.Result {
	p.last.Store(token)
	return p.Registrar.Set(ctx, token, w, updates)
}

// TestConsulServersAreDownAtTheEnd: the stop timeout holds, and the exit code reports it.
func TestConsulServersAreDownAtTheEnd(t *testing.T) {
	t.Parallel()
	c, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Require(t).Stop)
	k := newTaskAtServers(t, c, "servers-down", "app")
	k.stop = 6 * time.Second
	k.answer(200, health("app", "HEALTHY", "consul-dataplane", "HEALTHY"))
	k.start()
	k.eventuallyAll(threeChecks("passing", "passing", "passing"))
	c.Stop()
	// Less than the default, on a busy machine too; fake time proves the limit itself.
	if took, err := k.term(); cli.ExitCode(err) != exit.CodeUnknown || took > 20*time.Second {
		t.Errorf("took %s, exit code %d for %v", took, cli.ExitCode(err), err)
	}
}
