package subcommand

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/entrypoint"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/workload"
)

// relayXDS relays Envoy's xDS to the Consul servers until end is called, if mesh-init
// has written settings for that beside Envoy's bootstrap.
func relayXDS(ctx context.Context, inv *cli.Invocation) (end func(), err error) {
	none := func() {}
	path, ok := entrypoint.ConfigPath(inv.Args)
	if !ok || filepath.Base(path) != workload.FileBootstrap {
		return none, nil
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), workload.FileRelay))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return nil, exit.Usagef("read the settings of the xDS relay: %w", err)
	}
	settings, err := bootstrap.ParseRelay(text)
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	servers, err := newServers(settings.Servers, settings.HTTPSCAPEM, settings.GRPCCAPEM, inv.Log)
	if err != nil {
		return nil, err
	}
	secured, err := servers.GRPCTLS().Config()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(workload.AgentGRPCPort)))
	if err != nil {
		return nil, exit.Usagef("listen for Envoy's xDS: %w: without an agent in the task that port is the relay's", err)
	}
	relay := envoy.NewRelay(envoy.RelayConfig{Servers: servers, TLS: secured, Token: relayToken(settings), Log: inv.Log.Named("relay")})
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { servers.Run(ctx) })
	running.Go(func() {
		if err := relay.Serve(ctx, listener); err != nil {
			inv.Log.Error("xDS relay ended, Envoy keeps the configuration it has", logkey.Error, err)
		}
	})
	return func() { cancel(); running.Wait() }, nil
}

// relayToken returns the token that is valid now.
func relayToken(r bootstrap.Relay) func() (string, error) {
	if r.TokenFile == "" {
		return func() (string, error) { return r.Token, nil }
	}
	return func() (string, error) { return volume.ReadSecret(r.TokenFile) }
}
