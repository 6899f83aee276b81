package registrar

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// servers records requests, and knows checks.
type servers struct {
	*httptest.Server
	requests []string // method, URI, token
	bodies   []json.RawMessage
	checks   map[string]health // by ID
	gone     string            // a service of which no check can be written
	version  string            // of the servers, 1.20.1 if empty
	refusal  map[string]answer // by path
}

type answer struct {
	status int
	body   string
}

func newServers(t *testing.T) *servers {
	s := &servers{checks: map[string]health{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.requests = append(s.requests,
		fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("X-Consul-Token")))
	s.bodies = append(s.bodies, body)
	refusal, refused := s.refusal[r.URL.Path]
	w.Header().Set("X-Consul-Default-ACL-Policy", "deny") // as Consul does
	switch {
	case refused:
		w.WriteHeader(refusal.status)
		fmt.Fprint(w, refusal.body)
	case r.URL.Path == "/v1/txn":
		s.txn(w, body)
	case strings.HasPrefix(r.URL.Path, "/v1/health/service/"):
		fmt.Fprint(w,
			`[{"Node":{"Datacenter":"dc2"},"Service":{"Kind":"connect-proxy","Service":"web-sidecar-proxy"}}]`)
	case s.gone != "" && strings.Contains(string(body), `"ServiceID":"`+s.gone+`"`) &&
		strings.Contains(string(body), `"Service":null`):
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "Unknown service ID '%s' for check ID 'x'", s.gone)
	case r.URL.Path == "/v1/catalog/service/consul":
		fmt.Fprintf(w, `[{"Node":"server-1","NodeMeta":{"consul-version":%q}}]`, cmp.Or(s.version, "1.20.1"))
	case r.URL.Path == "/v1/session/create":
		fmt.Fprint(w, `{"ID":"s1"}`)
	default:
		fmt.Fprint(w, "true")
	}
}

func (s *servers) txn(w http.ResponseWriter, body []byte) {
	var ops []struct {
		Check struct{ Check struct{ CheckID string } }
	}
	if err := json.Unmarshal(body, &ops); err != nil {
		panic(err)
	}
	var results, failed []string
	for i, op := range ops {
		id := op.Check.Check.CheckID
		if h, ok := s.checks[id]; ok {
			results = append(results,
				fmt.Sprintf(`{"Check":{"CheckID":%q,"Status":%q,"Output":%q}}`, id, h.status, h.output))
		} else {
			failed = append(failed, fmt.Sprintf(`{"OpIndex":%d,"What":"check %s on node n doesn't exist"}`, i, id))
		}
	}
	if len(failed) > 0 {
		w.WriteHeader(http.StatusConflict)
		results = nil
	}
	fmt.Fprintf(w, `{"Results":[%s],"Errors":[%s]}`, strings.Join(results, ","), strings.Join(failed, ","))
}

