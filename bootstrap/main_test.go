package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// plain has no ACLs; secured has ACLs and serves gRPC over TLS.
var (
	plain, secured *testkit.Consul
	caFile, caPEM  string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bootstrap-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = start(dir)
	}
	defer func() { plain.Stop(); secured.Stop() }()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func start(dir string) error {
	tls, err := testkit.ServeGRPCOverTLS(dir)
	if err != nil {
		return err
	}
	caFile = filepath.Join(dir, "ca.pem")
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	caPEM = string(ca)
	if plain, err = testkit.StartConsul(testkit.ConsulOptions{}); err != nil {
		return err
	}
	secured, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true, HCL: tls})
	return err
}

// call makes one request to the agent and decodes the answer into out.
func call(t testing.TB, c *testkit.Consul, method, path string, body, out any) {
	t.Helper()
	in, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	// Not t.Context(): clean-ups call, too.
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.HTTPAddr+path, bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Consul-Token", c.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, answer)
		}
	}
}

// fetch maps the agent's one answer to Proxy.
func fetch(t testing.TB, c *testkit.Consul, id string) Proxy {
	t.Helper()
	var s api.AgentService
	call(t, c, http.MethodGet, "/v1/agent/service/"+id, nil, &s)
	p := Proxy{
		Kind: string(s.Kind), Service: s.Service, Destination: s.Proxy.DestinationServiceName,
		Datacenter: s.Datacenter, Namespace: s.Namespace, Partition: s.Partition, Config: s.Proxy.Config,
	}
	if a := s.Proxy.AccessLogs; a != nil {
		p.AccessLogs = &AccessLogs{
			Enabled: a.Enabled, Type: string(a.Type), Path: a.Path,
			JSONFormat: a.JSONFormat, TextFormat: a.TextFormat,
		}
	}
	return p
}

// command runs Consul's own bootstrap command against the agent at httpAddr
// with no other environment, and returns stdout alone.
func command(t testing.TB, httpAddr, token string, env map[string]string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.RequireBinary(t, "consul"),
		append([]string{"connect", "envoy", "-bootstrap"}, args...)...)
	cmd.Env = []string{"CONSUL_HTTP_ADDR=" + httpAddr, "CONSUL_HTTP_TOKEN=" + token}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s%s", err, stderr.String(), stdout.String())
	}
	return stdout.String(), nil
}

// tree decodes JSON: order of keys and white space mean nothing.
func tree(t testing.TB, doc string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("not JSON: %v:\n%s", err, doc)
	}
	return v
}

// validate lets the real Envoy judge a bootstrap.
func validate(t testing.TB, doc string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testkit.RequireBinary(t, "envoy"),
		"--mode", "validate", "--log-level", "error", "-c", file)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func freeAddr(t testing.TB) string {
	t.Helper()
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0]))
}
