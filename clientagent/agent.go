package clientagent

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/meshtask/consul-ecs/workload"
)

// Agent is the part of the agent's configuration that the user sets.
type Agent struct {
	// Program is the consul program, looked up in PATH when it has no slash.
	Program string
	// Datacenter and PrimaryDatacenter are names; the second may be empty.
	Datacenter, PrimaryDatacenter string
	// Partition is the admin partition of agent and login, Enterprise only.
	Partition string
	// RetryJoin are the arguments of consul's option of that name.
	RetryJoin []string
	// Address replaces the task's address: an IP address, or a template of
	// go-sockaddr.
	Address string
	// CACertPEM verifies the servers' RPC; empty turns TLS off.
	CACertPEM string
	// AutoEncrypt gets the agent's own certificate from the servers, with
	// CACertPEM only.
	AutoEncrypt bool
	// GossipKey encrypts gossip; empty turns that off. It is a secret.
	GossipKey string
	// TokenReplication and AuditLogging are for ACLs; the second is Enterprise.
	TokenReplication, AuditLogging bool
	// ExtraFiles and then ExtraHCL come after all of this, so that they win.
	ExtraFiles []string
	ExtraHCL   string
}

// reconnectTimeout outlasts a reboot of the network, and is less than the 72 h
// that are Consul's default.
const reconnectTimeout = "15m"

// loopback is where the agent serves the containers of its task.
const loopback = "127.0.0.1"

// nodeLocation is where an agent runs and keeps its files.
type nodeLocation struct {
	// address is the one to bind and advertise.
	address string
	// dataDir and caFile are paths.
	dataDir, caFile string
}

// object is one of JSON.
type object = map[string]any

// document returns the agent's configuration file. Without a token ACLs stay off.
func (a Agent) document(at nodeLocation, token string) ([]byte, error) {
	d := object{
		"datacenter":     a.Datacenter,
		"data_dir":       at.dataDir,
		"bind_addr":      at.address,
		"advertise_addr": at.address,
		"client_addr":    loopback,
		"ports":          object{"grpc": workload.AgentGRPCPort},
		// The default of a client agent, and what all of this depends on.
		"leave_on_terminate": true,
		// How long the servers keep a node that died instead of leaving. Its address never
		// comes back.
		"advertise_reconnect_timeout": reconnectTimeout,
	}
	for key, text := range map[string]string{"primary_datacenter": a.PrimaryDatacenter, "partition": a.Partition,
		"encrypt": a.GossipKey} {
		if text != "" {
			d[key] = text
		}
	}
	if len(a.RetryJoin) > 0 {
		d["retry_join"] = a.RetryJoin
	}
	if a.CACertPEM != "" {
		d["tls"] = object{"defaults": object{"ca_file": at.caFile, "verify_outgoing": true}}
	}
	if a.CACertPEM != "" && a.AutoEncrypt {
		auto := object{"tls": true}
		if _, err := netip.ParseAddr(at.address); err == nil {
			auto["ip_san"] = []string{at.address}
		}
		d["auto_encrypt"] = auto
	}
	if token != "" {
		acl := object{"enabled": true, "default_policy": "deny", "down_policy": "async-cache",
			"tokens": object{"agent": token}}
		if a.TokenReplication {
			acl["enable_token_replication"] = true
		}
		d["acl"] = acl
	}
	if a.AuditLogging {
		d["audit"] = object{"enabled": true, "sink": object{"stdout": object{
			"type": "file", "format": "json", "path": "/dev/stdout", "delivery_guarantee": "best-effort",
		}}}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the agent's configuration as JSON: %w", err)
	}
	return append(text, '\n'), nil
}

// address returns where the agent binds: the user's choice, or the task's.
func (a Agent) address(t workload.Task) (string, error) {
	if a.Address != "" {
		return a.Address, nil
	}
	ip, err := t.NodeIP()
	if err != nil {
		return "", fmt.Errorf("find task address: %w, or give -bind-addr", err)
	}
	return ip, nil
}

// command starts an agent with these configuration files; of two that set the
// same value, consul takes the later.
func (a Agent) command(files ...string) []string {
	args := []string{a.Program, "agent"}
	for _, f := range files {
		args = append(args, "-config-file="+f)
	}
	return args
}
