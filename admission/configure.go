package admission

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// defaultBootstrapDir is where every task definition has the shared volume.
const defaultBootstrapDir = "/consul"

// configurer makes the configuration of a task. What it takes no value from is a finding.
type configurer struct {
	doc         *document
	annotations *annotations
	containers  *containers
	// file is the configuration of the mesh file, nil without one.
	file *taskdef.Node
}

func (t *task) configurer() configurer {
	return configurer{doc: t.doc, annotations: t.annotations, containers: t.containers, file: t.mesh.configuration}
}

// configure joins the mesh file, the annotations and the definition into the
// configuration of this task. What config refuses of it is a finding.
func (c configurer) configure() (*config.Config, []byte) {
	root := taskdef.NewNode(cmp.Or(c.file, &taskdef.Node{}))
	fill(root, "bootstrapDir", defaultBootstrapDir)
	if kind, is := c.annotations.value(annotationGateway); is {
		object(root, "gateway").Set("kind", taskdef.NewNode(kind))
	}
	if root.Get("gateway") != nil {
		c.identify(root.Get("gateway"))
	} else {
		c.configureService(root)
	}
	if root.Get("consulServers") != nil {
		c.configureRedirection(root)
	}
	c.checkMeta("service", root.Get("service").Get("meta"))
	c.checkMeta("gateway", root.Get("gateway").Get("meta"))
	return c.parse(root)
}

// checkMeta checks the metadata of the mesh file, and how much it is with the annotations.
func (c configurer) checkMeta(section string, meta *taskdef.Node) {
	if meta == nil {
		return
	}
	annotated := c.annotations.serviceMeta()
	for _, key := range meta.Keys() {
		value, is := meta.Get(key).Text()
		if _, from := annotated[key]; from || !is || key == config.MetaWANFederation {
			continue // the annotations are checked before
		}
		for _, p := range checkAnnotation(annotationMeta+key, value) {
			c.doc.report(codeConfig, "$", "path", "$."+section+".meta."+key, "message",
				fmt.Sprintf("is %q, want %s", p.Value, p.Want))
		}
	}
	if n := len(meta.Keys()); n > maxMeta && len(annotated) <= maxMeta {
		c.doc.report(codeConfig, "$", "path", "$."+section+".meta", "message",
			fmt.Sprintf("has %d pairs with those of the annotations, and Consul takes %d", n, maxMeta))
	}
}

// parse checks a configuration, and returns it with its text; nil when all of it is refused.
func (c configurer) parse(root *taskdef.Node) (*config.Config, []byte) {
	cfg, _, err := config.Parse(root.JSON())
	if invalid, is := errors.AsType[*config.InvalidError](err); is {
		c.reportInvalid(root, invalid.Violations)
		cfg, _, _ = config.Parse(root.JSON()) // what is still invalid is reported
	}
	return cfg, root.JSON()
}

// reportInvalid reports what config refuses, and removes it, so that the rest of the
// definition is checked as well.
func (c configurer) reportInvalid(root *taskdef.Node, violations []config.Finding) {
	for _, v := range violations {
		section, member, _ := strings.Cut(strings.TrimPrefix(v.Path, "$."), ".")
		if name, is := root.Get(section).Get("name").Text(); is && member == "name" {
			c.doc.report(codeServiceName, c.nameSource(section), "name", name)
		} else {
			message := v.Message
			if member == "" { // of the root, where the mesh file has one more
				message = strings.Replace(message, "; allowed: ", "; allowed: "+meshMember+", ", 1)
			}
			c.doc.report(codeConfig, c.sourceOf(v.Path), "path", v.Path, "message", message)
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
func (c configurer) configureService(root *taskdef.Node) {
	service := object(root, "service")
	c.identify(service)
	if port, given := c.annotations.number(annotationServicePort, 0, 65535); given {
		service.Set("port", taskdef.NewNode(port))
	}
	if service.Get("port") == nil {
		service.Set("port", taskdef.NewNode(c.containers.servicePort()))
	}
	if list, given := c.annotations.upstreams(); given {
		object(root, "proxy").Set("upstreams", taskdef.NewNode(list))
	}
	if service.Get("checks") == nil {
		fill(root, "healthSyncContainers", c.containers.syncContainers())
	}
}

// configureRedirection writes what the mesh file has not about the transparent proxy: off where it
// might not work, since absent means on, and else past which ports of the task it goes.
func (c configurer) configureRedirection(root *taskdef.Node) {
	if !isEC2(c.doc) && (root.Get("transparentProxy") == nil || !c.doc.Definition.IsFargate()) {
		fill(object(root, "transparentProxy"), "enabled", false)
	}
	enabled := root.Get("transparentProxy").Get("enabled")
	if enabled != nil && string(enabled.JSON()) == "false" || root.Get("gateway") != nil {
		return
	}
	service, _ := strconv.Atoi(string(root.Get("service").Get("port").JSON()))
	if ports := plainPorts(c.doc.Definition, service); len(ports) > 0 {
		fill(object(root, "transparentProxy"), "excludeInboundPorts", ports)
	}
}

// identify writes what a service and a gateway both have.
func (c configurer) identify(n *taskdef.Node) {
	for _, name := range []struct{ annotation, key string }{
		{annotationServiceName, "name"}, {annotationNamespace, "namespace"}, {annotationPartition, "partition"},
	} {
		if value, given := c.annotations.value(name.annotation); given {
			n.Set(name.key, taskdef.NewNode(value))
		}
	}
	c.nameAfterFamily(n)
	if list, given := c.annotations.value(annotationTags); given {
		n.Set("tags", taskdef.NewNode(append([]string{}, config.SplitWords(list)...)))
	}
	meta := c.annotations.serviceMeta()
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		object(n, "meta").Set(key, taskdef.NewNode(meta[key]))
	}
}

// nameAfterFamily names a service or gateway that has no name. A family that is not known is left
// to mesh-init.
func (c configurer) nameAfterFamily(n *taskdef.Node) {
	if name := n.Get("name"); name != nil && !name.IsNull() {
		return
	}
	workload := "service"
	if n.Get("kind") != nil {
		workload = "gateway"
	}
	family := strings.ToLower(c.doc.Definition.Family)
	if family == "" {
		c.doc.report(codeServiceFrom, "$", "workload", workload, "name", "at its start",
			"what", "the family, which is not known yet")
		return
	}
	fill(n, "name", family)
	c.doc.report(codeServiceFrom, "$.family", "workload", workload, "name", family, "what", "the family")
}

// environment returns the configuration as the variable has it.
func (b sidecarBuilder) environment() taskdef.KeyValue {
	return taskdef.KeyValue{Name: config.EnvVar, Value: string(b.configuration)}
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
