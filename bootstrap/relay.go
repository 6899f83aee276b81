package bootstrap

import (
	"encoding/json"
	"fmt"

	"github.com/meshtask/consul-ecs/config"
)

// Relay is all that the relay between Envoy and the Consul servers starts from. It
// outlives any server and any token, which a bootstrap cannot.
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
