package meshinit

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/redirect"
	"github.com/meshtask/consul-ecs/workload"
)

// proxyFileNames returns all names that Files may return.
func proxyFileNames() []string {
	return []string{workload.FileBootstrap, workload.FileRelay, workload.FileDataplane, workload.FileGRPCCACert,
		workload.FileHosts}
}

const loopback = "127.0.0.1"

// ProxyFiles makes the files that the container of the proxy starts from.
type ProxyFiles interface {
	// Check refuses what Files would refuse, as far as the settings alone show it. It
	// does no I/O.
	Check() error
	// Files returns the files for a proxy that presents the token; its secret is empty without
	// ACLs.
	Files(ctx context.Context, w workload.Workload, p bootstrap.Proxy, token consulutil.Token) ([]File, error)
	// KeepsToken reports whether the proxy presents its first token as long as it runs.
	KeepsToken() bool
}

// File is a file of the bootstrap directory.
type File struct {
	Name string
	Data []byte
	// Secret reports that it holds a token, which not every user may read.
	Secret bool
}

// AgentProxy is for an Envoy that gets its configuration from the agent in the task.
type AgentProxy struct {
	// Dir is the bootstrap directory.
	Dir string
	// GRPC is how Envoy will reach the agent.
	GRPC GRPC
	// ReadyBind is IP:port of Envoy's readiness listener; none when empty.
	ReadyBind string
	// Env is what statsd addresses in the proxy configuration may refer to.
	Env map[string]string
}

// Check refuses a gRPC address that no bootstrap can hold.
func (a AgentProxy) Check() error { return a.GRPC.check() }

// KeepsToken reports that the agent is at a Unix socket, where there is no relay.
func (a AgentProxy) KeepsToken() bool { return strings.HasPrefix(a.GRPC.address(), unixScheme) }

// Files returns Envoy's bootstrap, which holds the token. Envoy cannot replace it: for one that
// expires there is a relay, which presents the token in its file. An agent at a Unix socket has
// none.
func (a AgentProxy) Files(
	ctx context.Context, w workload.Workload, p bootstrap.Proxy, token consulutil.Token,
) ([]File, error) {
	grpc, err := a.GRPC.resolve(ctx)
	if err != nil {
		return nil, err
	}
	params := bootstrap.Params{
		Proxy: p, ProxyID: w.Proxy.ID, Token: token.Secret, GRPC: grpc, ReadyBind: a.ReadyBind, Env: a.Env,
	}
	scheme, _, _, err := split(grpc.Address)
	if err != nil {
		return nil, err
	}
	if token.Expires.IsZero() || scheme == unixScheme {
		data, err := bootstrap.Generate(params)
		return []File{{Name: workload.FileBootstrap, Data: data, Secret: token.Secret != ""}}, err
	}
	socket := workload.RelaySocket(w.TaskID)
	relay := bootstrap.Relay{
		TokenFile: filepath.Join(a.Dir, workload.FileServiceToken),
		Agent: &bootstrap.RelayAgent{Socket: socket, Address: strings.TrimPrefix(grpc.Address, scheme),
			CAPEM: grpc.CAPEM},
	}
	settings, err := relay.JSON()
	if err != nil {
		return nil, err
	}
	params.Token, params.Relay, params.GRPC = "", true, bootstrap.GRPC{Address: unixScheme + socket}
	data, err := bootstrap.Generate(params)
	return []File{{Name: workload.FileRelay, Data: settings}, {Name: workload.FileBootstrap, Data: data}}, err
}

// ServersProxy is for a proxy that gets its configuration from the Consul servers.
type ServersProxy struct {
	Config *config.Config
	// HTTPSCAPEM are the CA certificates of the servers' HTTPS in PEM; empty to use the
	// file that the configuration names.
	HTTPSCAPEM string
	// GRPC is how the connections to the servers' gRPC are secured.
	GRPC consulutil.ServerTLS
	// Env is as in AgentProxy.
	Env map[string]string
	// Hosts are lines for the hosts files of the task's containers.
	Hosts []string
}

