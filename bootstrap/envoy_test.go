package bootstrap

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestEnvoyAcceptsEveryBootstrap(t *testing.T) {
	testkit.RequireBinary(t, "envoy")
	for _, tc := range cases() {
		t.Run(tc.name, func(t *testing.T) {
			doc, err := Generate(tc.params)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, string(doc)); err != nil {
				t.Error(err)
			}
		})
	}
}

// The whole way with the rights of a service alone: the proxy's one answer has
// the mesh's access logs, and Envoy gets its listeners from Consul.
func TestConsulServesAnEnvoyStartedWithOurBootstrap(t *testing.T) {
	c := secured.Require(t)
	logs := &AccessLogs{Enabled: true, Type: "stderr"}
	setDefaults(t, c, bootCase{params: Params{Proxy: Proxy{AccessLogs: logs}}})
	for name, grpc := range map[string]GRPC{
		"tls":   {Address: "https://" + c.GRPCTLSAddr, CAPEM: caPEM},
		"plain": {Address: c.GRPCAddr},
	} {
		t.Run(name, func(t *testing.T) {
			p := fresh(bootCase{params: sidecar("web-live-"+name, object{keyPrometheus: freeAddr(t)})}).params
			service := *c
			service.Token = serviceToken(t, c, p.Proxy.Destination)
			p.Token, p.GRPC, p.AdminBind = service.Token, grpc, freeAddr(t)
			register(t, &service, bootCase{params: p})
			p.Proxy = fetch(t, &service, p.ProxyID)
			if diff := cmp.Diff(logs, p.Proxy.AccessLogs); diff != "" {
				t.Errorf("access logs (-want +got):\n%s", diff)
			}
			doc, err := Generate(p)
			if err != nil {
				t.Fatal(err)
			}
			log := runEnvoy(t, doc)
			waitFor(t, "http://"+p.AdminBind+"/listeners", "public_listener:", log)
			metrics := "http://" + p.Proxy.Config[keyPrometheus].(string)
			waitFor(t, metrics+"/metrics", fmt.Sprintf("consul_source_service=%q", p.Proxy.Destination), log)
		})
	}
}

// serviceToken returns a token as the auth method's binding rule gives it.
func serviceToken(t *testing.T, c *testkit.Consul, service string) string {
	t.Helper()
	var token struct{ SecretID string }
	call(t, c, http.MethodPut, "/v1/acl/token", object{
		"ServiceIdentities": list{object{"ServiceName": service}},
	}, &token)
	return token.SecretID
}

// runEnvoy runs until the end of the test and returns its log's path.
func runEnvoy(t *testing.T, doc []byte) string {
	t.Helper()
	dir := t.TempDir()
	file, logFile := filepath.Join(dir, "bootstrap.json"), filepath.Join(dir, "envoy.log")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testkit.RequireBinary(t, "envoy"), "-c", file, "--use-dynamic-base-id",
		"--concurrency", "1", "--log-path", logFile)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return logFile
}

// waitFor asks until the answer contains want.
func waitFor(t *testing.T, url, want, logFile string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last string
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if last = string(body); strings.Contains(last, want) {
				return
			}
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(logFile)
			t.Fatalf("%s never had %q; last answer %.500q; log:\n%s", url, want, last, log)
		case <-tick.C:
		}
	}
}
