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

// The file's form; consul-dataplane ignores keys that it does not know.
type (
	dataplaneFile struct {
		Consul  dataplaneConsul    `json:"consul"`
		Proxy   dataplaneProxy     `json:"proxy"`
		XDS     dataplaneListener  `json:"xdsServer"`
		Envoy   dataplaneEnvoy     `json:"envoy"`
		Logging dataplaneLogging   `json:"logging"`
		DNS     *dataplaneListener `json:"dnsServer,omitempty"`
	}
	dataplaneConsul struct {
		Addresses           string                `json:"addresses"`
		GRPCPort            int                   `json:"grpcPort"`
		ServerWatchDisabled bool                  `json:"serverWatchDisabled"`
		TLS                 dataplaneTLS          `json:"tls"`
		Credentials         *dataplaneCredentials `json:"credentials,omitempty"`
	}
	dataplaneTLS struct {
		Disabled    bool   `json:"disabled"`
		CACertsPath string `json:"caCertsPath,omitempty"`
		// consul-dataplane reads serverName; the other key is what consul-ecs 0.10 wrote.
		ServerName    string `json:"serverName,omitempty"`
		TLSServerName string `json:"tlsServerName,omitempty"`
	}
	dataplaneCredentials struct {
		Type   string          `json:"type"`
		Static dataplaneStatic `json:"static"`
	}
	dataplaneStatic struct {
		Token string `json:"token"`
	}
	dataplaneProxy struct {
		NodeName  string `json:"nodeName"`
		ID        string `json:"id"`
		Namespace string `json:"namespace"`
		Partition string `json:"partition"`
	}
	dataplaneListener struct {
		BindAddress string `json:"bindAddress"`
		BindPort    int    `json:"bindPort,omitempty"`
	}
	dataplaneEnvoy struct {
		ReadyBindAddress string `json:"readyBindAddress"`
		ReadyBindPort    int    `json:"readyBindPort"`
	}
	dataplaneLogging struct {
		LogLevel string `json:"logLevel"`
	}
)

// JSON returns the file, the same for the same values.
func (d Dataplane) JSON() ([]byte, error) {
	file := dataplaneFile{
		Consul: dataplaneConsul{
			Addresses: d.Servers.Hosts, GRPCPort: d.Servers.GRPC.Port, ServerWatchDisabled: d.Servers.SkipServerWatch,
			TLS: dataplaneTLS{Disabled: d.TLS == nil},
		},
		Proxy:   dataplaneProxy{NodeName: d.NodeName, ID: d.ProxyID, Namespace: d.Namespace, Partition: d.Partition},
		XDS:     dataplaneListener{BindAddress: loopback}, // any free port
		Envoy:   dataplaneEnvoy{ReadyBindAddress: loopback, ReadyBindPort: d.ReadyPort},
		Logging: dataplaneLogging{LogLevel: d.LogLevel},
	}
	if t := d.TLS; t != nil {
		file.Consul.TLS = dataplaneTLS{CACertsPath: t.CAFile, ServerName: t.ServerName, TLSServerName: t.ServerName}
	}
	if d.Token != "" {
		file.Consul.Credentials = &dataplaneCredentials{Type: "static", Static: dataplaneStatic{Token: d.Token}}
	}
	if d.DNSPort != 0 {
		file.DNS = &dataplaneListener{BindAddress: loopback, BindPort: d.DNSPort}
	}
	return json.Marshal(file)
}
