package subcommand

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// relayAddress is where Envoy finds the relay.
const relayAddress = "127.0.0.1:8502"

// directTask is a task with proxy.mode direct, after mesh-init.
type directTask struct {
	*testing.T
	dir string
	env []string
}

// newDirectTask starts a relay to a server that answers each stream with the token that it
// got.
func newDirectTask(t *testing.T) directTask {
	return newDirectTaskOf(t, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		io.WriteString(w, r.Header.Get("X-Consul-Token"))
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
}

func newDirectTaskOf(t *testing.T, dns *bootstrap.RelayDNS, handler http.HandlerFunc) directTask {
	t.Helper()
	m := newMetadata(t)
	m.says(http.StatusOK, stopped)
	d := directTask{T: t, dir: t.TempDir(), env: m.env()}
	server := &http.Server{Protocols: new(http.Protocols), Handler: handler}
	server.Protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go server.Serve(l)
	off := false
	settings, err := bootstrap.Relay{
		Servers: config.ConsulServers{
			Hosts: "127.0.0.1", SkipServerWatch: true,
			GRPC: config.ServerGRPC{Port: l.Addr().(*net.TCPAddr).Port, TLS: &off},
		},
		TokenFile: filepath.Join(d.dir, workload.FileServiceToken), DNS: dns,
	}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	d.write(workload.FileRelay, string(settings))
	d.write(workload.FileServiceToken, "first")
	d.write(workload.FileBootstrap,
		`{"admin":{"address":{"socket_address":{"address":"127.0.0.1","port_value":19000}}}}`)
	return d
}

func (d directTask) write(name, text string) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

// args run the worker in Envoy's place, without a wait for mesh-init.
func (d directTask) args() []string {
	return append([]string{"envoy-entrypoint", "-start-timeout", "0"},
		append(worker(), "--config-path", filepath.Join(d.dir, workload.FileBootstrap))...)
}

// fails runs envoy-entrypoint, which ends at once, and returns what it prints.
func (d directTask) fails(wantCode int) string {
	d.Helper()
	command := testkit.SelfArgs("consul-ecs", d.args()...)
	cmd := exec.CommandContext(d.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), d.env...)
	output, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != wantCode {
		d.Errorf("exit code %d, want %d:\n%s", code, wantCode, output)
	}
	return string(output)
}

// token returns the one with which the relay calls the server.
func (d directTask) token() (string, error) {
	d.Helper()
	req, err := http.NewRequestWithContext(d.Context(), http.MethodPost,
		"http://"+relayAddress+"/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
		http.NoBody)
	if err != nil {
		d.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// The relay has a fixed port, so all of it is one test in its own network.
func TestEnvoyEntrypointRelaysXDS(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	t.Run("with the token that the file holds", func(t *testing.T) {
		d := newDirectTask(t)
		p := consulECS(t, d.env, d.args()...)
		p.Expect("ready")
		for _, want := range []string{"first", "second"} {
			d.write(workload.FileServiceToken, want)
			testkit.Eventually(t, "the server gets the token "+want, func() bool {
				got, err := d.token()
				return err == nil && got == want
			})
		}
		p.Signal(syscall.SIGTERM)
		exits(t, p, 55)
		if _, err := d.token(); err == nil {
			t.Error("the relay outlives Envoy")
		}
	})
	t.Run("until the servers refuse Envoy permanently", func(t *testing.T) {
		d := newDirectTaskOf(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "3")
			w.Header().Set("Grpc-Message", "Envoy 1.20.0 is too old and is not supported by Consul")
		})
		p := consulECS(t, d.env, d.args()...)
		p.Expect("ready")
		if _, err := d.token(); err != nil {
			t.Fatal(err)
		}
		p.Expect("got terminated")
		exits(t, p, 2)
	})
	t.Run("not without settings", func(t *testing.T) {
		d := newDirectTask(t)
		if err := os.Remove(filepath.Join(d.dir, workload.FileRelay)); err != nil {
			t.Fatal(err)
		}
		p := consulECS(t, d.env, d.args()...)
		p.Expect("ready")
		if conn, err := net.Dial("tcp", relayAddress); err == nil {
			conn.Close()
			t.Error("there is a relay")
		}
		p.Stdin.Close()
		exits(t, p, 0)
	})
	t.Run("not with broken settings", func(t *testing.T) {
		d := newDirectTask(t)
		d.write(workload.FileRelay, "{")
		if got := d.fails(1); !strings.Contains(got, "parse settings of the xDS relay") {
			t.Errorf("printed %s", got)
		}
	})
	t.Run("not where another program listens", func(t *testing.T) {
		d := newDirectTask(t)
		l, err := net.Listen("tcp", relayAddress)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		got := d.fails(1)
		for _, want := range []string{relayAddress, "address already in use",
			"without an agent in the task that port is the relay's"} {
			if !strings.Contains(got, want) {
				t.Errorf("does not name %q: %s", want, got)
			}
		}
	})
}

