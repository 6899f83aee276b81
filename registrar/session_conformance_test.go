package registrar

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestSessionOfALostAnswerIsFound at a real server: the creation is carried out, its answer is
// lost, and the session is used under its name.
func TestSessionOfALostAnswerIsFound(t *testing.T) {
	t.Parallel()
	testkit.Long(t)
	server, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true, Newest: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Require(t).Stop)
	var answered atomic.Bool // false loses the next answer to a creation
	answered.Store(true)
	client, err := consulutil.NewClient(consulutil.Options{
		Address: server.HTTPAddr, Token: server.Token,
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
				answer, err := next.RoundTrip(r)
				made := err == nil && strings.HasSuffix(r.URL.Path, "/session/create")
				if made && answered.CompareAndSwap(false, true) {
					answer.Body.Close()
					return nil, context.DeadlineExceeded
				}
				return answer, err
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := catalogWorkload(t, func(cfg *config.Config) { cfg.Service.Namespace, cfg.Service.Partition = "", "" })
	c := newCatalog(client).(*catalog)
	if err := c.Register(t.Context(), "", w); err != nil {
		t.Fatal(err)
	}
	other := &api.SessionEntry{Name: "other", Node: w.Node, TTL: "15s"}
	if _, _, err := client.Session().CreateNoChecks(other, nil); err != nil {
		t.Fatal(err)
	}
	answered.Store(false)
	k := &keeper{session: c.session, log: hclog.NewNullLogger(), w: w}
	if pause := k.create(t.Context(), "", false); pause < lookPause/2 {
		t.Errorf("looks for the session after %s", pause)
	}
	if k.look(t.Context(), ""); k.session.id == "" {
		t.Fatal("the session was not found")
	}
	if pause := k.step(t.Context(), "", false); pause < renewalPause/2 {
		t.Errorf("the session was not renewed, next step in %s", pause)
	}
	checks, _, err := client.Health().Node(w.Node, nil)
	if err != nil {
		t.Fatal(err)
	}
	passing := 0
	for _, check := range checks {
		if check.Type == "session" && check.Status == api.HealthPassing {
			passing++
		}
	}
	if passing != 2 {
		t.Errorf("%d session checks pass, want 2", passing)
	}
	if _, err := client.Session().Destroy(k.session.id, nil); err != nil {
		t.Fatal(err)
	}
	if again := k.step(t.Context(), "", false); again > time.Minute {
		t.Errorf("the next creation is in %s", again)
	}
	name := k.session.name
	if k.create(t.Context(), "", false); k.session.name != name {
		t.Errorf("name %s, then %s", name, k.session.name)
	}
}
