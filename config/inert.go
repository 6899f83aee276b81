package config

import "slices"

// Keys of consulLogin.meta that consul-ecs sets: clean-up finds the tokens of
// stopped tasks by them, so no configuration may replace them.
const (
	MetaTaskID  = "consul.hashicorp.com/task-id"
	MetaCluster = "consul.hashicorp.com/cluster"
)

// Keys of service.meta and gateway.meta that consul-ecs sets for the same reason.
const (
	MetaServiceTaskID  = "task-id"
	MetaServiceTaskARN = "task-arn"
	MetaServiceSource  = "source"
)

// inert finds settings that parse but do nothing. It looks at the document
// before its defaults are applied.
func inert(cfg *Config) []Finding {
	var ws []Finding
	warn := func(condition bool, path, message string) {
		if condition {
			ws = append(ws, Finding{path, message})
		}
	}
	reserved := func(path string, meta map[string]string, found string, keys ...string) {
		for _, key := range keys {
			_, given := meta[key]
			warn(given, field(path, key), "no effect: consul-ecs sets this key itself, so that "+found+" of stopped tasks can be found")
		}
	}
	l := cfg.ConsulLogin
	if !l.Enabled {
		const off = "no effect while consulLogin.enabled is not true"
		warn(cfg.ConsulHTTPAddr != "", "$.consulHTTPAddr", off)
		warn(cfg.ConsulCACertFile != "", "$.consulCACertFile", off)
		warn(l.Method != "", "$.consulLogin.method", off)
		warn(!l.IncludeEntity, "$.consulLogin.includeEntity", off)
		warn(len(l.Meta) > 0, "$.consulLogin.meta", off)
		warn(l.Region != "", "$.consulLogin.region", off)
		warn(l.STSEndpoint != "", "$.consulLogin.stsEndpoint", off)
		warn(l.ServerIDHeaderValue != "", "$.consulLogin.serverIdHeaderValue", off)
	} else {
		reserved("$.consulLogin.meta", l.Meta, "tokens", MetaTaskID, MetaCluster)
	}
	if s := cfg.Service; s != nil {
		reserved("$.service.meta", s.Meta, "services", MetaServiceTaskID, MetaServiceTaskARN, MetaServiceSource)
	}
	for container := range cfg.HealthSync.Startup {
		warn(!slices.Contains(cfg.HealthSyncContainers, container), field("$.healthSync.startup", container), "no effect: the container is not in healthSyncContainers")
	}
	if g := cfg.Gateway; g != nil {
		const gateway = "no effect in a gateway task"
		reserved("$.gateway.meta", g.Meta, "services", MetaServiceTaskID, MetaServiceTaskARN, MetaServiceSource)
		warn(cfg.Service != nil, "$.service", gateway)
		warn(cfg.Proxy != nil, "$.proxy", gateway+"; use gateway.proxy")
		warn(len(cfg.HealthSyncContainers) > 0, "$.healthSyncContainers", gateway)
		warn(g.WANAddress != nil && g.WANAddress.Address == "" && g.WANAddress.Port != 0, "$.gateway.wanAddress.port", "no effect without wanAddress.address")
	}
	return ws
}