// KeepsToken reports that the proxy is consul-dataplane.
func (s ServersProxy) KeepsToken() bool { return !s.Config.Direct() }

// Check refuses a text of CA certificates that the proxy cannot use. It does not read CA
// files: they may be mounted in the proxy's container alone.
func (s ServersProxy) Check() error {
	if s.GRPC.CAPEM == "" {
		return nil
	}
	_, err := s.GRPC.Config()
	return err
}

// Files returns what consul-dataplane starts from, or with proxy.mode direct, Envoy and
// the relay to the servers.
func (s ServersProxy) Files(
	_ context.Context, w workload.Workload, p bootstrap.Proxy, token consulutil.Token,
) ([]File, error) {
	var files []File
	if len(s.Hosts) > 0 {
		files = append(files, File{Name: workload.FileHosts, Data: []byte(strings.Join(s.Hosts, "\n") + "\n")})
	}
	var more []File
	var err error
	if s.Config.Direct() {
		more, err = s.direct(w, p, token.Secret)
	} else {
		more, err = s.dataplane(w, token.Secret)
	}
	return append(files, more...), err
}

// direct returns the files for Envoy below envoy-entrypoint, whose relay presents the token: the
// bootstrap has none.
func (s ServersProxy) direct(w workload.Workload, p bootstrap.Proxy, token string) ([]File, error) {
	relay := bootstrap.Relay{Servers: *s.Config.ConsulServers, HTTPSCAPEM: s.HTTPSCAPEM, GRPCCAPEM: s.GRPC.CAPEM}
	if s.Config.ConsulLogin.Enabled {
		relay.TokenFile = filepath.Join(s.Config.BootstrapDir, workload.FileServiceToken)
	} else {
		relay.Token = token
	}
	if s.dns() {
		relay.DNS = &bootstrap.RelayDNS{Port: redirect.DNSPort, Namespace: w.Namespace, Partition: w.Partition}
	}
	settings, err := relay.JSON()
	if err != nil {
		return nil, err
	}
	text, err := bootstrap.Generate(bootstrap.Params{
		Proxy: p, ProxyID: w.Proxy.ID, NodeName: w.Node, Relay: true, Env: s.Env,
		GRPC:      bootstrap.GRPC{Address: net.JoinHostPort(loopback, strconv.Itoa(workload.AgentGRPCPort))},
		ReadyBind: net.JoinHostPort(loopback, strconv.Itoa(s.Config.ReadyPort())),
	})
	return []File{
		{Name: workload.FileRelay, Data: settings, Secret: relay.Token != ""},
		{Name: workload.FileBootstrap, Data: text},
	}, err
}

// dns reports whether the task's DNS queries reach the proxy's container.
func (s ServersProxy) dns() bool {
	return s.Config.TransparentProxy.Enabled && s.Config.TransparentProxy.ConsulDNS.Enabled
}

func (s ServersProxy) dataplane(w workload.Workload, token string) ([]File, error) {
	d := bootstrap.Dataplane{
		Servers: *s.Config.ConsulServers, NodeName: w.Node, ProxyID: w.Proxy.ID, Namespace: w.Namespace,
		Partition: w.Partition,
		Token:     token, ReadyPort: s.Config.ReadyPort(), LogLevel: s.Config.LogLevel,
	}
	var files []File
	if s.GRPC.Enabled {
		d.TLS = &bootstrap.DataplaneTLS{CAFile: s.GRPC.CAFile, ServerName: s.GRPC.ServerName}
		if s.GRPC.CAPEM != "" {
			d.TLS.CAFile = filepath.Join(s.Config.BootstrapDir, workload.FileGRPCCACert)
			files = append(files, File{Name: workload.FileGRPCCACert, Data: []byte(s.GRPC.CAPEM)})
		}
	}
	if s.dns() {
		d.DNSPort = redirect.DNSPort
	}
	text, err := d.JSON()
	return append(files, File{Name: workload.FileDataplane, Data: text, Secret: token != ""}), err
}
