package registrar_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// node is that of the suite's workloads.
const node = "arn:aws:ecs:us-west-2:123456789012:cluster/default"

// catalogSubject returns the implementation without an agent on a real server. With ACLs the
// node is there before, as the controller makes it.
func catalogSubject(t *testing.T, c *testkit.Consul) subject {
	t.Helper()
	catalog := client(t, c, c.Token).Catalog()
	if c.Token != "" {
		if _, err := catalog.Register(&api.CatalogRegistration{Node: node, Address: "10.0.0.1", SkipNodeUpdate: true},
			nil); err != nil {
			t.Fatal(err)
		}
	}
	return subject{
		Registrar: registrar.New(&config.Config{ConsulServers: &config.ConsulServers{}}, client(t, c, "")),
		Servers:   &config.ConsulServers{Hosts: "consul.example"},
		Token:     serviceToken(t, c, "web", "gateway"),
		Check: func(t *testing.T, id string) (string, string, bool) {
			t.Helper()
			check := catalogCheck(t, c, id)
			return check.Status, check.Output, check.CheckID != ""
		},
		Forget: func(t *testing.T, id string) {
			t.Helper()
			if _, err := catalog.Deregister(&api.CatalogDeregistration{Node: node, ServiceID: id}, nil); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// serviceToken returns a token with the service identities that logins give, and no more.
func serviceToken(t *testing.T, c *testkit.Consul, services ...string) string {
	t.Helper()
	if c.Token == "" {
		return ""
	}
	var identities []*api.ACLServiceIdentity
	for _, s := range services {
		identities = append(identities, &api.ACLServiceIdentity{ServiceName: s})
	}
	token, _, err := client(t, c, c.Token).ACL().TokenCreate(&api.ACLToken{ServiceIdentities: identities}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token.SecretID
}

// catalogCheck returns a check, empty for one that is not in the catalog.
func catalogCheck(t *testing.T, c *testkit.Consul, id string) api.HealthCheck {
	t.Helper()
	checks, _, err := client(t, c, c.Token).Health().Node(node, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range checks {
		if check.CheckID == id {
			return *check
		}
	}
	return api.HealthCheck{}
}

func TestCatalogConforms(t *testing.T) {
	t.Parallel()
	runSuite(t, catalogSubject(t, open.Require(t)), "catalog")
}

func TestCatalogConformsWithACLs(t *testing.T) {
	t.Parallel()
	runSuite(t, catalogSubject(t, secured.Require(t)), "catalog-acl")
}

// TestNewestConsulConforms runs the suite of both implementations on the newest version.
func TestNewestConsulConforms(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for name, options := range map[string]testkit.ConsulOptions{"open": {Newest: true},
		"acl": {Newest: true, ACL: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := testkit.StartConsul(options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Require(t).Stop)
			runSuite(t, agentSubject(t, c), "agent-"+name)
			// First, since it makes the node, which a session needs.
			refusesInvalidContent(t, catalogSubject(t, c))
			runSuite(t, catalogSubject(t, c), "catalog-"+name)
		})
	}
}

// updates returns the updates of all checks of the workload.
func updates(w workload.Workload, status string, refresh bool) []registrar.Update {
	var all []registrar.Update
	for _, c := range w.SyncChecks {
		all = append(all, registrar.Update{Check: c, Status: status, Output: status, Refresh: refresh})
	}
	return all
}

func setAll(t *testing.T, s subject, w workload.Workload, us []registrar.Update) (restored int) {
	t.Helper()
	for i, r := range s.Registrar.Set(context.Background(), s.Token, w, us) {
		if r.Err != nil {
			t.Errorf("%s: %v", us[i].Check.ID, r.Err)
		}
		if r.Restored {
			restored++
		}
	}
	return restored
}

// TestCatalogRefreshRepairs: whatever happened to the catalog, a refresh finds it, and
// writes nothing else.
func TestCatalogRefreshRepairs(t *testing.T) {
	t.Parallel()
	s := catalogSubject(t, open.Require(t))
	admin := client(t, open, "").Catalog()
	for name, test := range map[string]struct {
		harm     func(t *testing.T, w workload.Workload) error
		restored int
	}{
		"nothing happened": {func(*testing.T, workload.Workload) error { return nil }, 0},
		"a snapshot brought an old status back": {func(_ *testing.T, w workload.Workload) error {
			_, err := admin.Register(&api.CatalogRegistration{Node: node, SkipNodeUpdate: true, Check: &api.AgentCheck{
				Node: node, CheckID: w.SyncChecks[0].ID, Name: "n", Status: "critical", ServiceID: w.ID,
			}}, nil)
			return err
		}, 0},
		"a check is gone": {func(_ *testing.T, w workload.Workload) error {
			_, err := admin.Deregister(&api.CatalogDeregistration{Node: node, CheckID: w.SyncChecks[0].ID}, nil)
			return err
		}, 1},
		"the service is gone": {func(t *testing.T, w workload.Workload) error { s.Forget(t, w.ID); return nil }, 2},
		"the proxy is gone": {func(t *testing.T, w workload.Workload) error { s.Forget(t, w.Proxy.ID); return nil },
			1},
		"both are gone": {func(t *testing.T, w workload.Workload) error {
			s.Forget(t, w.ID)
			s.Forget(t, w.Proxy.ID)
			return nil
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := s.Service(t, "web", "repair-"+strings.ReplaceAll(name, " ", "-"))
			register(t, s, w)
			setAll(t, s, w, updates(w, "passing", false))
			before := map[string]uint64{}
			for _, c := range w.SyncChecks {
				before[c.ID] = catalogCheck(t, open, c.ID).ModifyIndex
			}
			if err := test.harm(t, w); err != nil {
				t.Fatal(err)
			}
			if restored := setAll(t, s, w, updates(w, "passing", true)); restored != test.restored {
				t.Errorf("%d restored, want %d", restored, test.restored)
			}
			for _, c := range w.SyncChecks {
				check := catalogCheck(t, open, c.ID)
				got, want := []string{check.Status, check.Output, check.Name}, []string{"passing", "passing", c.Name}
				if !slices.Equal(got, want) {
					t.Errorf("status, output and name of check %s are %q, want %q", c.ID, got, want)
				}
			}
			if last := w.SyncChecks[2].ID; test.restored == 0 &&
				catalogCheck(t, open, last).ModifyIndex != before[last] {
				t.Error("a check that was as it should be was written")
			}
		})
	}
}

// TestCatalogRemovedNode: an operator removed the node, with all tasks of the cluster.
func TestCatalogRemovedNode(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*testkit.Consul{"open": open, "acl": secured} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := catalogSubject(t, server.Require(t))
			w := s.Service(t, "web", "removed")
			w.Node = "arn:aws:ecs:us-west-2:123456789012:cluster/removed"
			results := s.Registrar.Set(context.Background(), s.Token, w, updates(w, "passing", true))
			if name == "open" {
				if r := results[0]; !r.Restored {
					t.Errorf("result = %+v", r)
				}
				// A session, where the server has them, takes the node.
				for _, r := range s.Registrar.Set(context.Background(), s.Token, w, updates(w, "passing", true)) {
					if r.Err != nil || r.Restored {
						t.Errorf("second result = %+v, want no error and nothing restored", r)
					}
					if r.Unbound != nil && open.Since(t, 1, 21) {
						t.Errorf("second result is unbound: %v", r.Unbound)
					}
				}
				return
			}
			for _, err := range []error{results[0].Err, s.Registrar.Register(context.Background(), s.Token, w)} {
				if consulutil.Classify(err) != retry.NotYet || !strings.HasSuffix(err.Error(),
					`: node "arn:aws:ecs:us-west-2:123456789012:cluster/removed" is not in the catalog; the `+
						`controller (consul-ecs controller) creates it and may not have done so yet`) {
					t.Errorf("class %v of: %v", consulutil.Classify(err), err)
				}
			}
			// What is not there is deregistered, and has no proxy.
			if err := s.Registrar.Deregister(context.Background(), s.Token, w); err != nil {
				t.Error(err)
			}
			if _, err := s.Registrar.Proxy(context.Background(), s.Token, w); consulutil.Classify(err) != retry.Gone {
				t.Errorf("proxy: %v", err)
			}
		})
	}
}

func TestCatalogRefusalNamesTheRemedy(t *testing.T) {
	t.Parallel()
	s := catalogSubject(t, secured.Require(t))
	w := s.Service(t, "denied", "t1")
	ctx := context.Background()
	const identity = `the token needs a service identity for "denied"; with consulLogin, tag the task role with ` +
		`consul.hashicorp.com.service-name=denied`
	for name, tc := range map[string]struct {
		token, want string
		class       retry.Class
	}{
		"identity of another service": {s.Token, identity, retry.Permanent},
		"no token": {"", "no token was sent: set consulLogin.enabled to true or give this container CONSUL_HTTP_TOKEN",
			retry.Permanent},
		"unknown token": {"11111111-1111-1111-1111-111111111111", "ACL not found", retry.NotYet},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := s.Registrar.Register(ctx, tc.token, w)
			if got := fmt.Sprint(err); !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q in it", got, tc.want)
			}
			if got := consulutil.ClassifyNewToken(err); got != tc.class {
				t.Errorf("class %v, want %v: %v", got, tc.class, err)
			}
		})
	}
	// One whose service is there, of a token that may not write it.
	register(t, subject{Registrar: s.Registrar, Token: secured.Token}, w)
	if r := s.Registrar.Set(ctx, s.Token, w, updates(w, "passing", false))[0]; r.Err == nil ||
		!strings.Contains(r.Err.Error(), identity) {
		t.Errorf("set: %v", r.Err)
	}
	if r := s.Registrar.Set(ctx, "11111111-1111-1111-1111-111111111111",
		w, updates(w, "passing", true))[0]; !consulutil.UnknownToken(r.Err) {
		t.Errorf("refresh with an unknown token: %v", r.Err)
	}
	if err := s.Registrar.Deregister(ctx, s.Token, w); err == nil || !strings.Contains(err.Error(), identity) {
		t.Errorf("deregister: %v", err)
	}
	if _, err := s.Registrar.Proxy(ctx, serviceToken(t, secured), w); consulutil.Classify(err) != retry.Permanent ||
		!strings.Contains(err.Error(), "Consul hides it from the token") {
		t.Errorf("proxy with a token that may read nothing: %v", err)
	}
}

