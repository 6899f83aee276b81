package subcommand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/entrypoint"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/relay"
	"github.com/meshtask/consul-ecs/workload"
)

// startRelay relays Envoy's xDS, and DNS queries of a task that has Consul DNS, to the Consul
// servers or the task's agent until end is called, if mesh-init has written settings for that
// beside Envoy's bootstrap. It sends to refused when these refuse Envoy permanently.
func startRelay(ctx context.Context, inv *cli.Invocation, refused chan<- struct{}) (end func(), err error) {
	settings, err := relaySettings(inv.Args)
	switch {
	case err != nil || settings == nil:
		return func() {}, err
	case settings.Agent != nil:
		return startAgentRelay(ctx, inv, *settings, refused)
	}
	servers, err := newServers(settings.Servers, settings.HTTPSCAPEM, settings.GRPCCAPEM, inv.Log)
	if err != nil {
		return nil, err
	}
	if _, err := servers.GRPCTLS().Config(); err != nil {
		return nil, err
	}
	streams, err := net.Listen("tcp", loopbackPort(workload.AgentGRPCPort))
	if err != nil {
		return nil, exit.Usagef("listen for Envoy's xDS: %w: without an agent in the task that port is the relay's",
			err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	if settings.DNS != nil {
		if err := relayDNS(ctx, &running, inv, *settings, servers); err != nil {
			cancel()
			streams.Close()
			return nil, err
		}
	}
	running.Go(func() { servers.Run(ctx) })
	c := relayConfig(inv, *settings, servers, refused)
	if secured := servers.GRPCTLS(); secured.Enabled {
		c.TLS = secured.Config
	}
	running.Go(func() { serveRelay(ctx, c, streams) })
	return func() { cancel(); running.Wait() }, nil
}

// startAgentRelay relays Envoy's xDS to the agent of the task until end is called.
func startAgentRelay(
	ctx context.Context, inv *cli.Invocation, settings bootstrap.Relay, refused chan<- struct{},
) (end func(), err error) {
	c := relayConfig(inv, settings, agentServer(settings.Agent.Address), refused)
	if settings.Agent.CAPEM != "" {
		if c.TLS, err = chainTLS(settings.Agent.CAPEM); err != nil {
			return nil, &exit.UsageError{Err: err}
		}
	}
	streams, err := net.Listen("unix", settings.Agent.Socket)
	if err != nil {
		return nil, exit.Usagef("listen for Envoy's xDS: %w: another envoy-entrypoint of this task runs", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { serveRelay(ctx, c, streams) })
	return func() { cancel(); running.Wait() }, nil
}

// serveRelay relays until ctx ends.
func serveRelay(ctx context.Context, c relay.XDSConfig, streams net.Listener) {
	if err := relay.NewXDS(c).Serve(ctx, streams); err != nil {
		c.Log.Error("xDS relay ended, Envoy keeps the configuration it has", logkey.Error, err)
	}
}

// relaySettings returns what mesh-init has written beside the bootstrap that the command names;
// nil if it has written nothing.
func relaySettings(command []string) (*bootstrap.Relay, error) {
	path, ok := entrypoint.ConfigPath(command)
	if !ok || filepath.Base(path) != workload.FileBootstrap {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), workload.FileRelay))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, exit.Usagef("read the settings of the xDS relay: %w", err)
	}
	settings, err := bootstrap.ParseRelay(text)
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return &settings, nil
}

// relayConfig returns the settings of the relay of Envoy's xDS, without TLS.
func relayConfig(
	inv *cli.Invocation, settings bootstrap.Relay, servers relay.Servers, refused chan<- struct{},
) relay.XDSConfig {
	return relay.XDSConfig{
		Servers: servers, Token: relayToken(settings), Log: inv.Log.Named("relay"),
		Refused: func() {
			select {
			case refused <- struct{}{}:
			default: // once is enough
			}
		},
	}
}

// relayDNS answers the task's DNS queries until ctx ends.
func relayDNS(
	ctx context.Context, running *sync.WaitGroup, inv *cli.Invocation, settings bootstrap.Relay,
	servers *consulutil.Servers,
) error {
	address := loopbackPort(settings.DNS.Port)
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return portOfDNS(err)
	}
	streams, err := net.Listen("tcp", address)
	if err != nil {
		packets.Close()
		return portOfDNS(err)
	}
	c := relay.DNSConfig{
		Servers: servers, Token: relayToken(settings), Log: inv.Log.Named("dns"),
		Namespace: settings.DNS.Namespace, Partition: settings.DNS.Partition,
	}
	if secured := servers.GRPCTLS(); secured.Enabled {
		c.TLS = secured.Config
	}
	dns := relay.NewDNS(c)
	running.Go(func() {
		if err := dns.Serve(ctx, packets, streams); err != nil {
			inv.Log.Error("Consul DNS ended, the task has its other name servers", logkey.Error, err)
		}
	})
	return nil
}

// portOfDNS returns the error of a port that is in use.
func portOfDNS(err error) error {
	return exit.Usagef("listen for DNS queries: %w: "+
		"with transparentProxy.consulDNS that port is Consul DNS's: have the other program use another one", err)
}

// loopbackPort returns the address of a port that the task alone can reach.
func loopbackPort(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// relayToken returns a function that returns the token that is valid now. A token file without a
// token is an error: the servers would take the call for an anonymous one.
func relayToken(r bootstrap.Relay) func() (string, error) {
	if r.TokenFile == "" {
		return func() (string, error) { return r.Token, nil }
	}
	return func() (string, error) {
		token, err := volume.ReadSecret(r.TokenFile)
		if err == nil && token == "" {
			err = fmt.Errorf(
				"%s is missing or empty: mesh-init writes it, to the volume that this container must have at the same path",
				r.TokenFile,
			)
		}
		return token, err
	}
}
