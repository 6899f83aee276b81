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
	if root.Get("consulServers") != nil {
		t.configureRedirection(root)
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
			message := v.Message
			if member == "" { // of the root, where the mesh file has one more
				message = strings.Replace(message, "; allowed: ", "; allowed: "+meshMember+", ", 1)
			}
			t.add(codeConfig, t.sourceOf(v.Path), "path", v.Path, "message", message)
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
		service.Set("port", taskdef.NewNode(t.servicePort()))
	}
	if list, given := t.upstreams(); given {
		object(root, "proxy").Set("upstreams", taskdef.NewNode(list))
	}
	if service.Get("checks") == nil {
		fill(root, "healthSyncContainers", t.syncContainers())
	}
}

// configureRedirection writes what the mesh file has not about the transparent proxy: off where it
// might not work, since absent means on, and else past which ports of the task it goes.
func (t *task) configureRedirection(root *taskdef.Node) {
	if !isEC2(t.doc) && (root.Get("transparentProxy") == nil || !t.doc.Definition.IsFargate()) {
		fill(object(root, "transparentProxy"), "enabled", false)
	}
	enabled := root.Get("transparentProxy").Get("enabled")
	if enabled != nil && string(enabled.JSON()) == "false" || root.Get("gateway") != nil {
		return
	}
	service, _ := strconv.Atoi(string(root.Get("service").Get("port").JSON()))
	if ports := plainPorts(t.doc.Definition, service); len(ports) > 0 {
		fill(object(root, "transparentProxy"), "excludeInboundPorts", ports)
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
	t.nameAfterFamily(n)
	if list, given := t.notes.value(annotationTags); given {
		n.Set("tags", taskdef.NewNode(append([]string{}, config.SplitWords(list)...)))
	}
	meta := t.notes.serviceMeta()
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		object(n, "meta").Set(key, taskdef.NewNode(meta[key]))
	}
}

// nameAfterFamily names a service or gateway that has no name. A family that is not known is left
// to mesh-init.
func (t *task) nameAfterFamily(n *taskdef.Node) {
	if name := n.Get("name"); name != nil && !name.IsNull() {
		return
	}
	workload := "service"
	if n.Get("kind") != nil {
		workload = "gateway"
	}
	family := strings.ToLower(t.doc.Definition.Family)
	if family == "" {
		t.add(codeServiceFrom, "$", "workload", workload, "name", "at its start",
			"what", "the family, which is not known yet")
		return
	}
	fill(n, "name", family)
	t.add(codeServiceFrom, "$.family", "workload", workload, "name", family, "what", "the family")
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
