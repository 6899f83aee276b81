package traffic

import (
	"strings"

	"github.com/meshtask/consul-ecs/internal/failure"
)

// kind is one way in which traffic fails.
type kind struct {
	id failure.ID
	// least is how many events within quiet make a fault: one connection that fails may be chance.
	least uint64
}

var (
	denied       = &kind{"CE-TRAFFIC-DENIED", 1}
	noInstance   = &kind{"CE-TRAFFIC-NO-INSTANCE", 2}
	noRoute      = &kind{"CE-TRAFFIC-NO-ROUTE", 2}
	noConnection = &kind{"CE-TRAFFIC-CONNECT", 2}
	upstreamTLS  = &kind{"CE-TRAFFIC-TLS", 2}
	callerTLS    = &kind{"CE-TRAFFIC-CALLER-TLS", 2}
	appRefused   = &kind{"CE-TRAFFIC-APP-REFUSED", 2}
	timedOut     = &kind{"CE-TRAFFIC-TIMEOUT", 2}
	reset        = &kind{"CE-TRAFFIC-RESET", 2}
	badProtocol  = &kind{"CE-TRAFFIC-PROTOCOL", 2}
	overflow     = &kind{"CE-TRAFFIC-LIMIT", 1}
)

// texts returns what happens and what to do about it.
func (k *kind) texts() (what, fix string) {
	f, _ := failure.Find(string(k.id))
	what = strings.TrimSuffix(f.Title, ".")
	if !strings.HasPrefix(what, "TLS") {
		what = strings.ToLower(what[:1]) + what[1:]
	}
	return what, f.Fix
}

// Whom the traffic of a counter goes to or comes from.
const (
	application = "application"
	callers     = "callers"
)

// counter is what a counter of Envoy stands for.
type counter struct {
	kind *kind
	// peer is application, callers or the name of an upstream.
	peer, reason string
}

// clusterCounter is a counter of a cluster: what it means for an upstream, and for the application.
type clusterCounter struct {
	suffix        string
	upstream, app *kind
	reason        string
}

// clusterCounters returns the counters of clusters.
func clusterCounters() []clusterCounter {
	return []clusterCounter{
		{"upstream_cx_none_healthy", noInstance, nil, ""},
		{"upstream_cx_connect_timeout", noConnection, appRefused, reasonTimedOut},
		{"upstream_cx_connect_fail", noConnection, appRefused, reasonRefused},
		{"upstream_rq_timeout", timedOut, timedOut, ""},
		{"upstream_rq_per_try_timeout", timedOut, timedOut, "of one try"},
		{"upstream_rq_rx_reset", reset, reset, ""},
		{"upstream_cx_protocol_error", badProtocol, badProtocol, ""},
		{"upstream_cx_overflow", overflow, overflow, "connections"},
		{"upstream_rq_pending_overflow", overflow, overflow, "waiting requests"},
		{"ssl.fail_verify_error", upstreamTLS, nil, "its certificate is not of a CA that is trusted, or not valid now"},
		{"ssl.fail_verify_san", upstreamTLS, nil, "its certificate is another service's"},
		{"ssl.connection_error", upstreamTLS, nil, "no TLS, or refused by the peer"},
	}
}

const (
	reasonTimedOut = "timed out"
	reasonRefused  = "refused or closed"
)

// countersFilter and membersFilter choose what is read of /stats, and are regular expressions of Envoy. Only faults
// change the counters, so that the answer of an Envoy without any is empty.
const countersFilter = `(^(connect_authz|http\..*)\.rbac\.denied$` +
	`|^cluster\..*\.(upstream_(cx_(none_healthy|connect_fail|connect_timeout|protocol_error|overflow)` +
	`|rq_(timeout|per_try_timeout|rx_reset|pending_overflow))|ssl\.(fail_verify_(error|san)|connection_error))$` +
	`|^listener\..*\.ssl\.(fail_verify_(error|san|no_cert)|connection_error)$` +
	`|^(http|tcp)\.upstream\..*\.(no_route|no_cluster|downstream_cx_no_route|downstream_cx_protocol_error)$` +
	`|^http\.public_listener\.downstream_cx_protocol_error$)`

// classify returns what a counter stands for; ok is false when it is no fault of the mesh.
func classify(name string) (c counter, ok bool) {
	group, rest, _ := strings.Cut(name, ".")
	switch {
	case strings.HasSuffix(name, ".rbac.denied"):
		reason := "connections"
		if group == "http" {
			reason = "requests"
		}
		return counter{denied, callers, reason}, true
	case group == "cluster":
		return ofCluster(rest)
	case group == "listener":
		return ofListener(rest)
	case name == "http.public_listener.downstream_cx_protocol_error":
		return counter{badProtocol, callers, ""}, true
	}
	rest, ok = strings.CutPrefix(rest, "upstream.")
	upstream, _, _ := strings.Cut(rest, ".")
	c = counter{noRoute, upstream, ""}
	if strings.HasSuffix(name, "protocol_error") {
		c.kind, c.reason = badProtocol, "of the application"
	}
	return c, ok
}

func ofCluster(name string) (counter, bool) {
	for _, c := range clusterCounters() {
		cluster, ok := strings.CutSuffix(name, "."+c.suffix)
		if !ok {
			continue
		}
		if cluster == "local_app" {
			return counter{c.app, application, c.reason}, c.app != nil
		}
		upstream, ok := serviceOf(cluster)
		return counter{c.upstream, upstream, c.reason}, ok
	}
	return counter{}, false
}

func ofListener(name string) (counter, bool) {
	_, suffix, _ := strings.Cut(name, ".ssl.")
	reason, ok := map[string]string{
		"fail_verify_no_cert": "no certificate",
		"fail_verify_error":   "certificate not of a CA that is trusted, or not valid now",
		"fail_verify_san":     "certificate of another identity",
		"connection_error":    "no TLS, or refused by the peer",
	}[suffix]
	return counter{callerTLS, callers, reason}, ok
}

// serviceOf returns the service of a cluster that Consul has named: [subset.]service.namespace.[partition.]datacenter,
// then internal or external and the trust domain. Prefixes end with ~.
func serviceOf(cluster string) (string, bool) {
	cluster = cluster[strings.LastIndex(cluster, "~")+1:]
	before, _, ok := strings.Cut(cluster, ".internal.")
	if !ok {
		before, _, ok = strings.Cut(cluster, ".external.")
	}
	labels := strings.Split(before, ".")
	if len(labels) == 4 && labels[2] == "default" {
		return labels[1], ok
	}
	return labels[0], ok
}
