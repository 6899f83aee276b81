package admission

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// defaultBootstrapDir is where every task definition has the shared volume.
const defaultBootstrapDir = "/consul"

// configure joins the mesh file, the annotations and the definition into the
// configuration of this task. What config refuses of it is a finding, and cfg stays nil.
func (t *task) configure() {
	root := taskdef.NewNode(cmp.Or(t.mesh.configuration, &taskdef.Node{}))
	fill(root, "bootstrapDir", defaultBootstrapDir)
	if kind, is := t.notes.value(annotationGateway); is {
		object(root, "gateway").Set("kind", taskdef.NewNode(kind))
	}
	if root.Get("gateway") != nil {
		t.identify(root.Get("gateway"))
	} else {
		t.configureService(root)
	}
	if root.Get("consulServers") != nil && root.Get("transparentProxy") == nil && t.doc.Definition.IsFargate() {
		root.Set("transparentProxy", taskdef.NewNode(map[string]bool{"enabled": false})) // absent means enabled, which Fargate cannot do
	}
	t.checkMeta("service", root.Get("service").Get("meta"))
	t.checkMeta("gateway", root.Get("gateway").Get("meta"))
	t.parse(root)
}

// checkMeta checks the metadata of the mesh file, and how much it is with the annotations.
func (t *task) checkMeta(section string, meta *taskdef.Node) {
	if meta == nil {
		return
	}
	noted := t.notes.serviceMeta()
	for _, key := range meta.Keys() {
		value, is := meta.Get(key).Text()
		if _, from := noted[key]; from || !is || key == config.MetaWANFederation {
			continue // the annotations are checked before
		}
		for _, p := range checkAnnotation(annotationMeta+key, value) {
			t.add(codeConfig, "$", "path", "$."+section+".meta."+key, "message", fmt.Sprintf("is %q, want %s", p.Value, p.Want))
		}
	}
	if n := len(meta.Keys()); n > maxMeta && len(noted) <= maxMeta {
		t.add(codeConfig, "$", "path", "$."+section+".meta", "message", fmt.Sprintf("has %d pairs with those of the annotations, and Consul takes %d", n, maxMeta))
	}
}

// parse checks a configuration and makes it that of the task.
func (t *task) parse(root *taskdef.Node) {
	var err error
	t.configuration = root.JSON()
	t.cfg, _, err = config.Parse(t.configuration)
	if invalid, is := errors.AsType[*config.InvalidError](err); is {
		t.reportInvalid(root, invalid.Violations)
		t.configuration = root.JSON()
		t.cfg, _, _ = config.Parse(t.configuration) // what is still invalid is reported
	}
}

// reportInvalid reports what config refuses, and removes it, so that the rest of the
// definition is checked as well.
func (t *task) reportInvalid(root *taskdef.Node, violations []config.Finding) {
	for _, v := range violations {
		section, member, _ := strings.Cut(strings.TrimPrefix(v.Path, "$."), ".")
		if name, is := root.Get(section).Get("name").Text(); is && member == "name" {
			t.add(codeServiceName, t.namedAt(section), "name", name)
		} else {
			t.add(codeConfig, t.sourceOf(v.Path), "path", v.Path, "message", v.Message)
		}
	}
	for _, v := range violations {
		section, member, _ := strings.Cut(strings.TrimPrefix(v.Path, "$."), ".")
		key := strings.FieldsFunc(member, func(r rune) bool { return r == '.' || r == '[' })
		if found := root.Get(section); len(key) > 0 && found.IsObject() {
			found.Delete(key[0])
		} else {
			root.Delete(section)
		}
	}
}

// configureService writes the members that are about a service and its proxy.
func (t *task) configureService(root *taskdef.Node) {
	service := object(root, "service")
	t.identify(service)
	if port, given := t.number(annotationServicePort, 0, 65535); given {
		service.Set("port", taskdef.NewNode(port))
	}
	if service.Get("port") == nil {
		service.Set("port", taskdef.NewNode(t.firstPort()))
	}
	if list, given := t.upstreams(); given {
		object(root, "proxy").Set("upstreams", taskdef.NewNode(list))
	}
	if service.Get("checks") == nil {
		fill(root, "healthSyncContainers", t.syncContainers())
	}
}

// identify writes what a service and a gateway both have.
func (t *task) identify(n *taskdef.Node) {
	for _, name := range []struct{ annotation, key string }{
		{annotationServiceName, "name"}, {annotationNamespace, "namespace"}, {annotationPartition, "partition"},
	} {
		if value, given := t.notes.value(name.annotation); given {
			n.Set(name.key, taskdef.NewNode(value))
		}
	}
	if family := t.doc.Definition.Family; family != "" {
		fill(n, "name", strings.ToLower(family))
	}
	if list, given := t.notes.value(annotationTags); given {
		n.Set("tags", taskdef.NewNode(append([]string{}, config.SplitWords(list)...)))
	}
	meta := t.notes.serviceMeta()
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		object(n, "meta").Set(key, taskdef.NewNode(meta[key]))
	}
}

// firstPort is the first TCP port of the first essential application, 0 without one.
func (t *task) firstPort() int {
	first := t.primary()
	if first < 0 {
		return 0
	}
	port, computed := t.tcpPort(first)
	if computed != "" {
		t.report(codeServicePort, computed, "why", fmt.Sprintf("the port of container %s is known at deployment only", t.containerName(first)))
	}
	if port > 0 || computed != "" {
		return port
	}
	for _, i := range t.applications() {
		if other, _ := t.tcpPort(i); other > 0 {
			t.add(codeServicePort, fmt.Sprintf("$.containerDefinitions[%d]", first), "why",
				fmt.Sprintf("container %s, the first essential application, has no TCP port, but container %s has port %d", t.containerName(first), t.containerName(i), other))
			break
		}
	}
	return 0
}

// tcpPort is the first port of a container that is not of UDP, 0 without one, or the path of
// what CloudFormation computes before it.
func (t *task) tcpPort(i int) (port int, computed string) {
	at := fmt.Sprintf("$.containerDefinitions[%d].portMappings", i)
	for j, p := range t.doc.Definition.ContainerDefinitions[i].PortMappings {
		mapping := t.doc.Locate(fmt.Sprintf("%s[%d]", at, j))
		switch {
		case p.ContainerPort != nil && p.Protocol != "udp":
			return *p.ContainerPort, ""
		case p.ContainerPort == nil && p.Protocol != "udp" && slices.ContainsFunc(t.doc.Unknown(), func(path string) bool { return strings.HasPrefix(path, mapping) }):
			return 0, mapping
		}
	}
	if t.doc.IsUnknown(at) {
		return 0, t.doc.Locate(at)
	}
	return 0, ""
}

// syncContainers are the essential applications that have a health check.
func (t *task) syncContainers() []string {
	names := []string{}
	for _, i := range t.applications() {
		if c := t.doc.Definition.ContainerDefinitions[i]; c.Name != "" && c.IsEssential() && c.HealthCheck.Enabled() {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// environment is the configuration as the variable has it.
func (t *task) environment() taskdef.KeyValue {
	return taskdef.KeyValue{Name: config.EnvVar, Value: string(t.configuration)}
}

// fill sets a member that is absent.
func fill(n *taskdef.Node, key string, value any) {
	if found := n.Get(key); found == nil || found.IsNull() {
		n.Set(key, taskdef.NewNode(value))
	}
}

// object returns the member that is an object, and makes it when it is absent.
func object(n *taskdef.Node, key string) *taskdef.Node {
	fill(n, key, &taskdef.Node{})
	return n.Get(key)
}
