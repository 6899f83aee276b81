package config

// Keys of consulLogin.meta that are set by consul-ecs: clean-up finds the
// tokens of dead tasks by them, so no configuration may replace them.
const (
	MetaTaskID  = "consul.hashicorp.com/task-id"
	MetaCluster = "consul.hashicorp.com/cluster"
)

// Keys of service.meta and gateway.meta that are set by consul-ecs, for the same
// reason.
const (
	MetaServiceTaskID  = "task-id"
	MetaServiceTaskARN = "task-arn"
	MetaServiceSource  = "source"
)

// inert finds settings that parse but do nothing. It looks at the document
// before its defaults are applied.
func inert(cfg *Config) []Warning {
	var ws []Warning
	warn := func(condition bool, path, message string) {
		if condition {
			ws = append(ws, Warning{path, message})
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
	}
	for _, key := range []string{MetaTaskID, MetaCluster} {
		_, given := l.Meta[key]
		warn(given && l.Enabled, field("$.consulLogin.meta", key), "no effect: consul-ecs sets this key itself, so that tokens of stopped tasks can be found")
	}
	for _, key := range []string{MetaServiceTaskID, MetaServiceTaskARN, MetaServiceSource} {
		const kept = "no effect: consul-ecs sets this key itself, so that services of stopped tasks can be found"
		if cfg.Service != nil {
			_, given := cfg.Service.Meta[key]
			warn(given, field("$.service.meta", key), kept)
		}
		if cfg.Gateway != nil {
			_, given := cfg.Gateway.Meta[key]
			warn(given, field("$.gateway.meta", key), kept)
		}
	}
	if g := cfg.Gateway; g != nil {
		const gateway = "no effect in a gateway task"
		warn(cfg.Service != nil, "$.service", gateway)
		warn(cfg.Proxy != nil, "$.proxy", gateway+"; use gateway.proxy")
		warn(len(cfg.HealthSyncContainers) > 0, "$.healthSyncContainers", gateway)
		warn(g.WANAddress != nil && g.WANAddress.Address == "" && g.WANAddress.Port != 0, "$.gateway.wanAddress.port", "no effect without wanAddress.address")
	}
	return ws
}