func TestCatalogRefusesInvalidContentAtOnce(t *testing.T) {
	t.Parallel()
	refusesInvalidContent(t, catalogSubject(t, open.Require(t)))
}

// refusesInvalidContent: Consul answers with status 500, as if a server had failed.
func refusesInvalidContent(t *testing.T, s subject) {
	t.Helper()
	path := config.ExposePath{Path: "/a", ListenerPort: 1, LocalPathPort: 2}
	for name, change := range map[string]func(*workload.Workload){
		"same address of two upstreams": func(w *workload.Workload) {
			w.Proxy.Upstreams = []config.Upstream{{DestinationName: "a", LocalBindPort: 1},
				{DestinationName: "b", LocalBindPort: 1}}
		},
		"upstream with peer and datacenter": func(w *workload.Workload) {
			w.Proxy.Upstreams = []config.Upstream{{DestinationName: "a",
				LocalBindPort: 1, DestinationPeer: "p", Datacenter: "dc2"}}
		},
		"same port of two exposed paths": func(w *workload.Workload) {
			w.Proxy.Expose = &config.Expose{Paths: []config.ExposePath{path, path}}
		},
		"unspecified address":   func(w *workload.Workload) { w.Address = "0.0.0.0" },
		"meta key with a blank": func(w *workload.Workload) { w.Meta = map[string]string{"a b": "c"} },
		"meta key of Consul":    func(w *workload.Workload) { w.Meta = map[string]string{"consul-x": "c"} },
		"meta value too long": func(w *workload.Workload) {
			w.Meta = map[string]string{"a": strings.Repeat("x",
				600)}
		},
	} {
		w := s.Service(t, "web", "invalid")
		change(&w)
		err := s.Registrar.Register(t.Context(), s.Token, w)
		if consulutil.ClassifyNewToken(err) != retry.Permanent ||
			!strings.Contains(err.Error(), "correct service, proxy or gateway") {
			t.Errorf("%s: class %v of: %v", name, consulutil.ClassifyNewToken(err), err)
		}
	}
}

// TestCatalogProxyHasTheMeshWideDefaults: what the redirection of traffic and a
// bootstrap need.
func TestCatalogProxyHasTheMeshWideDefaults(t *testing.T) {
	t.Parallel()
	s := catalogSubject(t, open.Require(t))
	name := "defaults"
	entry := &api.ServiceConfigEntry{
		Kind: api.ServiceDefaults, Name: name, Protocol: "http",
		TransparentProxy: &api.TransparentProxyConfig{OutboundListenerPort: 15009},
		Expose: api.ExposeConfig{Paths: []api.ExposePath{{ListenerPort: 21500, Path: "/health",
			LocalPathPort: 9090}}},
	}
	if _, _, err := client(t, open, "").ConfigEntries().Set(entry, nil); err != nil {
		t.Fatal(err)
	}
	w := s.Service(t, name, "merged")
	register(t, s, w)
	p, err := s.Registrar.Proxy(context.Background(), "", w)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(p.Config["protocol"], p.OutboundListenerPort, p.ExposedPorts)
	if want := fmt.Sprint("http", 15009, []int{21500}); got != want {
		t.Errorf("protocol, outbound port and exposed ports are %s, want %s", got, want)
	}
}