func (s *servers) registrar(t *testing.T) Registrar {
	t.Helper()
	client, err := consulutil.NewClient(consulutil.Options{Address: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return New(&config.Config{ConsulServers: &config.ConsulServers{}}, client)
}

// want compares the requests since the last call.
func (s *servers) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := gocmp.Diff(want, s.requests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.requests, s.bodies = nil, nil
}

// catalogWorkload returns a service with a task's minimum.
func catalogWorkload(t *testing.T, change func(*config.Config)) workload.Workload {
	t.Helper()
	cfg := &config.Config{
		ConsulServers:        &config.ConsulServers{Hosts: "h"},
		Service:              &config.Service{Name: "web", Port: 9090, Namespace: "ns", Partition: "part"},
		Proxy:                &config.Proxy{PublicListenerPort: 20000},
		HealthSyncContainers: []string{"app"},
	}
	change(cfg)
	w, err := workload.New(cfg, task(), "")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

const (
	reads         = "PUT /v1/txn?ns=ns&partition=part tok"
	registers     = "PUT /v1/catalog/register tok"
	readsVersions = "GET /v1/catalog/service/consul?stale= tok"
)

// TestCatalogRequests pins methods, paths, queries and tokens.
func TestCatalogRequests(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	r := s.registrar(t)
	ctx := context.Background()
	w := catalogWorkload(t, func(*config.Config) {})
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	try(r.Register(ctx, "tok", w))
	s.want(t, reads, registers, registers)
	for _, c := range w.SyncChecks {
		s.checks[c.ID] = health{"passing", "fine"}
	}
	try(r.Register(ctx, "tok", w))
	s.want(t, reads, registers, registers)
	_, err := r.Proxy(ctx, "tok", w)
	try(err)
	s.want(t, "GET /v1/health/service/web-sidecar-proxy?filter=Service.ID+%3D%3D+%22web-abc123-sidecar-proxy%22+and+"+
		"Node.Node+%3D%3D+%22arn%3Aaws%3Aecs%3Aus-west-2%3A123456789012%3Acluster%2Fprod%22&merge-central-config=&ns=ns&partition=part tok")
	try(r.Deregister(ctx, "tok", w))
	s.want(t, "PUT /v1/catalog/deregister tok", "PUT /v1/catalog/deregister tok")
}

// TestCatalogSetRequests: one write for all checks of a pass, and none at rest.
func TestCatalogSetRequests(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	r := s.registrar(t)
	w := catalogWorkload(t, func(*config.Config) {})
	all := func(refresh bool) (updates []Update) {
		for _, c := range w.SyncChecks {
			updates = append(updates, Update{Check: c, Status: "passing", Output: "fine", Refresh: refresh})
			s.checks[c.ID] = health{"passing", "fine"}
		}
		return updates
	}
	set := func(updates []Update, want ...Result) {
		t.Helper()
		got := r.Set(context.Background(), "tok", w, updates)
		for i := range got {
			got[i].Unbound = nil
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	ok, restored := Result{}, Result{Restored: true}
	const staleReads = "PUT /v1/txn?ns=ns&partition=part&stale= tok"

	set(all(false), ok, ok, ok)
	s.want(t, registers)
	set(all(true), ok, ok, ok)
	s.want(t, staleReads)

	updates := all(true)
	s.checks[w.SyncChecks[1].ID] = health{"critical", "fine"}
	set(updates, ok, ok, ok)
	if body := string(s.bodies[1]); strings.Count(body, `"CheckID"`) != 1 ||
		!strings.Contains(body,
			`"CheckID":"web-abc123-consul-dataplane","Name":"Consul dataplane readiness","Status":"passing"`) {
		t.Errorf("wrote %s", body)
	}
	s.want(t, staleReads, registers)

	// A change beside two refreshes.
	updates = all(true)
	updates[0].Refresh = false
	set(updates, ok, ok, ok)
	s.want(t, staleReads, registers)

	// The proxy has gone: all is registered again, with the statuses of the pass.
	updates = all(true)
	delete(s.checks, w.SyncChecks[2].ID)
	s.gone = w.Proxy.ID
	set(updates, ok, ok, restored)
	if body := string(s.bodies[5]); !strings.Contains(body,
		`"CheckID":"web-abc123-consul-dataplane","Name":"Consul dataplane readiness","Status":"passing"`) {
		t.Errorf("registered %s", body)
	}
	s.want(t, staleReads, staleReads, registers, reads, reads, registers, registers)
}

func TestCatalogRefreshIsSpread(t *testing.T) {
	t.Parallel()
	distinct := map[time.Duration]bool{}
	for range 100 {
		d := newCatalog(nil).Refresh()
		if d < 27*time.Second || d > 33*time.Second {
			t.Fatalf("refresh every %s", d)
		}
		distinct[d] = true
	}
	if len(distinct) < 50 {
		t.Errorf("%d of 100 tasks refresh in step", 101-len(distinct))
	}
}

// TestCatalogBodiesGolden pins the bodies of a start and an end.
func TestCatalogBodiesGolden(t *testing.T) {
	t.Parallel()
	gateway := func(g config.Gateway) func(*config.Config) {
		return func(cfg *config.Config) {
			g.LANAddress, g.WANAddress = &config.Address{Address: "10.9.9.9", Port: 9443},
				&config.Address{Address: "gw.example.com", Port: 8443}
			cfg.Gateway = &g
		}
	}
	for name, change := range map[string]func(*config.Config){
		"minimal": func(*config.Config) {},
		"everything": func(cfg *config.Config) {
			cfg.Service.Tags, cfg.Service.Meta = []string{"a", "b"}, map[string]string{"team": "x", "source": "mine"}
			cfg.Service.EnableTagOverride, cfg.Service.Weights = true, &config.Weights{Passing: 3, Warning: 1}
			cfg.TransparentProxy.Enabled = true
			cfg.Proxy = &config.Proxy{
				PublicListenerPort: 21000, LocalServiceAddress: "127.0.0.7", Config: map[string]any{"protocol": "http"},
				Upstreams: []config.Upstream{{
					DestinationName: "db", DestinationPeer: "east", LocalBindPort: 1234,
					MeshGateway: &config.MeshGateway{Mode: "local"},
				}},
				MeshGateway: &config.MeshGateway{Mode: "remote"},
				Expose: &config.Expose{Paths: []config.ExposePath{{ListenerPort: 21500, Path: "/health",
					LocalPathPort: 9090}}},
			}
		},
		"mesh-gateway": gateway(
			config.Gateway{Kind: "mesh-gateway", Name: "gw", Namespace: "default",
				Partition: "part", Tags: []string{"edge"}}),
		"terminating-gateway": gateway(
			config.Gateway{Kind: "terminating-gateway", Name: "gw",
				Proxy: &config.GatewayProxy{Config: map[string]any{"a": "b"}}}),
		"api-gateway": gateway(config.Gateway{Kind: "api-gateway", Name: "gw"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServers(t)
			r := s.registrar(t)
			w := catalogWorkload(t, change)
			ctx := context.Background()
			last := w.SyncChecks[len(w.SyncChecks)-1]
			if err := r.Register(ctx, "tok", w); err != nil {
				t.Fatal(err)
			}
			if result := r.Set(ctx, "tok", w,
				[]Update{{Check: last, Status: "passing", Output: "fine"}})[0]; result.Err != nil {
				t.Fatal(result.Err)
			}
			if err := r.Deregister(ctx, "tok", w); err != nil {
				t.Fatal(err)
			}
			var writes []json.RawMessage
			for i, request := range s.requests {
				if strings.HasPrefix(request, "PUT /v1/catalog/") {
					writes = append(writes, s.bodies[i])
				}
			}
			got, err := json.MarshalIndent(writes, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, "catalog-"+name+".json", append(got, '\n'))
		})
	}
}
