package subcommand

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// A task whose only address is one of IPv6 is in the mesh, and the servers listen on IPv6
// only: login, registration, xDS, Envoy's listeners, a request from its Envoy to itself,
// and health.
func TestTaskWithIPv6OnlyIsInTheMesh(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	t.Run("1.20.1", func(t *testing.T) { ipv6Task(t, testkit.ConsulOptions{ACL: true, IPv6: true}) })
	t.Run("1.22.2", func(t *testing.T) {
		testkit.Long(t)
		ipv6Task(t, testkit.ConsulOptions{ACL: true, IPv6: true, Newest: true})
	})
}

func ipv6Task(t *testing.T, o testkit.ConsulOptions) {
	envoy := testkit.RequireBinary(t, "envoy")
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	application := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		io.WriteString(w, "hello")
	})}
	t.Cleanup(func() { application.Close() })
	go application.Serve(l)
	w := newNoAgentWorldAt(t, time.Hour, o)
	task := strings.Replace(noAgentTask, `"IPv4Addresses":["10.0.0.9"]`, `"IPv6Addresses":["::1"]`, 1)
	w.says(http.StatusOK, fmt.Sprintf(task, "RUNNING"))
	w.vars[1] = strings.NewReplacer(`"port":8080`, fmt.Sprintf(`"port":%d`, l.Addr().(*net.TCPAddr).Port),
		`"mode":"direct"`,
		`"mode":"direct","localServiceAddress":"::1","upstreams":[{"destinationName":"web","localBindAddress":"::1","localBindPort":9191}]`,
	).Replace(w.vars[1])
	_, _, err = w.admin.ConfigEntries().Set(&api.ServiceIntentionsConfigEntry{
		Kind: api.ServiceIntentions, Name: "web",
		Sources: []*api.SourceIntention{{Name: "web", Action: api.IntentionActionAllow}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	exits(t, consulECS(t, w.vars, "mesh-init"), 0)
	proxy := consulECS(t, w.vars, "envoy-entrypoint", envoy, "--config-path",
		filepath.Join(w.dir, workload.FileBootstrap), "--use-dynamic-base-id", "--log-level", "error")
	healthSync := consulECS(t, w.vars, "health-sync")
	testkit.Eventually(t, "an answer through the mesh",
		func() bool { return answer(t, "http://[::1]:9191/") == "hello" })
	found, _, err := w.admin.Health().Service("web-sidecar-proxy", "", true, nil)
	if err != nil || len(found) != 1 || found[0].Service.Address != "::1" || found[0].Service.Port != 20000 {
		t.Errorf("proxies = %+v, %v, want one at ::1, port 20000", found, err)
	}
	if got := answer(t, "http://127.0.0.1:19000/listeners"); !strings.Contains(got, ":20000::[::1]:20000\n") {
		t.Errorf("listeners = %s", got)
	}
	w.says(http.StatusOK, fmt.Sprintf(task, "STOPPED"))
	for _, p := range []*testkit.Process{healthSync, proxy} {
		p.Signal(syscall.SIGTERM)
	}
	exits(t, healthSync, 0)
	exits(t, proxy, 0)
	if found, _, err := w.admin.Catalog().Service("web-sidecar-proxy", "", nil); err != nil || len(found) != 0 {
		t.Errorf("left in the catalog: %+v, %v", found, err)
	}
}

// answer returns the answer to a GET on a new connection; empty if there is none.
func answer(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}
