package bootstrap

import (
	"slices"
	"strings"
)

// tagRule takes a tag's value out of a metric's name: Envoy removes what the
// outer group matches and keeps what the inner group matches.
type tagRule struct{ tag, regex string }

// segment is one part of the name Consul gives an upstream cluster:
//
//	<hash>~<subset>.<service>.<namespace>.<partition>.<datacenter>.<type>.<trust domain>.consul.
//
// where hash, subset and partition may be missing.
type segment struct{ name, before, after string }

func clusterSegments() []segment {
	return []segment{
		{"custom_hash", `(?:`, `~)?`},
		{"service_subset", `(?:`, `\.)?`},
		{"service", ``, `\.`},
		{"namespace", ``, `\.`},
		{"partition", `(?:`, `\.)?`},
		{"datacenter", ``, `\.`},
		{"routing_type", ``, `\.`},
		{"trust_domain", ``, ``},
	}
}

const (
	anyPart      = `[^.]+`
	internalPart = `internal[^.]*`
)

// tagRules are all rules in Consul's order. The second spelling, without
// "destination", is that of Consul before 1.9; dashboards still use it.
func tagRules() []tagRule {
	var out []tagRule
	for _, s := range clusterSegments()[:6] {
		out = append(out, tagRule{"consul.destination." + s.name, clusterRegex(`(?:passthrough~)?`, s.name)})
	}
	out = append(out, upstreamPart("consul.destination.peer", `^cluster\.(X\.(?:X\.)?(X)\.external\.X\.consul\.)`))
	late := []string{"routing_type", "trust_domain", "target", "full_target"}
	for _, name := range late {
		out = append(out, tagRule{"consul.destination." + name, clusterRegex(`(?:passthrough~)?`, name)})
	}
	out = append(out,
		upstreamPart("consul.upstream.service", `^(?:tcp|http)\.upstream(?:_peered)?\.((X)(?:\.X)?(?:\.X)?\.X\.)`),
		upstreamPart("consul.upstream.datacenter", `^(?:tcp|http)\.upstream\.(X(?:\.X)?(?:\.X)?\.(X)\.)`),
		upstreamPart("consul.upstream.peer", `^(?:tcp|http)\.upstream_peered\.(X(?:\.X)?\.(X)\.)`),
		upstreamPart("consul.upstream.namespace", `^(?:tcp|http)\.upstream(?:_peered)?\.(X(?:\.(X))?(?:\.X)?\.X\.)`),
		upstreamPart("consul.upstream.partition", `^(?:tcp|http)\.upstream\.(X(?:\.X)?(?:\.(X))?\.X\.)`),
	)
	for _, name := range slices.Concat([]string{"custom_hash", "service_subset", "service", "namespace", "datacenter"}, late) {
		out = append(out, tagRule{"consul." + name, clusterRegex("", name)})
	}
	return out
}

func upstreamPart(tag, shape string) tagRule {
	return tagRule{tag, strings.ReplaceAll(shape, "X", anyPart)}
}

// clusterRegex captures one segment, or with "target" everything up to the
// datacenter and with "full_target" everything up to the trust domain.
func clusterRegex(prefix, capture string) string {
	last := map[string]string{"target": "datacenter", "full_target": "trust_domain"}[capture]
	var b strings.Builder
	b.WriteString(`^cluster\.` + prefix + `(`)
	if last != "" {
		b.WriteString(`(`)
	}
	for _, s := range clusterSegments() {
		part := anyPart
		// A peered cluster has neither partition nor datacenter in its name.
		if s.name == "routing_type" && (capture == "partition" || capture == "datacenter") {
			part = internalPart
		}
		if s.name == capture {
			part = `(` + part + `)`
		}
		if s.name == last {
			part += `)`
		}
		b.WriteString(s.before + part + s.after)
	}
	return b.String() + `\.consul\.)`
}
