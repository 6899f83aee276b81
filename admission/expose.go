package admission

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Listeners of exposed paths that have no port of their own.
const (
	exposeFrom = 21500
	exposeTo   = 21999
)

// exposeChecks adds the paths of the annotation expose-checks to the configuration, so
// that callers outside of the mesh, such as a load balancer's health check, reach them.
func exposeChecks(t *task) {
	a, given := t.annotations.values[annotationExpose]
	if !given || t.cfg == nil || t.cfg.Gateway != nil {
		return
	}
	t.doc.refresh()
	added := false
	for _, p := range exposedPaths(t, a) {
		present := func(have config.ExposePath) bool {
			return have.Path == p.Path &&
				have.LocalPathPort == p.LocalPathPort
		}
		if e := t.cfg.Proxy.Expose; e != nil && slices.ContainsFunc(e.Paths, present) {
			continue
		}
		if p.ListenerPort == 0 {
			p.ListenerPort = freeListener(t, p.Path)
			t.doc.report(codeDefault, a.path,
				"what", fmt.Sprintf("the proxy opens the path %s at port %d", p.Path, p.ListenerPort),
				"fix", "write /path:port:listener for another one")
		}
		if t.cfg, t.configuration = t.configurer().expose(t.configuration, p); t.cfg == nil {
			return
		}
		added = true
	}
	if added {
		in := t.injector()
		in.replaceSidecars(in.sidecars.all())
	}
}

// exposedPaths returns the paths that the annotation names: those of the checks for true, else a list of
// path:port and path:port:listener.
func exposedPaths(t *task, a annotation) []config.ExposePath {
	if all, err := strconv.ParseBool(a.value); err == nil {
		if !all {
			return nil
		}
		return checkPaths(t.cfg.Service)
	}
	paths, wrong := parsePaths(a.value)
	for _, word := range wrong {
		t.annotations.reportValue(annotationExpose, a, word, "true, or a list of /path:port and /path:port:listener")
	}
	return paths
}

// checkPaths returns the paths of a service's HTTP and gRPC checks.
func checkPaths(s *config.Service) []config.ExposePath {
	if s == nil {
		return nil
	}
	var paths []config.ExposePath
	for _, c := range s.Checks {
		p := config.ExposePath{Path: "/grpc.health.v1.Health/Check", Protocol: "http2"}
		target := "//" + c.GRPC
		if c.GRPC == "" {
			target = c.HTTP
		}
		u, err := url.Parse(target)
		if err != nil || c.GRPC == "" && !strings.HasPrefix(u.Path, "/") {
			continue
		}
		if c.GRPC == "" {
			p.Path, p.Protocol = u.Path, "http"
		}
		if p.LocalPathPort, _ = strconv.Atoi(u.Port()); p.LocalPathPort > 0 { // a URL's port is a number
			paths = append(paths, p)
		}
	}
	return paths
}

// freeListener returns a port for a path: the same one each time, unless it is taken.
func freeListener(t *task, path string) int {
	taken := map[int]bool{}
	for _, l := range meshPorts(t.cfg) {
		taken[l.port] = true
	}
	for _, u := range t.cfg.Proxy.Upstreams {
		taken[u.LocalBindPort] = true
	}
	index := 0
	if e := t.cfg.Proxy.Expose; e != nil {
		index = len(e.Paths)
		for _, p := range e.Paths {
			taken[p.ListenerPort] = true
		}
	}
	for _, c := range t.doc.Definition.ContainerDefinitions {
		for _, p := range c.PortMappings {
			if p.ContainerPort != nil {
				taken[*p.ContainerPort] = true
			}
		}
	}
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s|%d|%s", t.cfg.Service.Name, index, path)
	const count = exposeTo - exposeFrom + 1
	for i := range count {
		if port := exposeFrom + (int(hash.Sum32()%count)+i)%count; !taken[port] {
			return port
		}
	}
	return exposeFrom // taken: a finding of the ports
}

// expose adds a path to a configuration.
func (c configurer) expose(configuration []byte, p config.ExposePath) (*config.Config, []byte) {
	root := taskdef.NewNode(json.RawMessage(configuration))
	list := object(object(root, "proxy"), "expose")
	fill(list, "paths", []config.ExposePath{})
	list.Get("paths").Append(taskdef.NewNode(p))
	return c.parse(root)
}

// checkExpose reports an annotation that exposes nothing.
func checkExpose(t *task) {
	a, given := t.annotations.values[annotationExpose]
	if wanted, err := strconv.ParseBool(a.value); !given || err == nil && !wanted {
		return
	}
	switch {
	case t.cfg == nil || t.cfg.Gateway != nil:
		t.doc.report(codeExpose, a.path, "annotation", annotationExpose, "message",
			"the task has no sidecar that could expose a path")
	case a.value == "true" && len(checkPaths(t.cfg.Service)) == 0:
		t.doc.report(codeExpose, a.path, "annotation", annotationExpose, "message",
			"the configuration has no HTTP or gRPC check")
	}
}
