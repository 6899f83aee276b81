package healthsync_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/healthsync"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

func TestConsulFollowsECS(t *testing.T) {
	t.Parallel()
	k := newTask(t, open.Require(t), open.HTTPAddr, "follows", "app", "side")
	k.answer(200, health("app", "HEALTHY", "side", "UNHEALTHY", "log-router", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	k.eventually("side", "critical")
	if got := k.check("log-router").Status; got != "absent" {
		t.Errorf("the unlisted container's check is %s", got)
	}
	k.answer(200, health("side", "HEALTHY")) // app is missing
	k.eventually("app", "critical")
	k.eventually("side", "passing")
	if got := k.check("app").Output; got != `container "app" is not in the task metadata` {
		t.Errorf("output %q", got)
	}
	k.answer(200, health("app", "HEALTHY", "side", "HEALTHY"))
	k.eventually("app", "passing")
	k.raw(200, "{}") // no task: no change
	k.raw(500, "oops")
	if _, err := k.term(); err != nil {
		t.Error(err)
	}
	for _, container := range []string{"app", "side"} {
		if got := k.check(container); got.Status != "critical" ||
			got.Output != `container "`+container+`" belongs to a task that is stopping` {
			t.Errorf("%s was left %s, %q", container, got.Status, got.Output)
		}
	}
}

// TestConsulHasTheReason why a check is critical: with an agent, the servers get another output
// minutes after it, unless it is sent.
func TestConsulHasTheReason(t *testing.T) {
	t.Parallel()
	k := newTask(t, secured.Require(t), secured.HTTPAddr, "reason", "app") // with the default interval
	k.raw(200,
		`{"Cluster":"c","TaskARN":"`+k.w.TaskARN+
			`","Containers":[{"Name":"consul-ecs-health-sync"},{"Name":"app","KnownStatus":"RUNNING"}]}`)
	k.start()
	k.reason("app", "has no ECS health check: add healthCheck to its container definition")
	k.answer(200, health("app", "UNHEALTHY"))
	k.reason("app", "is UNHEALTHY in ECS")
	k.answer(200, health("app", "HEALTHY"))
	k.eventually("app", "passing")
	k.term()
}

func (k *task) reason(container, want string) {
	k.t.Helper()
	testkit.Eventually(k.t, "the output "+want, func() bool {
		return strings.Contains(k.check(container).Output, want)
	})
}

func TestErrorDocumentOfMetadataChangesNothing(t *testing.T) {
	t.Parallel()
	k := newTask(t, open.Require(t), open.HTTPAddr, "document", "app")
	reads := make(chan error, 100)
	k.deps.Metadata = observed{k.deps.Metadata, reads}
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	empty := `{"Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a","Containers":[]}`
	for _, body := range []string{"{}", `{"message":"task not found"}`, "[]", "", empty} {
		k.raw(200, body)
		waitForFault(t, reads)
	}
	k.raw(500, `{"Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:111122223333:task/mesh/0f9de17a"}`)
	waitForFault(t, reads)
	if got := k.check("app").Status; got != "passing" {
		t.Errorf("an error document made the check %s", got)
	}
	k.term()
}

// observed reports the outcome of every metadata read.
type observed struct {
	healthsync.Metadata
	reads chan error
}

func (o observed) Task(ctx context.Context) (workload.Task, error) {
	task, err := o.Metadata.Task(ctx)
	o.reads <- err
	return task, err
}

func waitForFault(t *testing.T, reads chan error) {
	t.Helper()
	for deadline := time.After(testkit.Patience); ; {
		select {
		case err := <-reads:
			if err != nil {
				return
			}
		case <-deadline:
			t.Fatal("the metadata was not read")
		}
	}
}

// A refresh is a write that repeats status and output. It must not reach the
// servers: health writes flood their leader otherwise. The old check's TTL is
// shorter than a refresh to show that it is replaced: it would run out.
func TestConsulOldTTLIsReplacedAndRefreshesAreQuiet(t *testing.T) {
	t.Parallel()
	k := newTask(t, open.Require(t), open.HTTPAddr, "quiet", "app")
	err := k.management.Agent().CheckRegister(&api.AgentCheckRegistration{
		ID: workload.CheckID(k.w.ID, "app"), Name: "consul ecs synced", ServiceID: k.w.ID,
		AgentServiceCheck: api.AgentServiceCheck{TTL: "1s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var refreshes atomic.Int32
	k.deps.Registrar = counting{k.registrar, &refreshes}
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	before := k.check("app")
	testkit.Eventually(t, "a refresh", func() bool { return refreshes.Load() >= 1 })
	after := k.check("app")
	if after.Status != "passing" || after.ModifyIndex != before.ModifyIndex {
		t.Errorf("%s (%s) with index %d, before the refresh %d", after.Status, after.Output, after.ModifyIndex,
			before.ModifyIndex)
	}
	k.term()
	if last := k.check("app").ModifyIndex; last == before.ModifyIndex {
		t.Error("a real change did not move the index either")
	}
}

// counting counts the refreshes that were accepted.
type counting struct {
	registrar.Registrar
	refreshes *atomic.Int32
}

func (c counting) Set(
	ctx context.Context, token string, w workload.Workload, updates []registrar.Update,
) []registrar.Result {
	results := c.Registrar.Set(ctx, token, w, updates)
	for i, r := range results {
		if r.Err == nil && updates[i].Refresh {
			c.refreshes.Add(1)
		}
	}
	return results
}

func TestConsulLostStateIsRepaired(t *testing.T) {
	t.Parallel()
	k := newTask(t, open.Require(t), open.HTTPAddr, "lost", "app")
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")

	if err := k.management.Agent().CheckDeregister(workload.CheckID(k.w.ID, "app")); err != nil {
		t.Fatal(err)
	}
	k.answer(200, health("app", "UNHEALTHY"))
	k.eventually("app", "critical")

	for _, id := range []string{k.w.ID, k.w.Proxy.ID} {
		if err := k.management.Agent().ServiceDeregister(id); err != nil {
			t.Fatal(err)
		}
	}
	k.answer(200, health("app", "HEALTHY"))
	k.eventually("app", "passing")
	if _, _, err := k.management.Agent().Service(k.w.Proxy.ID, nil); err != nil {
		t.Errorf("the proxy is not back: %v", err)
	}
	k.term()
}

func TestConsulACLTokensEndWithTheTask(t *testing.T) {
	t.Parallel()
	for name, owned := range map[string]bool{"old-client-script": false, "client-entrypoint": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTask(t, secured.Require(t), secured.HTTPAddr, name, "app")
			clientToken := k.newToken("client-token")
			if owned {
				if err := os.WriteFile(filepath.Join(k.cfg.BootstrapDir, "client-token.owner"), nil,
					0o600); err != nil {
					t.Fatal(err)
				}
			}
			k.answer(200, health("app", "HEALTHY"))
			k.start()
			k.eventually("app", "passing")
			k.answer(200, nil) // the application has stopped
			if _, err := k.term(); err != nil {
				t.Fatal(err)
			}
			// The catalog knows before the token is gone.
			if got := k.check("app").Status; got != "critical" {
				t.Errorf("left %s", got)
			}
			if tokenExists(t, k.management, k.token) {
				t.Error("service-token still works")
			}
			if got := tokenExists(t, k.management, clientToken); got != owned {
				t.Errorf("client-token works: %v, want %v", got, owned)
			}
		})
	}
}

// The controller, or a second run, may have been faster.
func TestDeletedConsulACLTokenCountsAsLoggedOut(t *testing.T) {
	t.Parallel()
	k := newTask(t, secured.Require(t), secured.HTTPAddr, "gone", "app")
	clientToken := k.newToken("client-token")
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	logOut := k.deps.LogOut
	if err := logOut(t.Context(), clientToken); err != nil {
		t.Fatal(err)
	}
	if _, err := k.term(); err != nil {
		t.Error(err)
	}
}

// TestConsulServicesOfAStoppedAgent: only the agent's address is closed, so
// that the services are passing in the servers' catalog.
func TestConsulServicesOfAStoppedAgent(t *testing.T) {
	t.Parallel()
	secured.Require(t)
	target := &url.URL{Scheme: "http", Host: secured.HTTPAddr}
	agent := httptest.NewServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(agent.Close)
	k := newTask(t, secured, agent.URL, "left", "app")
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	agent.Close()
	// Fake time proves that it takes no more.
	if took, err := k.term(); err != nil || took < 5*time.Second {
		t.Errorf("took %s, %v", took, err)
	}
	for _, name := range []string{k.w.Name, k.w.Proxy.Name} {
		if found, _, err := k.management.Catalog().Service(name, "", nil); err != nil || len(found) != 0 {
			t.Errorf("%s is in the catalog: %+v, %v", name, found, err)
		}
	}
	if tokenExists(t, k.management, k.token) {
		t.Error("service-token still works")
	}
}

func TestConsulHungAgent(t *testing.T) {
	t.Parallel()
	open.Require(t)
	var hangs atomic.Bool
	held := make(chan struct{}, 100)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: open.HTTPAddr})
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			// Only a server that has read the body notices that its caller
			// went away.
			io.Copy(io.Discard, r.Body)
			held <- struct{}{}
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(agent.Close)
	k := newTask(t, open, agent.URL, "hung", "app")
	k.answer(200, health("app", "HEALTHY"))
	k.start()
	k.eventually("app", "passing")
	hangs.Store(true)
	k.answer(200, health("app", "UNHEALTHY"))
	select {
	case <-held: // this write is cut off by the signal, not by its timeout
	case <-time.After(testkit.Patience):
		t.Fatal("nothing was written")
	}
	go func() {
		<-held // the first critical write; it runs into its timeout
		hangs.Store(false)
	}()
	if _, err := k.term(); err != nil { // fake time proves that it takes 6 s
		t.Error(err)
	}
	if got := k.check("app").Status; got != "critical" {
		t.Errorf("left %s", got)
	}
}
