package bootstrap

// tagRule takes a tag's value out of a metric's name: Envoy removes what the
// outer group matches and keeps what the inner group matches.
type tagRule struct{ tag, regex string }

// tagRules returns all rules in Consul's order. They read the name that Consul gives an
// upstream cluster:
//
//	<hash>~<subset>.<service>.<namespace>.<partition>.<datacenter>.<type>.<trust domain>.consul.
//
// where hash, subset and partition may be missing; that of a peered cluster has
// neither partition nor datacenter. The second spelling, without "destination", is that
// of Consul before 1.9; dashboards still use it.
func tagRules() []tagRule {
	return []tagRule{
		{"consul.destination.custom_hash",
			`^cluster\.(?:passthrough~)?((?:([^.]+)~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.destination.service_subset",
			`^cluster\.(?:passthrough~)?((?:[^.]+~)?(?:([^.]+)\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.destination.service",
			`^cluster\.(?:passthrough~)?((?:[^.]+~)?(?:[^.]+\.)?([^.]+)\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.destination.namespace",
			`^cluster\.(?:passthrough~)?((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.([^.]+)\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.destination.partition",
			`^cluster\.(?:passthrough~)?((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:([^.]+)\.)?[^.]+\.internal[^.]*\.[^.]+\.consul\.)`},
		{"consul.destination.datacenter",
			`^cluster\.(?:passthrough~)?((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?([^.]+)\.internal[^.]*\.[^.]+\.consul\.)`},
		{"consul.destination.peer", `^cluster\.([^.]+\.(?:[^.]+\.)?([^.]+)\.external\.[^.]+\.consul\.)`},
		{"consul.destination.routing_type",
			`^cluster\.(?:passthrough~)?((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.([^.]+)\.[^.]+\.consul\.)`},
		{"consul.destination.trust_domain",
			`^cluster\.(?:passthrough~)?((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.([^.]+)\.consul\.)`},
		{"consul.destination.target",
			`^cluster\.(?:passthrough~)?(((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+)\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.destination.full_target",
			`^cluster\.(?:passthrough~)?(((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+)\.consul\.)`},
		{"consul.upstream.service", `^(?:tcp|http)\.upstream(?:_peered)?\.(([^.]+)(?:\.[^.]+)?(?:\.[^.]+)?\.[^.]+\.)`},
		{"consul.upstream.datacenter", `^(?:tcp|http)\.upstream\.([^.]+(?:\.[^.]+)?(?:\.[^.]+)?\.([^.]+)\.)`},
		{"consul.upstream.peer", `^(?:tcp|http)\.upstream_peered\.([^.]+(?:\.[^.]+)?\.([^.]+)\.)`},
		{"consul.upstream.namespace",
			`^(?:tcp|http)\.upstream(?:_peered)?\.([^.]+(?:\.([^.]+))?(?:\.[^.]+)?\.[^.]+\.)`},
		{"consul.upstream.partition", `^(?:tcp|http)\.upstream\.([^.]+(?:\.[^.]+)?(?:\.([^.]+))?\.[^.]+\.)`},
		{"consul.custom_hash",
			`^cluster\.((?:([^.]+)~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.service_subset",
			`^cluster\.((?:[^.]+~)?(?:([^.]+)\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.service",
			`^cluster\.((?:[^.]+~)?(?:[^.]+\.)?([^.]+)\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.namespace",
			`^cluster\.((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.([^.]+)\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.datacenter",
			`^cluster\.((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?([^.]+)\.internal[^.]*\.[^.]+\.consul\.)`},
		{"consul.routing_type",
			`^cluster\.((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.([^.]+)\.[^.]+\.consul\.)`},
		{"consul.trust_domain",
			`^cluster\.((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.([^.]+)\.consul\.)`},
		{"consul.target",
			`^cluster\.(((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+)\.[^.]+\.[^.]+\.consul\.)`},
		{"consul.full_target",
			`^cluster\.(((?:[^.]+~)?(?:[^.]+\.)?[^.]+\.[^.]+\.(?:[^.]+\.)?[^.]+\.[^.]+\.[^.]+)\.consul\.)`},
	}
}
