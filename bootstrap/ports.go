package bootstrap

import "strconv"

// keyBindPort moves the proxy's public listener; Consul reads it, not Envoy.
const keyBindPort = "bind_port"

// Ports are the ports that a proxy's configuration binds on the task's addresses.
// A port that is not configured is 0.
type Ports struct {
	// Public is the public listener's, in place of the registered one.
	Public int
	// Prometheus and Stats serve metrics.
	Prometheus, Stats int
}

// ReadPorts takes the ports out of a merged proxy configuration. The error is an
// *InvalidError.
func ReadPorts(config map[string]any) (Ports, error) {
	r := reader{config: config, bad: &InvalidError{}}
	ports := Ports{Public: r.port(keyBindPort)}
	if s := r.bind(keyPrometheus); s != nil {
		ports.Prometheus = int(s.port)
	}
	if s := r.bind(keyStatsBind); s != nil {
		ports.Stats = int(s.port)
	}
	return ports, r.bad.err()
}

// port reads a number or, as Consul does, a text with one.
func (r reader) port(key string) int {
	raw := r.text(key)
	if raw == "" {
		return 0
	}
	n, err := strconv.ParseUint(raw, 10, 16)
	if err != nil {
		r.reject(key, "must be a port, not %q", raw)
	}
	return int(n)
}
