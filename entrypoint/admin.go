package entrypoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/bootstrap"
)

// drainPath makes Envoy ask the peers of its inbound connections to go away
// ("connection: close", GOAWAY). Without graceful the listeners close at once
// and refuse peers that do not know of our end yet; without skip_exit they
// close after Envoy's --drain-time-s, while the application may still drain.
const drainPath = "/drain_listeners?inboundonly&graceful&skip_exit"

// Proxy is what a bootstrap shows of its Envoy.
type Proxy struct {
	// Admin is the admin address, host:port.
	Admin string
	// Gateway reports whether callers come for the sake of Envoy itself, and not of an
	// application.
	Gateway bool
}

// ReadBootstrap reads the bootstrap file that the command line names with -c or
// --config-path.
func ReadBootstrap(args []string) (Proxy, error) {
	path, ok := ConfigPath(args)
	if !ok {
		return Proxy{}, errors.New("find envoy's admin address: the command has no --config-path")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Proxy{}, fmt.Errorf("find envoy's admin address: %w", err)
	}
	p, err := parseBootstrap(data)
	if err != nil {
		return Proxy{}, fmt.Errorf("find envoy's admin address in %s: %w", path, err)
	}
	return p, nil
}

// ConfigPath returns the value of the last -c or --config-path. Envoy itself
// takes the value as the next word only; the form with "=" costs nothing.
func ConfigPath(args []string) (path string, ok bool) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case name != "-c" && name != "--config-path":
		case joined:
			path, ok = value, true
		case i+1 < len(args):
			path, ok = args[i+1], true
		}
	}
	return path, ok
}

// parseBootstrap reads a bootstrap in JSON. A gateway's has the kind where a sidecar's
// has its service; a service of that name only costs its Envoy the wait for callers.
func parseBootstrap(text []byte) (Proxy, error) {
	var doc struct {
		Node struct {
			Cluster string `json:"cluster"`
		} `json:"node"`
		Admin struct {
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    uint16 `json:"port_value"`
				} `json:"socket_address"`
			} `json:"address"`
		} `json:"admin"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return Proxy{}, fmt.Errorf("parse bootstrap: %w", err)
	}
	socket := doc.Admin.Address.Socket
	ip := net.ParseIP(socket.Address)
	if ip == nil || socket.Port == 0 {
		return Proxy{}, fmt.Errorf("admin.address.socket_address is %q port %d: want an IP address and a port", socket.Address, socket.Port)
	}
	if ip.IsUnspecified() { // bound to every address: take the local one
		ip = net.IPv6loopback
		if !strings.Contains(socket.Address, ":") {
			ip = net.IPv4(127, 0, 0, 1)
		}
	}
	return Proxy{
		Admin:   net.JoinHostPort(ip.String(), strconv.Itoa(int(socket.Port))),
		Gateway: bootstrap.IsGateway(doc.Node.Cluster),
	}, nil
}

// Drainer returns a function that asks the Envoy with that admin address
// (host:port) to drain its inbound listeners. Draining twice is the same as
// once. The function obeys its context and has no own timeout.
func Drainer(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := askAdmin(ctx, http.MethodPost, address, drainPath); err != nil {
			return fmt.Errorf("drain inbound listeners: %w", err)
		}
		return nil
	}
}

// adminAnswerLimit bounds what is read of an answer.
const adminAnswerLimit = 4 << 20

// askAdmin returns the answer of Envoy's admin endpoint.
func askAdmin(ctx context.Context, method, address, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	// Not the default transport: a proxy from the environment must not
	// come between, nor an idle connection stay open.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, adminAnswerLimit+1))
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("envoy answered %s: %.200s", resp.Status, strings.TrimSpace(string(body)))
	}
	if err == nil && len(body) > adminAnswerLimit {
		err = fmt.Errorf("envoy's answer has more than %d bytes", adminAnswerLimit)
	}
	return body, err
}
