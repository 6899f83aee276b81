package subcommand

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/servers"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	loopNode     = "arn:aws:ecs:us-east-1:123456789012:cluster/static"
	loopUpstream = 9000
)

// loopTask is a task, after mesh-init, that calls itself through its Envoy, by mTLS.
type loopTask struct {
	*testing.T
	*servers.Host
	admin   *api.Client
	appPort int
	client  *http.Client
	wrapper *testkit.Process
}

// newLoopTask starts the task, and waits until it reaches itself.
func newLoopTask(t *testing.T, v *servers.VPC, cluster *servers.Cluster) *loopTask {
	t.Helper()
	k := &loopTask{T: t, Host: v.Host("task"), admin: cluster.Servers[0].Admin}
	k.client = k.Client()
	k.client.Timeout = time.Second
	l, err := k.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	app := &httptest.Server{Listener: l, Config: &http.Server{Handler: answer}}
	app.Start()
	t.Cleanup(app.Close)
	k.appPort = l.Addr().(*net.TCPAddr).Port
	k.register("loop-1", k.IP.String())
	testkit.Eventually(t, "a new leader takes intentions", func() bool {
		_, _, err := k.admin.ConfigEntries().Set(&api.ServiceIntentionsConfigEntry{
			Kind: api.ServiceIntentions, Name: "loop",
			Sources: []*api.SourceIntention{{Name: "loop", Action: api.IntentionActionAllow}},
		}, nil)
		return err == nil
	})
	token, _, err := k.admin.ACL().TokenCreate(&api.ACLToken{
		ServiceIdentities: []*api.ACLServiceIdentity{{ServiceName: "loop"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.start(token.SecretID, cluster.Addresses())
	testkit.Eventually(t, "the task calls itself", func() bool { return k.call() == nil })
	return k
}

// register writes an instance of the service and its sidecar.
func (k *loopTask) register(id, address string) {
	k.Helper()
	for _, s := range []*api.AgentService{
		{ID: id, Service: "loop", Port: k.appPort, Address: address},
		{
			ID: id + "-sidecar-proxy", Service: "loop-sidecar-proxy", Kind: api.ServiceKindConnectProxy,
			Port: 20000, Address: address,
			Proxy: &api.AgentServiceConnectProxyConfig{
				DestinationServiceName: "loop", DestinationServiceID: id, LocalServicePort: k.appPort,
				Upstreams: []api.Upstream{{DestinationName: "loop", LocalBindPort: loopUpstream}},
			},
		},
	} {
		_, err := k.admin.Catalog().Register(&api.CatalogRegistration{
			Node: loopNode, Address: "127.0.0.1", SkipNodeUpdate: true, Service: s,
		}, nil)
		if err != nil {
			k.Fatal(err)
		}
	}
}

// start writes what mesh-init writes, and runs envoy-entrypoint.
func (k *loopTask) start(token string, addresses []string) {
	k.Helper()
	doc, err := bootstrap.Generate(bootstrap.Params{
		Proxy: bootstrap.Proxy{
			Kind: bootstrap.ConnectProxy, Service: "loop-sidecar-proxy", Destination: "loop", Datacenter: "dc1",
		},
		ProxyID: "loop-1-sidecar-proxy", NodeName: loopNode,
		GRPC:      bootstrap.GRPC{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(workload.AgentGRPCPort))},
		AdminBind: bootstrap.DefaultAdminBind,
	})
	if err != nil {
		k.Fatal(err)
	}
	off, dir := false, k.TempDir()
	settings, err := bootstrap.Relay{
		Servers: config.ConsulServers{
			Hosts: strings.Join(addresses, ","), SkipServerWatch: true,
			HTTP: config.ServerHTTP{Port: servers.HTTPPort, HTTPS: off},
			GRPC: config.ServerGRPC{Port: servers.GRPCPort, TLS: &off},
		},
		TokenFile: filepath.Join(dir, workload.FileServiceToken),
	}.JSON()
	if err != nil {
		k.Fatal(err)
	}
	for name, text := range map[string][]byte{
		workload.FileBootstrap:    doc,
		workload.FileRelay:        settings,
		workload.FileServiceToken: []byte(token),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			k.Fatal(err)
		}
	}
	args := testkit.SelfArgs("consul-ecs", "envoy-entrypoint", "-start-timeout", "0",
		testkit.RequireBinary(k, "envoy"), "--config-path", filepath.Join(dir, workload.FileBootstrap),
		"--disable-hot-restart", "--concurrency", "1", "--log-level", "error")
	k.wrapper = k.Host.Run(testkit.ProcessOptions{Env: []string{"ECS_CONTAINER_METADATA_URI_V4="}}, args...)
}

// call sends a request by way of the task's Envoy, twice.
func (k *loopTask) call() error {
	text, err := k.get(fmt.Sprintf("http://127.0.0.1:%d/", loopUpstream))
	if err == nil && text != "ok" {
		err = fmt.Errorf("answered %q", text)
	}
	return err
}

func (k *loopTask) get(url string) (string, error) {
	resp, err := k.client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// startsAgain kills Envoy while no server answers, and waits until the task calls itself again.
func (k *loopTask) startsAgain() {
	k.Helper()
	var pids []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", k.wrapper.PID))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			pid, _ := strconv.Atoi(word)
			pids = append(pids, pid)
		}
	}
	if len(pids) != 1 {
		k.Fatalf("envoy-entrypoint has the children %v, want one", pids)
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		k.Fatal(err)
	}
	testkit.Eventually(k, "envoy has ended", func() bool { return k.call() != nil })
	meet(k.T, aim{2 * time.Second, "requests flow again", func() bool { return k.call() == nil }})
}

// learns waits until Envoy has an instance that is registered now.
func (k *loopTask) learns(id, address string) {
	k.Helper()
	k.register(id, address)
	start := time.Now()
	testkit.Eventually(k, "envoy has the instance at "+address, func() bool {
		text, err := k.get("http://" + bootstrap.DefaultAdminBind + "/clusters")
		return err == nil && strings.Contains(text, address+":20000::")
	})
	k.Logf("envoy had a new instance after %s", time.Since(start))
}

func TestEnvoyStartsWhileTheServerIsFrozen(t *testing.T) {
	t.Parallel()
	v := servers.NewVPC(t)
	cluster := v.Start(1, "consul")
	k := newLoopTask(t, v, cluster)
	cluster.Servers[0].Pause()
	k.startsAgain()
	cluster.Servers[0].Resume()
	k.learns("loop-2", "10.9.9.2")
}

func TestEnvoyStartsWhileTheServerIsDown(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	v := servers.NewVPC(t)
	cluster := v.Start(1, "consul")
	k := newLoopTask(t, v, cluster)
	cluster.Servers[0].Kill()
	k.startsAgain()
	cluster.Servers[0].Restart()
	k.learns("loop-2", "10.9.9.2")
}
