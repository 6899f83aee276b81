package config

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

const (
	// EnvVar is the environment variable that holds the document.
	EnvVar = "CONSUL_ECS_CONFIG_JSON"
	// LogJSONEnvVar does what logJSON does in containers without the document, and before it is read.
	LogJSONEnvVar = "CONSUL_ECS_LOG_JSON"
	// GenerationEnvVar is the environment variable in which an operator states the
	// generation that the document must have: agent, agentless, or nothing.
	GenerationEnvVar = "CONSUL_ECS_GENERATION"
)

// Defaults of the document.
const (
	defaultLogLevel           = "INFO"
	defaultPublicListenerPort = 20000
	DefaultGatewayPort        = 8443
	defaultHealthCheckPort    = 22000
	defaultServerHTTPPort     = 8501
	defaultServerGRPCPort     = 8503
	defaultIAMRolePath        = "/consul-ecs/"
)

//go:embed schema.json
var schemaJSON string

// Schema returns the JSON Schema (draft-07) of the document, for editors and
// other programs.
func Schema() []byte { return []byte(schemaJSON) }

// Parse validates a document and applies every default. The warnings name
// settings that are accepted but have no effect, sorted by path. What is
// wrong with the document is an *InvalidError; then the warnings are of unknown
// fields only, because one may be the misspelt name of a required one.
//
// A document is of tasks without an agent if and only if its root has the key consulServers.
func Parse(doc []byte) (*Config, []Finding, error) { return ParseAs(doc, "") }

// ParseAs parses for the value of GenerationEnvVar: a document of the other generation is invalid. Another
// value than agent, agentless and "" is an error that is no *InvalidError.
func ParseAs(doc []byte, generation string) (*Config, []Finding, error) {
	if generation != "" && generation != agent && generation != agentless {
		return nil, nil, fmt.Errorf("%s is %q: want %s or %s, or leave it unset: the document has consulServers or not",
			GenerationEnvVar, generation, agent, agentless)
	}
	root, err := checkSyntax(doc)
	if err != nil {
		return nil, nil, err
	}
	cfg, found := read(doc, root, generation)
	reject := func(violations []Finding) error {
		return &InvalidError{Violations: sorted(violations), generation: found.generation}
	}
	if len(found.malformed) > 0 {
		return nil, nil, reject(found.malformed)
	}
	checkPairs(cfg, found)
	if cfg.Gateway == nil && cfg.Proxy != nil {
		checkUpstreams(cfg, found)
	}
	if cfg.Agentless() {
		checkHosts(cfg.ConsulServers.Hosts, found)
		readExclusions(cfg, found)
	}
	if len(found.violations) > 0 {
		return nil, sorted(found.warnings), reject(found.violations)
	}
	warnings := append(found.warnings, inert(cfg, root)...)
	applyDefaults(cfg)
	return cfg, sorted(warnings), nil
}

// read decodes the document as the generation that it is of. A document without
// consulServers that is not valid may be meant for either: it is compared with the
// one whose own fields or values it has, first of all agent.
func read(doc []byte, root map[string]json.RawMessage, generation string) (*Config, *decoder) {
	own := agent
	if _, ok := root["consulServers"]; ok {
		own = agentless
	}
	if generation != "" && generation != own {
		cfg, found := decode(doc, generation)
		found.violate("$", "is %s by its fields, but %s is %s; change one of the two", own, GenerationEnvVar,
			generation)
		return cfg, found
	}
	cfg, found := decode(doc, own)
	if own == agentless || generation != "" || len(found.violations) == 0 || found.signs[agent] {
		return cfg, found
	}
	other, violations := decode(doc, agentless)
	if found.signs[agentless] || other.Gateway != nil && other.Gateway.Kind != cfg.Gateway.Kind {
		return other, violations
	}
	return cfg, found
}

