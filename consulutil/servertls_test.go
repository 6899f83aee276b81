package consulutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestServerTLS(t *testing.T) {
	t.Parallel()
	on, off := true, false
	defaults := config.ServerDefaults{TLS: true, CACertFile: "/default.pem", TLSServerName: "default"}
	for name, tt := range map[string]struct {
		c          config.ConsulServers
		pem        string
		http, grpc ServerTLS
	}{
		"nothing but hosts": {
			config.ConsulServers{Hosts: "consul.example.com", Defaults: config.ServerDefaults{TLS: true},
				HTTP: config.ServerHTTP{HTTPS: true}}, "",
			ServerTLS{Enabled: true, ServerName: "consul.example.com"},
			ServerTLS{Enabled: true, ServerName: "consul.example.com"},
		},
		"a command is no name": {
			config.ConsulServers{Hosts: "exec=discover", Defaults: config.ServerDefaults{TLS: true},
				HTTP: config.ServerHTTP{HTTPS: true}}, "",
			ServerTLS{Enabled: true}, ServerTLS{Enabled: true},
		},
		"defaults": {
			config.ConsulServers{Hosts: "h", Defaults: defaults, HTTP: config.ServerHTTP{HTTPS: true}}, "",
			ServerTLS{Enabled: true, CAFile: "/default.pem", ServerName: "default"},
			ServerTLS{Enabled: true, CAFile: "/default.pem", ServerName: "default"},
		},
		"own": {
			config.ConsulServers{
				Hosts: "h", Defaults: defaults,
				HTTP: config.ServerHTTP{HTTPS: true, CACertFile: "/http.pem", TLSServerName: "http"},
				GRPC: config.ServerGRPC{CACertFile: "/grpc.pem", TLSServerName: "grpc"},
			}, "",
			ServerTLS{Enabled: true, CAFile: "/http.pem", ServerName: "http"},
			ServerTLS{Enabled: true, CAFile: "/grpc.pem", ServerName: "grpc"},
		},
		"text before files": {
			config.ConsulServers{Hosts: "h", Defaults: defaults,
				HTTP: config.ServerHTTP{HTTPS: true, CACertFile: "/http.pem"}}, " text\n",
			ServerTLS{Enabled: true, CAPEM: "text", ServerName: "default"},
			ServerTLS{Enabled: true, CAPEM: "text", ServerName: "default"},
		},
		"https alone decides for HTTP": {
			config.ConsulServers{Hosts: "h", Defaults: defaults, HTTP: config.ServerHTTP{TLS: &on},
				GRPC: config.ServerGRPC{TLS: &off}}, "text",
			ServerTLS{}, ServerTLS{},
		},
		"gRPC on against the default": {
			config.ConsulServers{Hosts: "h", HTTP: config.ServerHTTP{HTTPS: true, TLS: &off},
				GRPC: config.ServerGRPC{TLS: &on}}, "",
			ServerTLS{Enabled: true, ServerName: "h"}, ServerTLS{Enabled: true, ServerName: "h"},
		},
	} {
		if got := httpTLS(tt.c, tt.pem); got != tt.http {
			t.Errorf("%s: HTTP %+v, want %+v", name, got, tt.http)
		}
		s := newServers(t, ServersOptions{Config: tt.c, GRPCCAPEM: tt.pem})
		if got := s.GRPCTLS(); got != tt.grpc {
			t.Errorf("%s: gRPC %+v, want %+v", name, got, tt.grpc)
		}
	}
}

func TestServerTLSConfig(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte(testkit.OtherCA), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := (ServerTLS{}).Config(); c != nil || err != nil {
		t.Errorf("off: %v, %v", c, err)
	}
	for name, tls := range map[string]ServerTLS{
		"text": {Enabled: true, CAPEM: testkit.OtherCA, ServerName: "n"},
		"file": {Enabled: true, CAFile: file, ServerName: "n"},
	} {
		c, err := tls.Config()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		testkit.Equal(t, name+": server name", c.ServerName, "n")
		testkit.Equal(t, name+": has certificates", c.RootCAs != nil, true)
		testkit.Equal(t, name+": verification is off", c.InsecureSkipVerify, false)
	}
	c, err := (ServerTLS{Enabled: true}).Config()
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "has other certificates than the system's", c.RootCAs != nil, false)
	testkit.Equal(t, "server name", c.ServerName, "")
}

// The CA file may be written by another container; the text of a variable stays wrong.
func TestCAOfServersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "ca.pem")
	c := config.ConsulServers{Hosts: "127.0.0.1", Defaults: config.ServerDefaults{TLS: true, CACertFile: missing},
		HTTP: config.ServerHTTP{HTTPS: true}}
	late := newServers(t, ServersOptions{Config: c})
	wrong := newServers(t, ServersOptions{Config: c, HTTPSCAPEM: "x", GRPCCAPEM: "x"})
	for name, of := range map[string]func(*Servers) error{
		"HTTP": func(s *Servers) error { _, err := NewClient(Options{Servers: s}); return err },
		"gRPC": func(s *Servers) error { _, err := s.GRPCTLS().Config(); return err },
	} {
		err := of(late)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: missing file: %v, want ErrNotExist and its name", name, err)
		}
		if class := Classify(err); class != retry.NotYet {
			t.Errorf("%s: missing file: %v, class %v", name, err, class)
		}
		if err := of(wrong); Classify(err) != retry.Permanent || cli.ExitCode(err) != 1 {
			t.Errorf("%s: text without a certificate: %v, class %v", name, err, Classify(err))
		}
	}
	if err := os.WriteFile(missing, []byte(testkit.OtherCA), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(Options{Servers: late}); err != nil {
		t.Errorf("when the file is there: %v", err)
	}
}

func TestEnvironmentFillsTLSOfHTTP(t *testing.T) {
	f := newFleet(t, true, answer(200, `"x"`))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte(f.caPEM(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(c config.ConsulServers) error {
		c.HTTP.HTTPS = true
		return leader(newClient(t, Options{Servers: f.inOrder(t, ServersOptions{Config: c})}))
	}
	command, named := f.config("exec=false"), f.config("consul.test")
	if err := try(command); Classify(err) != retry.Permanent {
		t.Errorf("without any CA: %v", err)
	}
	t.Setenv("CONSUL_CACERT", ca)
	if err := try(command); err != nil {
		t.Errorf("CONSUL_CACERT: %v", err)
	}
	t.Setenv("CONSUL_TLS_SERVER_NAME", "wrong.test")
	if err := try(command); Classify(err) != retry.Permanent || !strings.Contains(err.Error(), "wrong.test") {
		t.Errorf("CONSUL_TLS_SERVER_NAME: %v", err)
	}
	err := try(named)
	testkit.ErrorContains(t, err, "consul.test")
	if strings.Contains(err.Error(), "wrong.test") {
		t.Errorf("hosts goes before CONSUL_TLS_SERVER_NAME: %v", err)
	}
	t.Setenv("CONSUL_HTTP_SSL_VERIFY", "false")
	if err := try(named); err != nil {
		t.Errorf("CONSUL_HTTP_SSL_VERIFY: %v", err)
	}
	t.Setenv("CONSUL_CLIENT_CERT", "/nonexistent/cert.pem")
	t.Setenv("CONSUL_CLIENT_KEY", "/nonexistent/key.pem")
	named.HTTP.HTTPS = true
	if _, err := NewClient(Options{Servers: f.inOrder(t, ServersOptions{Config: named})}); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("CONSUL_CLIENT_CERT: %v", err)
	}
}
