package config

import (
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Keys of the service meta that every registration has, whatever the user's meta
// holds: clean-up finds the services of stopped tasks by them. The value of
// MetaSource is SourceValue.
const (
	MetaTaskID  = "task-id"
	MetaTaskARN = "task-arn"
	MetaSource  = "source"
	SourceValue = "consul-ecs"
)

// Keys of the service meta for the versions of what serves the instance: of the consul-ecs that registered it, and
// of its Envoy, where the image tells it. The user's meta wins. Consul reserves keys that begin with "consul-".
const (
	MetaVersion      = "mesh-init-version"
	MetaEnvoyVersion = "envoy-version"
)

// MetaWANFederation is the service meta key by whose value "1" Consul takes a mesh gateway
// for one that joins the datacenters of a federation.
const MetaWANFederation = "consul-wan-federation"

// Keys of the login meta, by which clean-up finds the tokens of stopped tasks, so that
// no configuration may replace them.
const (
	LoginMetaTaskID  = "consul.hashicorp.com/task-id"
	LoginMetaCluster = "consul.hashicorp.com/cluster"
)

// LoginMetaRenewed is the key of the login meta that reports, by "true", that the token is replaced
// before it expires. consul-dataplane keeps the token it started with: "false".
const LoginMetaRenewed = "consul.hashicorp.com/renewed"

// Names of the auth methods that the controller creates, and of the tags of a
// task's IAM role that their binding rules read. Those know no slash, hence the
// dots.
const (
	ServiceAuthMethod = "iam-ecs-service-token"
	ClientAuthMethod  = "iam-ecs-client-token"
	TagServiceName    = "consul.hashicorp.com.service-name"
	TagNamespace      = "consul.hashicorp.com.namespace"
	TagGatewayKind    = "consul.hashicorp.com.gateway-kind"
)

// MinTokenTTL and MaxTokenTTL bound the life of a token that a task obtains from the token
// broker.
const MinTokenTTL, MaxTokenTTL = time.Minute, 168 * time.Hour

// TaskLife in place of a duration means no expiry: the token is revoked when its task has
// stopped.
const TaskLife = "task"

// SplitWords returns the elements of the list in a docker label or tag: commas or white space
// separate them, since a tag cannot have commas.
func SplitWords(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// NodeMetaSynthetic is the key of the node meta that marks, with the value "true", the
// node of a cluster's services that are registered without an agent.
const NodeMetaSynthetic = "synthetic-node"

// dnsLabel is compiled by its first user: few commands need it.
var dnsLabel = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
})

// IsDNSLabel reports whether Consul Enterprise takes the name for a namespace or partition.
func IsDNSLabel(name string) bool { return dnsLabel().MatchString(name) }