// The port of DNS is fixed, too.
func TestEnvoyEntrypointAnswersDNS(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	const address = "127.0.0.1:8600"
	settings := &bootstrap.RelayDNS{Port: 8600, Namespace: "team"}
	asked := make(chan string, 1)
	newTask := func(t *testing.T) directTask {
		return newDirectTaskOf(t, settings, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hashicorp.consul.dns.DNSService/Query" {
				select {
				case asked <- r.Header.Get("X-Consul-Token") + " " + r.Header.Get("X-Consul-Namespace"):
				default:
				}
			}
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "14")
		})
	}
	ask := func(network string) (int, error) {
		client := dns.Client{Net: network, Timeout: testkit.Patience}
		answer, _, err := client.Exchange(new(dns.Msg).SetQuestion("api.virtual.consul.", dns.TypeA), address)
		if err != nil {
			return 0, err
		}
		return answer.Rcode, nil
	}
	t.Run("until Envoy has ended", func(t *testing.T) {
		d := newTask(t)
		p := consulECS(t, d.env, append([]string{"envoy-entrypoint", "-start-timeout", "0"},
			append(worker("deaf"), "--config-path", filepath.Join(d.dir, workload.FileBootstrap))...)...)
		p.Expect("ready")
		wantAnswers := func() {
			t.Helper()
			for _, network := range []string{"udp", "tcp"} {
				if code, err := ask(network); err != nil || code != dns.RcodeServerFailure {
					t.Errorf("%s: code %d, %v", network, code, err)
				}
			}
		}
		testkit.Eventually(t, "the server is asked", func() bool {
			_, err := ask("udp")
			return err == nil && len(asked) > 0
		})
		if got := <-asked; got != "first team" {
			t.Errorf("the server is asked with %q", got)
		}
		wantAnswers()
		p.Signal(syscall.SIGTERM)
		p.Expect("got terminated")
		wantAnswers()
		p.Stdin.Close()
		exits(t, p, 0)
		if _, err := ask("tcp"); err == nil {
			t.Error("DNS outlives Envoy")
		}
	})
	for _, network := range []string{"udp", "tcp"} {
		t.Run("not where another program listens on "+network, func(t *testing.T) {
			d := newTask(t)
			other, err := listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			got := d.fails(1)
			for _, want := range []string{address, "address already in use",
				"with transparentProxy.consulDNS that port is Consul DNS's"} {
				if !strings.Contains(got, want) {
					t.Errorf("does not name %q: %s", want, got)
				}
			}
		})
	}
}

// listen takes a port over UDP or TCP.
func listen(network, address string) (io.Closer, error) {
	if network == "udp" {
		return net.ListenPacket(network, address)
	}
	return net.Listen(network, address)
}

// An absent or empty file would make the stream one of the anonymous token.
func TestRelayTokenNeedsTheConfiguredFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "service-token")
	token := relayToken(bootstrap.Relay{TokenFile: path})
	for _, text := range []string{"", " \n"} {
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := token(); err == nil || !strings.Contains(err.Error(), path+" is missing or empty") {
			t.Errorf("file %q: got %v", text, err)
		}
	}
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := token()
	if err != nil {
		t.Fatal(err)
	}
	if got != "secret" {
		t.Errorf("got %q", got)
	}
	if got, err := relayToken(bootstrap.Relay{})(); got != "" || err != nil {
		t.Errorf("without a file: %q, %v; want no token", got, err)
	}
}

// consul-dataplane's Envoy has the default admin address.
func TestEnvoyEntrypointDrainsBelowConsulDataplane(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	m := newMetadata(t)
	m.says(http.StatusOK, running)
	l, err := net.Listen("tcp", "127.0.0.1:19000")
	if err != nil {
		t.Fatal(err)
	}
	drained := make(chan string, 10)
	admin := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		drained <- r.Method + " " + r.URL.RequestURI()
	})}
	t.Cleanup(func() { admin.Close() })
	go admin.Serve(l)
	text, err := bootstrap.Dataplane{Servers: config.ConsulServers{Hosts: "127.0.0.1"}, NodeName: "node",
		ProxyID: "web-1-sidecar-proxy"}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), workload.FileDataplane)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := wrapEnvoy(t, m.env(), []string{"-start-timeout", "0"}, worker("-config-file", path)...)
	p.Expect("ready")
	p.Signal(syscall.SIGTERM)
	select {
	case got := <-drained:
		if got != "POST /drain_listeners?inboundonly&graceful&skip_exit" {
			t.Errorf("asked %q", got)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("not drained")
	}
	m.reads(t, 2)
	if line, ok := p.Try(); ok {
		t.Errorf("consul-dataplane got a signal while the application runs: %q", line)
	}
	m.says(http.StatusOK, stopped)
	p.Expect("got terminated")
	exits(t, p, 55)
}
