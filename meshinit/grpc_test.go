package meshinit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/bootstrap"
)

// TestGRPCResolve follows `consul connect envoy`: TLS for https, for a unix
// socket only with its own CA; names become addresses.
func TestGRPCResolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	grpcCA, httpCA := write("grpc.pem", "grpc CA\n"), write("http.pem", "http CA")
	many := filepath.Dir(write("many/a.pem", "A"))
	write("many/b.pem", "B\n")
	write("many/sub/c.pem", "C")
	tests := []struct {
		name string
		g    GRPC
		want bootstrap.GRPC
	}{
		{"default", GRPC{}, bootstrap.GRPC{Address: "localhost:8502"}},
		{"plain ignores CAs", GRPC{Address: "10.0.0.1:8502", CAFile: grpcCA, HTTPCAFile: httpCA},
			bootstrap.GRPC{Address: "10.0.0.1:8502"}},
		{"http", GRPC{Address: "http://127.0.0.1:1"}, bootstrap.GRPC{Address: "http://127.0.0.1:1"}},
		{"https with own CA", GRPC{Address: "https://127.0.0.1:8503", CAFile: grpcCA, HTTPCAFile: httpCA},
			bootstrap.GRPC{Address: "https://127.0.0.1:8503", CAPEM: "grpc CA\n"}},
		{"https with the HTTP CA", GRPC{Address: "https://127.0.0.1:8503", HTTPCAFile: httpCA},
			bootstrap.GRPC{Address: "https://127.0.0.1:8503", CAPEM: "http CA\n"}},
		{"https with a directory", GRPC{Address: "https://127.0.0.1:8503", CAPath: many},
			bootstrap.GRPC{Address: "https://127.0.0.1:8503", CAPEM: "A\nB\n"}},
		{"https with the HTTP directory", GRPC{Address: "https://127.0.0.1:8503", HTTPCAPath: many},
			bootstrap.GRPC{Address: "https://127.0.0.1:8503", CAPEM: "A\nB\n"}},
		{"unix socket", GRPC{Address: "unix:///run/consul.sock", HTTPCAFile: httpCA},
			bootstrap.GRPC{Address: "unix:///run/consul.sock"}},
		{"unix socket with TLS", GRPC{Address: "unix:///run/consul.sock", CAFile: grpcCA},
			bootstrap.GRPC{Address: "unix:///run/consul.sock", CAPEM: "grpc CA\n"}},
		{"IPv6", GRPC{Address: "https://[::1]:8503", CAFile: grpcCA},
			bootstrap.GRPC{Address: "https://[::1]:8503", CAPEM: "grpc CA\n"}},
		{"nonsense is for the bootstrap to refuse", GRPC{Address: "nonsense"}, bootstrap.GRPC{Address: "nonsense"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.g.resolve(context.Background())
			if err != nil || got != tt.want {
				t.Errorf("resolve = %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
	for name, g := range map[string]GRPC{
		"missing CA file": {Address: "https://127.0.0.1:8503", CAFile: dir + "/none"},
		"missing CA path": {Address: "https://127.0.0.1:8503", CAPath: dir + "/none"},
		"unknown host":    {Address: "no-such-host.invalid:8502"},
	} {
		if _, err := g.resolve(context.Background()); err == nil || !strings.Contains(err.Error(), "gRPC address") {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}

// TestHostNameBecomesAnAddress: Envoy's static cluster takes no names.
func TestHostNameBecomesAnAddress(t *testing.T) {
	t.Parallel()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	got, err := resolveHost(context.Background(), "http://"+name+":8502")
	if err != nil {
		t.Skipf("SKIPPED, NOT PROVEN: this machine cannot resolve its own name: %v", err)
	}
	if strings.Contains(got, name) || !strings.HasPrefix(got, "http://") || !strings.HasSuffix(got, ":8502") {
		t.Errorf("resolveHost = %s", got)
	}
}
