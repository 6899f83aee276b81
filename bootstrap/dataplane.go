package bootstrap

import (
	"encoding/json"

	"github.com/meshtask/consul-ecs/config"
)

// loopback is where consul-dataplane listens for Envoy, for health checks and for DNS.
const loopback = "127.0.0.1"

// Dataplane is all that the configuration file of consul-dataplane is made of. It needs
// no answer of Consul: consul-dataplane asks for the proxy's by itself.
type Dataplane struct {
	// Servers has the addresses and the port; TLS how connections are secured.
	Servers config.ConsulServers
	// TLS is nil for plaintext.
	TLS *DataplaneTLS
	// Token is the secret ID of the ACL token, which ends up in the file. With it
	// consul-dataplane need not log in, so it can be restarted however old the task is,
	// and it does not log the token out. Empty without ACLs.
	Token string
	// NodeName and ProxyID are those of the registration.
	NodeName, ProxyID    string
	Namespace, Partition string
	// ReadyPort is the port of Envoy's readiness listener on loopback.
	ReadyPort int
	// LogLevel is TRACE, DEBUG, INFO, WARN or ERROR.
	LogLevel string
	// DNSPort is the port on loopback where consul-dataplane answers DNS; 0 for none.
	DNSPort int
}

// DataplaneTLS verifies the servers.
type DataplaneTLS struct {
	// CAFile is empty for the system's CA certificates.
	CAFile string
	// ServerName is what the servers' certificates must be valid for. consul-dataplane
	// cannot do without it when the hosts are a command.
	ServerName string
}

// JSON returns the file, the same for the same values.
func (d Dataplane) JSON() ([]byte, error) {
	tls := object{"disabled": d.TLS == nil}
	if d.TLS != nil && d.TLS.CAFile != "" {
		tls["caCertsPath"] = d.TLS.CAFile
	}
	if d.TLS != nil && d.TLS.ServerName != "" {
		// consul-dataplane reads serverName; the other key is what consul-ecs 0.10 wrote.
		tls["serverName"], tls["tlsServerName"] = d.TLS.ServerName, d.TLS.ServerName
	}
	consul := object{
		"addresses": d.Servers.Hosts, "grpcPort": d.Servers.GRPC.Port, "serverWatchDisabled": d.Servers.SkipServerWatch,
		"tls": tls,
	}
	if d.Token != "" {
		consul["credentials"] = object{"type": "static", "static": object{"token": d.Token}}
	}
	file := object{
		"consul": consul,
		"proxy": object{"nodeName": d.NodeName, "id": d.ProxyID, "namespace": d.Namespace,
			"partition": d.Partition},
		"xdsServer": object{"bindAddress": loopback}, // any free port
		"envoy":     object{"readyBindAddress": loopback, "readyBindPort": d.ReadyPort},
		"logging":   object{"logLevel": d.LogLevel},
	}
	if d.DNSPort != 0 {
		file["dnsServer"] = object{"bindAddress": loopback, "bindPort": d.DNSPort}
	}
	return json.Marshal(file)
}
