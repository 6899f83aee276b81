package bootstrap

import (
	"encoding/json"
	"fmt"

	"github.com/meshtask/consul-ecs/config"
)

// Relay is all that the relay between a task and the Consul servers, or its agent, starts from.
// It outlives any server and any token, which a bootstrap cannot.
type Relay struct {
	Servers config.ConsulServers `json:"consulServers"`
	// HTTPSCAPEM and GRPCCAPEM are CA certificates in PEM, which win over the files that
	// Servers names.
	HTTPSCAPEM string `json:"httpsCACertPEM,omitempty"`
	GRPCCAPEM  string `json:"grpcCACertPEM,omitempty"`
	// TokenFile holds the secret ID of the token to present, which may be replaced at
	// any time. Without one it is Token, which is empty without ACLs.
	TokenFile string `json:"tokenFile,omitempty"`
	Token     string `json:"token,omitempty"`
	// Agent takes the place of Servers in a task with an agent.
	Agent *RelayAgent `json:"agent,omitempty"`
	// DNS is where the task's DNS queries arrive; nil when there are none to answer.
	DNS *RelayDNS `json:"dns,omitempty"`
}

// RelayAgent is how the relay reaches the Consul client agent of the task.
type RelayAgent struct {
	// Socket is the abstract Unix socket where Envoy's xDS arrives, with its @.
	Socket string `json:"socket"`
	// Address is host:port of the agent's gRPC. CAPEM are the CA certificates that it must chain
	// to; empty for plaintext.
	Address string `json:"address"`
	CAPEM   string `json:"caCertPEM,omitempty"`
}

// RelayDNS is what the relay of DNS queries starts from.
type RelayDNS struct {
	Port int `json:"port"`
	// Namespace and Partition are the task's, empty without Consul Enterprise.
	Namespace string `json:"namespace,omitempty"`
	Partition string `json:"partition,omitempty"`
}

// JSON returns the text that ParseRelay reads.
func (r Relay) JSON() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode settings of the xDS relay: %w", err)
	}
	return append(text, '\n'), nil
}

// ParseRelay reads the settings that mesh-init has written.
func ParseRelay(text []byte) (Relay, error) {
	var r Relay
	if err := json.Unmarshal(text, &r); err != nil {
		return Relay{}, fmt.Errorf("parse settings of the xDS relay: %w", err)
	}
	return r, nil
}
