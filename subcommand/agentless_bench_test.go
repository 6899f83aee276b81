package subcommand

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// BenchmarkMeshInitAtServers runs mesh-init of a task without an agent, from start to exit.
func BenchmarkMeshInitAtServers(b *testing.B) {
	program := filepath.Join(testkit.Programs(b), "consul-ecs")
	for _, login := range []bool{false, true} {
		b.Run(fmt.Sprintf("login=%v", login), func(b *testing.B) {
			w := newNoAgentWorld(b, time.Hour)
			env := w.vars
			if !login {
				env = append(w.vars, "CONSUL_HTTP_TOKEN="+testkit.ManagementToken)
			}
			var took []time.Duration
			for range b.N {
				w.empty()
				begin := time.Now()
				exits(b, testkit.StartProcess(b, testkit.ProcessOptions{Env: env, Quiet: true}, program, "mesh-init"),
					0)
				took = append(took, time.Since(begin))
			}
			reportTimes(b, "mesh-init", took)
		})
	}
}

// BenchmarkLateServers starts mesh-init, with login, seconds before the servers listen, and
// measures from there.
func BenchmarkLateServers(b *testing.B) {
	program := filepath.Join(testkit.Programs(b), "consul-ecs")
	w := newNoAgentWorld(b, time.Hour)
	port := check(testkit.FreePorts(1))(b)[0]
	address := fmt.Sprintf("127.0.0.1:%d", port)
	before, after, _ := strings.Cut(w.vars[1], `"http":{"port":`)
	there, after, _ := strings.Cut(after, ",")
	w.vars[1] = fmt.Sprintf(`%s"http":{"port":%d,%s`, before, port, after)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:" + there})
	var took []time.Duration
	for range b.N {
		w.empty()
		p := testkit.StartProcess(b, testkit.ProcessOptions{Env: w.vars, Quiet: true}, program, "mesh-init")
		<-time.After(2*time.Second + rand.N(4*time.Second))
		l, err := net.Listen("tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		servers := &http.Server{Handler: proxy}
		go servers.Serve(l)
		exits(b, p, 0)
		took = append(took, time.Since(begin))
		servers.Close()
	}
	reportTimes(b, "mesh-init", took)
}

// BenchmarkHealthAtServers changes the ECS health of the proxy at moments spread over
// health-sync's tick until the catalog has it.
func BenchmarkHealthAtServers(b *testing.B) {
	program := filepath.Join(testkit.Programs(b), "consul-ecs")
	w := newNoAgentWorld(b, time.Hour)
	healthy := fmt.Sprintf(noAgentTask, "RUNNING")
	exits(b, testkit.StartProcess(b, testkit.ProcessOptions{Env: w.vars, Quiet: true}, program, "mesh-init"), 0)
	p := testkit.StartProcess(b, testkit.ProcessOptions{Env: w.vars, Quiet: true}, program, "health-sync")
	var index uint64
	until := func(status string) {
		for b.Context().Err() == nil {
			checks, meta, err := w.admin.Health().Checks("web", &api.QueryOptions{WaitIndex: index,
				WaitTime: 5 * time.Second})
			if err != nil {
				b.Fatal(err)
			}
			index = meta.LastIndex
			if checks.AggregatedStatus() == status {
				return
			}
		}
	}
	until(api.HealthPassing)
	var took []time.Duration
	for i := range b.N {
		<-time.After(time.Second + rand.N(time.Second))
		doc, status := healthy, api.HealthPassing
		if i%2 == 0 {
			doc, status = strings.Replace(healthy, "HEALTHY", "UNHEALTHY", 1), api.HealthCritical
		}
		w.says(200, doc)
		begin := time.Now()
		until(status)
		took = append(took, time.Since(begin))
		for len(w.asked) > 0 { // or the endpoint stops
			<-w.asked
		}
	}
	b.ReportMetric(residentMB(b, p.PID), "MB-RSS")
	reportTimes(b, "health", took)
}

// BenchmarkFirstRequestAtServers starts Envoy and health-sync of a task without an agent,
// which ECS has as healthy, after mesh-init, and measures until the task's first request
// through the mesh, from its own Envoy to itself.
func BenchmarkFirstRequestAtServers(b *testing.B) {
	program, envoy := filepath.Join(testkit.Programs(b), "consul-ecs"), testkit.RequireBinary(b, "envoy")
	app := httptest.NewServer(http.NotFoundHandler())
	b.Cleanup(app.Close)
	ports := check(testkit.FreePorts(2))(b)
	w := newNoAgentWorld(b, time.Hour)
	w.vars[1] = strings.Replace(w.vars[1], `8080},"proxy":{`,
		fmt.Sprintf(`%d},"proxy":{"publicListenerPort":%d,"upstreams":[{"destinationName":"web","localBindPort":%d}],`,
			app.Listener.Addr().(*net.TCPAddr).Port, ports[0], ports[1]), 1)
	_, _, err := w.admin.ConfigEntries().Set(&api.ServiceIntentionsConfigEntry{
		Kind: api.ServiceIntentions, Name: "web",
		Sources: []*api.SourceIntention{{Name: "web", Action: api.IntentionActionAllow}},
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answers := func() bool {
		req := check(http.NewRequestWithContext(b.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/",
			ports[1]), http.NoBody))(b)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusNotFound
	}
	var took []time.Duration
	for range b.N {
		w.empty()
		w.says(200, strings.ReplaceAll(fmt.Sprintf(noAgentTask, "RUNNING"), "10.0.0.9", "127.0.0.1"))
		options := testkit.ProcessOptions{Env: w.vars, Quiet: true}
		exits(b, testkit.StartProcess(b, options, program, "mesh-init"), 0)
		begin := time.Now()
		proxy := testkit.StartProcess(b, options, program, "envoy-entrypoint", envoy, "--config-path",
			filepath.Join(w.dir, workload.FileBootstrap), "--use-dynamic-base-id", "--log-level", "error")
		healthSync := testkit.StartProcess(b, options, program, "health-sync")
		for !answers() {
			if time.Since(begin) > testkit.Patience {
				b.Fatalf("no answer through the mesh in %s", testkit.Patience)
			}
			<-time.After(10 * time.Millisecond)
		}
		took = append(took, time.Since(begin))
		w.stop(healthSync)
		proxy.Signal(syscall.SIGTERM)
		exits(b, proxy, 0)
	}
	reportTimes(b, "first-request", took)
}

// empty removes what mesh-init has written.
func (w *noAgentWorld) empty() {
	files, err := os.ReadDir(w.dir)
	for _, f := range files {
		if err == nil {
			err = os.Remove(filepath.Join(w.dir, f.Name()))
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func reportTimes(b *testing.B, name string, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(0, "ns/op") // means nothing here
	b.ReportMetric(took[len(took)/2].Seconds(), name+"-median-s")
	b.ReportMetric(took[(len(took)*99-1)/100].Seconds(), name+"-p99-s")
}
