package config

import (
	"cmp"
	_ "embed"
)

// EnvVar is the environment variable that holds the document.
const EnvVar = "CONSUL_ECS_CONFIG_JSON"

// Defaults of the document.
const (
	DefaultAuthMethod         = "iam-ecs-service-token"
	DefaultLogLevel           = "INFO"
	DefaultPublicListenerPort = 20000
	DefaultGatewayPort        = 8443
	DefaultHealthCheckPort    = 22000
	DefaultServerHTTPPort     = 8501
	DefaultServerGRPCPort     = 8503
	DefaultIAMRolePath        = "/consul-ecs/"
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
// A document with consulServers describes the agentless architecture, whose
// type this version does not have: Parse returns what is valid of the fields
// that both have in common, and Generation is Agentless.
func Parse(doc []byte) (*Config, []Finding, error) {
	root, err := checkSyntax(doc)
	if err != nil {
		return nil, nil, err
	}
	cfg := &Config{ConsulLogin: ConsulLogin{IncludeEntity: true}}
	found := decode(doc, cfg)
	if len(found.malformed) > 0 {
		return nil, nil, &InvalidError{Violations: sorted(found.malformed)}
	}
	if _, ok := root["consulServers"]; ok {
		cfg.Generation = Agentless
		applyDefaults(cfg)
		return cfg, nil, nil
	}
	if len(cfg.HealthSyncContainers) > 0 && cfg.Service != nil && len(cfg.Service.Checks) > 0 && cfg.Gateway == nil {
		found.violate("$.service.checks", "cannot be used together with healthSyncContainers; keep one of the two")
	}
	if len(found.violations) > 0 {
		return nil, sorted(found.warnings), &InvalidError{Violations: sorted(found.violations)}
	}
	warnings := append(found.warnings, inert(cfg)...)
	applyDefaults(cfg)
	return cfg, sorted(warnings), nil
}

func applyDefaults(cfg *Config) {
	cfg.LogLevel = cmp.Or(cfg.LogLevel, DefaultLogLevel)
	cfg.ConsulLogin.Method = cmp.Or(cfg.ConsulLogin.Method, DefaultAuthMethod)
	if cfg.Proxy == nil {
		cfg.Proxy = &Proxy{}
	}
	cfg.Proxy.PublicListenerPort = cmp.Or(cfg.Proxy.PublicListenerPort, DefaultPublicListenerPort)
	if g := cfg.Gateway; g != nil {
		for _, a := range []*Address{g.LANAddress, g.WANAddress} {
			if a != nil {
				a.Port = cmp.Or(a.Port, DefaultGatewayPort)
			}
		}
	}
}
