package bootstrap

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// socket is a TCP or UDP address; Envoy takes only IP addresses where it has
// no resolver, as in everything static here.
type socket struct {
	ip   netip.Addr
	port uint16
}

// parseSocket reads IP:port. "localhost" stands for 127.0.0.1, which is where
// an agent listens by default; Envoy itself may take ::1 for it.
func parseSocket(s string) (socket, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return socket{}, fmt.Errorf("must be <IP address>:<port>, not %q", s)
	}
	return newSocket(host, port)
}

func newSocket(host, port string) (socket, error) {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return socket{}, fmt.Errorf("must be <IP address>:<port>; %q is not an IP address", host)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return socket{}, fmt.Errorf("must be <IP address>:<port>; port %q is not between 1 and 65535", port)
	}
	return socket{ip: ip, port: uint16(n)}, nil
}

func (s socket) address() object {
	return object{"socket_address": object{"address": s.ip.String(), "port_value": s.port}}
}

// endpoint is a socket or, with a path, a Unix socket.
type endpoint struct {
	socket socket
	path   string
	tls    bool
}

func (e endpoint) address() object {
	if e.path != "" {
		return pipe(e.path)
	}
	return e.socket.address()
}

func pipe(path string) object {
	return object{"pipe": object{"path": path}}
}

func agentEndpoint(g GRPC, bad *InvalidError) endpoint {
	const name = "gRPC address"
	if path, ok := strings.CutPrefix(g.Address, "unix://"); ok {
		if path == "" {
			bad.add(name, "has no path after unix://")
		}
		return endpoint{path: path, tls: g.CAPEM != "" && checkCA(g.CAPEM, bad)}
	}
	hostPort, tls := strings.CutPrefix(g.Address, "https://")
	s, err := parseSocket(strings.TrimPrefix(hostPort, "http://"))
	if err != nil {
		bad.add(name, "%v", err)
	}
	return endpoint{socket: s, tls: tls && checkCA(g.CAPEM, bad)}
}

// checkCA refuses what Envoy would refuse at start, where it is harder to find.
func checkCA(caPEM string, bad *InvalidError) bool {
	block, _ := pem.Decode([]byte(caPEM))
	ok := block != nil && block.Type == "CERTIFICATE"
	if !ok {
		bad.add("gRPC CA", "a TLS connection to Consul needs CA certificates in PEM")
	}
	return ok
}

// sinkEndpoint reads the address of a statsd sink after expanding the
// environment variables in it: $NAME alone may be any variable, within an
// address only HOST_IP counts and every other reference stays as it is.
func sinkEndpoint(raw string, env map[string]string) (endpoint, error) {
	expanded, err := expandSink(raw, env)
	if err != nil {
		return endpoint{}, err
	}
	u, err := url.Parse(expanded)
	if err != nil {
		return endpoint{}, fmt.Errorf("is not a URL: %q", expanded)
	}
	switch {
	case u.Scheme == "udp":
		s, err := newSocket(u.Hostname(), u.Port())
		if err != nil {
			return endpoint{}, fmt.Errorf("must be udp://<IP address>:<port>, not %q", expanded)
		}
		return endpoint{socket: s}, nil
	case u.Scheme == "unix" && u.Path != "":
		return endpoint{path: u.Path}, nil
	}
	return endpoint{}, fmt.Errorf("must be udp://<IP address>:<port> or unix:///<path>, not %q", expanded)
}

func expandSink(raw string, env map[string]string) (string, error) {
	if name, ok := strings.CutPrefix(raw, "$"); ok && len(name) > 1 {
		if env[name] == "" {
			return "", fmt.Errorf("refers to the environment variable %q, which is not set", name)
		}
		return env[name], nil
	}
	missing := false
	expanded := os.Expand(raw, func(name string) string {
		if name != "HOST_IP" {
			return "${" + name + "}"
		}
		missing = missing || env[name] == ""
		return env[name]
	})
	if missing {
		return "", errors.New("refers to the environment variable HOST_IP, which is not set")
	}
	return expanded, nil
}
