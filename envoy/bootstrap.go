package envoy

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/workload"
)

// Proxy is what a bootstrap shows of its Envoy.
type Proxy struct {
	// Admin is the admin address, host:port.
	Admin string
	// Gateway reports whether callers come for the sake of Envoy itself, and not of an
	// application.
	Gateway bool
}

// ReadBootstrap reads the bootstrap file at the path, or the file that consul-dataplane
// starts from.
func ReadBootstrap(path string) (Proxy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Proxy{}, err
	}
	p, err := parseBootstrap(data)
	if err != nil {
		return Proxy{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// document is a bootstrap in JSON, as far as it is read.
type document struct {
	Node struct {
		ID      string `json:"id"`
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
	// Dataplane is the proxy in a file of consul-dataplane, whose Envoy has the default
	// admin address.
	Dataplane struct {
		ID string `json:"id"`
	} `json:"proxy"`
}

// parseBootstrap reads a bootstrap in JSON.
func parseBootstrap(text []byte) (Proxy, error) {
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		return Proxy{}, fmt.Errorf("parse bootstrap: %w", err)
	}
	if id := doc.Dataplane.ID; id != "" {
		return Proxy{Admin: bootstrap.DefaultAdminBind, Gateway: !workload.IsProxyID(id)}, nil
	}
	socket := doc.Admin.Address.Socket
	ip := net.ParseIP(socket.Address)
	if ip == nil || socket.Port == 0 {
		return Proxy{}, fmt.Errorf("admin.address.socket_address is %q port %d: want an IP address and a port",
			socket.Address, socket.Port)
	}
	if ip.IsUnspecified() { // bound to every address: take the local one
		ip = net.IPv6loopback
		if !strings.Contains(socket.Address, ":") {
			ip = net.IPv4(127, 0, 0, 1)
		}
	}
	return Proxy{
		Admin: net.JoinHostPort(ip.String(), strconv.Itoa(int(socket.Port))),
		// A gateway's cluster is its kind, a sidecar's the name of its service, which may
		// be the same.
		Gateway: bootstrap.IsGateway(doc.Node.Cluster) && !workload.IsProxyID(doc.Node.ID),
	}, nil
}
