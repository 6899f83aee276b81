package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// EnvVar is the environment variable that holds the document.
const EnvVar = "CONSUL_ECS_CONFIG_JSON"

// Defaults of the document.
const (
	DefaultAuthMethod         = "iam-ecs-service-token"
	DefaultLogLevel           = "INFO"
	DefaultPublicListenerPort = 20000
	DefaultGatewayPort        = 8443
)

// Parse validates a document and applies every default. The warnings name
// settings that are accepted but have no effect, sorted by path. What is
// wrong with the document is an *InvalidError; then the warnings are of unknown
// fields only, because one may be the misspelt name of a required one.
//
// A document with consulServers describes the agentless architecture, whose
// schema this version does not have: Parse returns what both have in common
// and Generation says so. registrar.New refuses it.
func Parse(doc []byte) (*Config, []Warning, error) {
	root, err := decode(doc)
	if err != nil {
		return nil, nil, err
	}
	if _, ok := root["consulServers"]; ok {
		return agentless(root), nil, nil
	}
	schema, err := loaded()
	if err != nil {
		return nil, nil, err
	}
	violations := append(schema.violations("$", root), exclusive(root)...)
	_, warnings := prune("$", root, schema)
	if len(violations) > 0 {
		return nil, sortedWarnings(warnings), &InvalidError{Violations: sorted(violations)}
	}
	cfg, err := fill(root)
	if err != nil {
		return nil, nil, err
	}
	warnings = append(warnings, inert(cfg)...)
	applyDefaults(cfg)
	return cfg, sortedWarnings(warnings), nil
}

func sortedWarnings(ws []Warning) []Warning {
	slices.SortFunc(ws, func(a, b Warning) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return ws
}

// exclusive finds service.checks next to healthSyncContainers, which a schema
// can say only unreadably. A gateway registers neither.
func exclusive(root map[string]any) []Violation {
	service, _ := root["service"].(map[string]any)
	checks, _ := service["checks"].([]any)
	synced, _ := root["healthSyncContainers"].([]any)
	if len(checks) == 0 || len(synced) == 0 || root["gateway"] != nil {
		return nil
	}
	return []Violation{{"$.service.checks", "cannot be used together with healthSyncContainers; keep one of the two"}}
}

// fill decodes a valid, pruned document. What is absent or null keeps the
// value set before.
func fill(root map[string]any) (*Config, error) {
	text, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("encode config: %w", err)
	}
	cfg := &Config{ConsulLogin: ConsulLogin{IncludeEntity: true}}
	if err := json.Unmarshal(text, cfg); err != nil {
		return nil, fmt.Errorf("decode config: %w", err)
	}
	return cfg, nil
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

// agentless takes from a document of the other generation what both have in
// common, and holds it against nothing.
func agentless(root map[string]any) *Config {
	cfg := &Config{Generation: Agentless, ConsulLogin: ConsulLogin{IncludeEntity: true}}
	cfg.BootstrapDir, _ = root["bootstrapDir"].(string)
	cfg.LogJSON, _ = root["logJSON"].(bool)
	if level, _ := root["logLevel"].(string); slices.Contains([]string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR"}, level) {
		cfg.LogLevel = level
	}
	applyDefaults(cfg)
	return cfg
}
