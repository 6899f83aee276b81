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

// document is an agent's configuration file, as far as we write it.
type document struct {
	Datacenter        string   `json:"datacenter"`
	PrimaryDatacenter string   `json:"primary_datacenter,omitempty"`
	Partition         string   `json:"partition,omitempty"`
	DataDir           string   `json:"data_dir"`
	BindAddr          string   `json:"bind_addr"`
	AdvertiseAddr     string   `json:"advertise_addr"`
	ClientAddr        string   `json:"client_addr"`
	Ports             ports    `json:"ports"`
	RetryJoin         []string `json:"retry_join,omitempty"`
	// LeaveOnTerminate is the default of a client agent, and what all of this
	// depends on.
	LeaveOnTerminate bool `json:"leave_on_terminate"`
	// AdvertiseReconnectTimeout is how long the servers keep a node that died
	// instead of leaving. Its address never comes back.
	AdvertiseReconnectTimeout string       `json:"advertise_reconnect_timeout"`
	Encrypt                   string       `json:"encrypt,omitempty"`
	TLS                       *tlsBlock    `json:"tls,omitempty"`
	AutoEncrypt               *autoEncrypt `json:"auto_encrypt,omitempty"`
	ACL                       *aclBlock    `json:"acl,omitempty"`
	Audit                     *auditBlock  `json:"audit,omitempty"`
}

type ports struct {
	GRPC int `json:"grpc"`
}

type tlsBlock struct {
	Defaults tlsDefaults `json:"defaults"`
}

type tlsDefaults struct {
	CAFile         string `json:"ca_file"`
	VerifyOutgoing bool   `json:"verify_outgoing"`
}

type autoEncrypt struct {
	TLS   bool     `json:"tls"`
	IPSAN []string `json:"ip_san,omitempty"`
}

type aclBlock struct {
	Enabled          bool      `json:"enabled"`
	DefaultPolicy    string    `json:"default_policy"`
	DownPolicy       string    `json:"down_policy"`
	TokenReplication bool      `json:"enable_token_replication,omitempty"`
	Tokens           aclTokens `json:"tokens"`
}

type aclTokens struct {
	Agent string `json:"agent"`
}

type auditBlock struct {
	Enabled bool                 `json:"enabled"`
	Sink    map[string]auditSink `json:"sink"`
}

type auditSink struct {
	Type              string `json:"type"`
	Format            string `json:"format"`
	Path              string `json:"path"`
	DeliveryGuarantee string `json:"delivery_guarantee"`
}

// place is where an agent runs and keeps its files.
type place struct {
	// address is the one to bind and advertise.
	address string
	// dataDir and caFile are paths.
	dataDir, caFile string
	// grpc is the port of its xDS.
	grpc int
}

// document returns the agent's configuration. Without a token ACLs stay off.
func (a Agent) document(p place, token string) document {
	d := document{
		Datacenter:        a.Datacenter,
		PrimaryDatacenter: a.PrimaryDatacenter,
		Partition:         a.Partition,
		DataDir:           p.dataDir,
		BindAddr:          p.address,
		AdvertiseAddr:     p.address,
		ClientAddr:        loopback,
		Ports:             ports{GRPC: p.grpc},
		RetryJoin:         a.RetryJoin,
		LeaveOnTerminate:  true,

		AdvertiseReconnectTimeout: reconnectTimeout,
		Encrypt:                   a.GossipKey,
	}
	if a.CACertPEM != "" {
		d.TLS = &tlsBlock{tlsDefaults{CAFile: p.caFile, VerifyOutgoing: true}}
	}
	if a.CACertPEM != "" && a.AutoEncrypt {
		d.AutoEncrypt = &autoEncrypt{TLS: true}
		if _, err := netip.ParseAddr(p.address); err == nil {
			d.AutoEncrypt.IPSAN = []string{p.address}
		}
	}
	if token != "" {
		d.ACL = &aclBlock{
			Enabled: true, DefaultPolicy: "deny", DownPolicy: "async-cache",
			TokenReplication: a.TokenReplication, Tokens: aclTokens{Agent: token},
		}
	}
	if a.AuditLogging {
		d.Audit = &auditBlock{Enabled: true, Sink: map[string]auditSink{
			"stdout": {Type: "file", Format: "json", Path: "/dev/stdout", DeliveryGuarantee: "best-effort"},
		}}
	}
	return d
}

// text is the document as a file.
func (d document) text() ([]byte, error) {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the agent's configuration as JSON: %w", err)
	}
	return append(text, '\n'), nil
}

// address is where the agent binds: the user's choice, or the task's.
func (a Agent) address(t workload.Task) (string, error) {
	if a.Address != "" {
		return a.Address, nil
	}
	return t.NodeIP()
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
