package entrypoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/envoy"
)

// sidecarDrain makes Envoy ask the peers of its inbound connections to go away
// ("connection: close", GOAWAY). Without graceful the listeners close at once
// and refuse peers that do not know of our end yet; without skip_exit they
// close after Envoy's --drain-time-s, while the application may still drain.
//
// gatewayDrain does so for all listeners: Consul marks those of an API gateway as
// outbound, and a gateway has no application whose own calls must continue.
const (
	sidecarDrain = "/drain_listeners?inboundonly&graceful&skip_exit"
	gatewayDrain = "/drain_listeners?graceful&skip_exit"
)

// ReadBootstrap reads the file that the command line names, see ConfigPath.
func ReadBootstrap(args []string) (envoy.Proxy, error) {
	path, ok := ConfigPath(args)
	if !ok {
		return envoy.Proxy{},
			errors.New("find envoy's admin address: the command has no --config-path and no -config-file")
	}
	p, err := envoy.ReadBootstrap(path)
	if err != nil {
		return envoy.Proxy{}, fmt.Errorf("find envoy's admin address: %w", err)
	}
	return p, nil
}

// ConfigPath returns the file that the proxy starts from: the value of the last -c or
// --config-path of Envoy, or -config-file of consul-dataplane. Envoy itself takes the
// value as the next word only; the form with "=" costs nothing.
func ConfigPath(args []string) (path string, ok bool) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case !slices.Contains([]string{"-c", "--config-path", "-config-file", "--config-file"}, name):
		case joined:
			path, ok = value, true
		case i+1 < len(args):
			path, ok = args[i+1], true
		}
	}
	return path, ok
}

// Drainer returns a function that asks an Envoy to drain the listeners that its
// callers come to. Draining twice is the same as once. The function obeys its context
// and has no own timeout.
func Drainer(p envoy.Proxy) func(context.Context) error {
	path := sidecarDrain
	if p.Gateway {
		path = gatewayDrain
	}
	return func(ctx context.Context) error {
		if _, err := envoy.Ask(ctx, http.MethodPost, p.Admin, path); err != nil {
			return fmt.Errorf("drain inbound listeners: %w", err)
		}
		return nil
	}
}
