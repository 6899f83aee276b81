package annotation

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
)

// Prefix is that of every annotation, a docker label or a tag of the definition.
const Prefix = "consul.hashicorp.com/"

// Names of annotations, without Prefix. Meta is followed by a key.
const (
	Inject      = "mesh-inject"
	ServiceName = "service-name"
	ServicePort = "service-port"
	Upstreams   = "upstreams"
	Tags        = "service-tags"
	Meta        = "service-meta-"
	Gateway     = "gateway-kind"
	Native      = "native"
	CPU         = "sidecar-cpu"
	Memory      = "sidecar-memory"
	Depends     = "depends"
	Namespace   = "namespace"
	Partition   = "partition"
	InjectedBy  = "injected-by"
	Mesh        = "mesh"
	Expose      = "expose-checks"
	Kind        = "kind"
	Admission   = "admission"
	KeyPrefixes = "kv-prefixes"
	Policies    = "policies"
	TTL         = "ttl"
)

// Recognize reports whether there is an annotation of the name, and otherwise what to do
// about it.
func Recognize(name string) (fix string, known bool) {
	names := []string{
		Inject, ServiceName, ServicePort, Upstreams, Tags, Gateway, Native, CPU, Memory, Depends, Namespace, Partition,
		InjectedBy, Mesh, Expose, Kind, Admission, KeyPrefixes, Policies, TTL,
	}
	if slices.Contains(names, name) || strings.HasPrefix(name, Meta) {
		return "", true
	}
	if near := config.Nearest(name, names); near != "" {
		return "did you mean " + Prefix + near + "?", false
	}
	return "remove it", false
}

// Words are the elements of a list: commas or blanks separate them, since a tag cannot
// have commas.
func Words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Upstream is one element of the annotation Upstreams.
type Upstream struct {
	DestinationName string `json:"destinationName"`
	Datacenter      string `json:"datacenter,omitempty"`
	LocalBindPort   int    `json:"localBindPort"`
}

// ParseUpstreams reads name:port and name:port:datacenter, and returns what is neither.
func ParseUpstreams(value string) (list []Upstream, wrong []string) {
	list = []Upstream{}
	for _, word := range Words(value) {
		parts := strings.Split(word, ":")
		port := 0
		if len(parts) == 2 || len(parts) == 3 {
			port, _ = strconv.Atoi(parts[1])
		}
		if parts[0] == "" || port < 1 || port > 65535 {
			wrong = append(wrong, word)
			continue
		}
		u := Upstream{DestinationName: parts[0], LocalBindPort: port}
		if len(parts) == 3 {
			u.Datacenter = parts[2]
		}
		list = append(list, u)
	}
	return list, wrong
}

// ParsePaths reads /path:port and /path:port:listener, and returns what is neither.
func ParsePaths(value string) (list []config.ExposePath, wrong []string) {
	for _, word := range Words(value) {
		parts := strings.Split(word, ":")
		p := config.ExposePath{Path: parts[0], Protocol: "http"}
		var err error
		if len(parts) > 1 {
			p.LocalPathPort, err = strconv.Atoi(parts[1])
		}
		if err == nil && len(parts) > 2 {
			p.ListenerPort, err = strconv.Atoi(parts[2])
		}
		if err != nil || !strings.HasPrefix(p.Path, "/") || p.LocalPathPort < 1 || p.LocalPathPort > 65535 || len(parts) > 3 {
			wrong = append(wrong, word)
			continue
		}
		list = append(list, p)
	}
	return list, wrong
}
