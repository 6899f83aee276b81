package admission

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// annotationPrefix is that of every annotation, a docker label or a tag of the definition.
const annotationPrefix = "consul.hashicorp.com/"

// Annotations. A key follows annotationMeta; taskdef.SealTag is one, too.
const (
	annotationInject      = annotationPrefix + "mesh-inject"
	annotationServiceName = annotationPrefix + "service-name"
	annotationServicePort = annotationPrefix + "service-port"
	annotationUpstreams   = annotationPrefix + "upstreams"
	annotationTags        = annotationPrefix + "service-tags"
	annotationMeta        = annotationPrefix + "service-meta-"
	annotationGateway     = annotationPrefix + "gateway-kind"
	annotationNative      = annotationPrefix + "native"
	annotationCPU         = annotationPrefix + "sidecar-cpu"
	annotationMemory      = annotationPrefix + "sidecar-memory"
	annotationConcurrency = annotationPrefix + "envoy-concurrency"
	annotationDepends     = annotationPrefix + "depends"
	annotationWrap        = annotationPrefix + "wrap"
	annotationFromImage   = annotationPrefix + "from-image"
	annotationNamespace   = annotationPrefix + "namespace"
	annotationPartition   = annotationPrefix + "partition"
	annotationInjectedBy  = annotationPrefix + "injected-by"
	annotationMade        = annotationPrefix + "injected-seal"
	annotationMesh        = annotationPrefix + "mesh"
	annotationExpose      = annotationPrefix + "expose-checks"
	annotationKind        = annotationPrefix + "kind"
	annotationKeyPrefixes = annotationPrefix + "kv-prefixes"
	annotationPolicies    = annotationPrefix + "policies"
	annotationTTL         = annotationPrefix + "ttl"
)

// recognizeAnnotation reports whether there is an annotation of the name, and otherwise what
// to do about it.
func recognizeAnnotation(name string) (fix string, known bool) {
	names := []string{
		annotationInject, annotationServiceName, annotationServicePort, annotationUpstreams, annotationTags,
		annotationGateway,
		annotationNative, annotationCPU, annotationMemory, annotationConcurrency, annotationDepends,
		annotationNamespace, annotationPartition,
		annotationInjectedBy, annotationMade, annotationMesh, annotationExpose, annotationKind, taskdef.SealTag,
		annotationKeyPrefixes, annotationPolicies, annotationTTL, annotationWrap, annotationFromImage,
	}
	if slices.Contains(names, name) || strings.HasPrefix(name, annotationMeta) {
		return "", true
	}
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], annotationPrefix) // a common beginning makes all names near
	}
	if near := config.Nearest(strings.TrimPrefix(name, annotationPrefix), names); near != "" {
		return "did you mean " + annotationPrefix + near + "?", false
	}
	return "remove it", false
}

// upstream is one element of the annotation upstreams.
type upstream struct {
	DestinationName string `json:"destinationName"`
	Datacenter      string `json:"datacenter,omitempty"`
	LocalBindPort   int    `json:"localBindPort"`
}

// parseUpstreams reads name:port and name:port:datacenter, and returns what is neither.
func parseUpstreams(value string) (list []upstream, wrong []string) {
	list = []upstream{}
	for _, word := range config.SplitWords(value) {
		parts := strings.Split(word, ":")
		port := 0
		if len(parts) == 2 || len(parts) == 3 {
			port, _ = strconv.Atoi(parts[1])
		}
		if parts[0] == "" || port < 1 || port > 65535 {
			wrong = append(wrong, word)
			continue
		}
		u := upstream{DestinationName: parts[0], LocalBindPort: port}
		if len(parts) == 3 {
			u.Datacenter = parts[2]
		}
		list = append(list, u)
	}
	return list, wrong
}

// parsePaths reads /path:port and /path:port:listener, and returns what is neither.
func parsePaths(value string) (list []config.ExposePath, wrong []string) {
	for _, word := range config.SplitWords(value) {
		parts := strings.Split(word, ":")
		p := config.ExposePath{Path: parts[0], Protocol: "http"}
		var err error
		if len(parts) > 1 {
			p.LocalPathPort, err = strconv.Atoi(parts[1])
		}
		if err == nil && len(parts) > 2 {
			p.ListenerPort, err = strconv.Atoi(parts[2])
		}
		if err != nil || !strings.HasPrefix(p.Path, "/") || p.LocalPathPort < 1 || p.LocalPathPort > 65535 ||
			len(parts) > 3 {
			wrong = append(wrong, word)
			continue
		}
		list = append(list, p)
	}
	return list, wrong
}
