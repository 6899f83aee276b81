package admission

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
)

// defaultBootstrapDir is where every task definition has the shared volume.
const defaultBootstrapDir = "/consul"

// configure joins the mesh file, the annotations and the definition into the
// configuration of this task. What config refuses of it is a finding, and cfg stays nil.
func (t *task) configure() error {
	root := t.mesh.configuration
	if root == nil {
		root, _ = taskdef.NewNode(map[string]any{}) // it is JSON
	}
	root, err := taskdef.NewNode(root)
	if err != nil {
		return err
	}
	b := builder{}
	b.fill(root, "bootstrapDir", defaultBootstrapDir)
	if kind, is := t.notes.value(annGateway); is {
		b.put(b.object(root, "gateway"), "kind", kind)
	}
	if root.Get("gateway") != nil {
		t.identify(&b, root.Get("gateway"))
	} else {
		t.configureService(&b, root)
	}
	if root.Get("consulServers") != nil && root.Get("transparentProxy") == nil && t.doc.Definition.IsFargate() {
		b.put(root, "transparentProxy", map[string]bool{"enabled": false}) // absent means enabled, which Fargate cannot do
	}
	if b.err != nil {
		return b.err
	}
	return t.parse(root)
}

// parse checks a configuration and makes it that of the task.
func (t *task) parse(root *taskdef.Node) error {
	var err error
	t.cfg = nil
	if t.configuration, err = root.MarshalJSON(); err != nil {
		return err
	}
	cfg, _, err := config.Parse(t.configuration)
	if invalid, is := errors.AsType[*config.InvalidError](err); is {
		for _, v := range invalid.Violations {
			t.report(codeConfig, "$", "path", v.Path, "message", v.Message)
		}
		return nil
	}
	t.cfg = cfg
	return err
}

// configureService writes the members that are about a service and its proxy.
func (t *task) configureService(b *builder, root *taskdef.Node) {
	service := b.object(root, "service")
	t.identify(b, service)
	if port, given := t.number(annServicePort, 0, 65535); given {
		b.put(service, "port", port)
	}
	b.fill(service, "port", t.firstPort())
	if list, given := t.upstreams(); given {
		b.put(b.object(root, "proxy"), "upstreams", list)
	}
	if service.Get("checks") == nil {
		b.fill(root, "healthSyncContainers", t.syncContainers())
	}
}

// identify writes what a service and a gateway both have.
func (t *task) identify(b *builder, n *taskdef.Node) {
	for _, name := range []struct{ annotation, key string }{
		{annServiceName, "name"}, {annNamespace, "namespace"}, {annPartition, "partition"},
	} {
		if value, given := t.notes.value(name.annotation); given {
			b.put(n, name.key, value)
		}
	}
	if family := t.doc.Definition.Family; family != "" {
		b.fill(n, "name", strings.ToLower(family))
	}
	if list, given := t.notes.value(annTags); given {
		b.put(n, "tags", append([]string{}, words(list)...))
	}
	if meta := t.notes.serviceMeta(); len(meta) > 0 {
		b.put(n, "meta", meta)
	}
}

// firstPort is the first port of the first essential application, 0 without one.
func (t *task) firstPort() int {
	c := t.primary()
	if c == nil {
		return 0
	}
	for _, p := range c.PortMappings {
		if p.ContainerPort != nil {
			return *p.ContainerPort
		}
	}
	return 0
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

// builder writes members of a configuration, up to the first error.
type builder struct{ err error }

func (b *builder) put(n *taskdef.Node, key string, value any) {
	node, err := taskdef.NewNode(value)
	if err != nil {
		b.err = err
		return
	}
	n.Set(key, node)
}

// fill is put for a member that is absent.
func (b *builder) fill(n *taskdef.Node, key string, value any) {
	if found := n.Get(key); found == nil || found.IsNull() {
		b.put(n, key, value)
	}
}

// object returns the member that is an object, and makes it when it is absent.
func (b *builder) object(n *taskdef.Node, key string) *taskdef.Node {
	b.fill(n, key, json.RawMessage("{}"))
	return n.Get(key)
}
