package workload

import (
	"regexp"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/config"
)

// envoyTag matches the version in a tag of an image of Envoy. All versions begin with 1.
var envoyTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[^0-9.])(1\.\d+\.\d+)`) })

// EnvoyVersion returns the version of Envoy that the reference of an image names, such as
// envoyproxy/envoy:distroless-v1.40.0; empty unless the image is called envoy, alone or with a suffix, and its tag has
// a version.
func EnvoyVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	if name != "envoy" && !strings.HasPrefix(name, "envoy-") {
		return ""
	}
	if found := envoyTag().FindStringSubmatch(tag); found != nil {
		return found[2]
	}
	return ""
}

// RecordVersion adds the version of this program to the meta of the workload, unless the user's has that key.
func (w Workload) RecordVersion(version string) {
	if w.Meta[config.MetaVersion] == "" && version != "" {
		w.Meta[config.MetaVersion] = version
	}
}