// checkHosts records servers that are given as a URL, with a port, or as a list.
func checkHosts(hosts string, found *decoder) {
	const path = "$.consulServers.hosts"
	switch host, port, err := net.SplitHostPort(hosts); {
	case strings.HasPrefix(hosts, "exec="):
	case strings.Contains(hosts, "://"):
		found.violate(path, "%q has a scheme: write the name or address alone, and use consulServers.http.https to "+
			"choose the scheme", hosts)
	case err == nil:
		found.violate(path, "%q has a port: write %q, and %s as consulServers.http.port", hosts, host, port)
	case strings.ContainsAny(hosts, " ,[]"):
		found.violate(path, "%q is no IP address and no DNS name; a name may have several addresses, and the command "+
			"of exec= may print several", hosts)
	}
}

// checkPairs records settings that exclude each other.
func checkPairs(cfg *Config, found *decoder) {
	if len(cfg.HealthSyncContainers) > 0 && cfg.Service != nil && len(cfg.Service.Checks) > 0 && cfg.Gateway == nil {
		found.violate("$.service.checks", "cannot be used together with healthSyncContainers; keep one of the two")
	}
	if c := cfg.Controller; c.Partition != "" && !c.PartitionsEnabled {
		found.violate("$.controller.partition",
			"needs controller.partitionsEnabled; set that to true, or remove the partition")
	}
}

// checkUpstreams records upstreams that Consul refuses as duplicates, whatever their ports are.
func checkUpstreams(cfg *Config, found *decoder) {
	type destination struct{ kind, name, namespace, partition, peer, datacenter string }
	first := map[destination]string{}
	for i, u := range cfg.Proxy.Upstreams {
		d := destination{u.DestinationType, u.DestinationName, u.DestinationNamespace, u.DestinationPartition,
			u.DestinationPeer, u.Datacenter}
		if !cfg.Agentless() {
			d.kind = cmp.Or(d.kind, "service") // the default of agents, which the catalog does not have
		}
		path := item("$.proxy.upstreams", i)
		switch other, known := first[d]; {
		case d.name == "": // a violation by itself
		case known:
			found.violate(path, "has the same destination as %s, and Consul takes each once; remove one of the two",
				other)
		default:
			first[d] = path
		}
	}
}

func applyDefaults(cfg *Config) {
	cfg.LogLevel = cmp.Or(cfg.LogLevel, defaultLogLevel)
	cfg.ConsulLogin.Method = cmp.Or(cfg.ConsulLogin.Method, ServiceAuthMethod)
	if cfg.Proxy == nil {
		cfg.Proxy = &Proxy{}
	}
	cfg.Proxy.PublicListenerPort = cmp.Or(cfg.Proxy.PublicListenerPort, defaultPublicListenerPort)
	if g := cfg.Gateway; g != nil {
		for _, a := range []*Address{g.LANAddress, g.WANAddress} {
			if a != nil {
				a.Port = cmp.Or(a.Port, DefaultGatewayPort)
			}
		}
	}
	if cfg.Agentless() {
		applyAgentlessDefaults(cfg)
	}
}

func applyAgentlessDefaults(cfg *Config) {
	s, c, t := cfg.ConsulServers, &cfg.Controller, &cfg.TransparentProxy
	s.GRPC.Port = cmp.Or(s.GRPC.Port, defaultServerGRPCPort)
	s.HTTP.Port = cmp.Or(s.HTTP.Port, defaultServerHTTPPort)
	cfg.Proxy.HealthCheckPort = cmp.Or(cfg.Proxy.HealthCheckPort, defaultHealthCheckPort)
	c.IAMRolePath = cmp.Or(c.IAMRolePath, defaultIAMRolePath)
	if c.PartitionsEnabled {
		c.Partition = cmp.Or(c.Partition, "default")
	}
	if g := cfg.Gateway; g != nil {
		g.HealthCheckPort = cmp.Or(g.HealthCheckPort, defaultHealthCheckPort)
		t.Enabled = false
	}
	t.ConsulDNS.Enabled = t.ConsulDNS.Enabled && t.Enabled
}
