package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// essentials returns the indexes of the essential applications: those that serve, and the known
// collectors beside them. Where all are collectors, they serve.
func (cs *containers) essentials() (serving, collectors []int) {
	for _, i := range cs.applications() {
		switch c := cs.doc.Definition.ContainerDefinitions[i]; {
		case !c.IsEssential():
		case isCollector(c.Image):
			collectors = append(collectors, i)
		default:
			serving = append(serving, i)
		}
	}
	if len(serving) == 0 {
		return collectors, nil
	}
	return serving, collectors
}

// candidate is a port that may be the service's: a TCP port of a container, or the path of what
// CloudFormation computes in its place.
type candidate struct {
	container, port int
	// declared is true when the definition has its protocol of applications.
	declared bool
	computed string
}

// candidates returns the TCP ports of a container, in its order.
func candidates(d *document, i int) []candidate {
	var found []candidate
	at := fmt.Sprintf("$.containerDefinitions[%d].portMappings", i)
	for j, p := range d.Definition.ContainerDefinitions[i].PortMappings {
		mapping := d.Locate(fmt.Sprintf("%s[%d]", at, j))
		within := func(path string) bool { return strings.HasPrefix(path, mapping) }
		switch {
		case p.Protocol == "udp":
		case p.ContainerPort != nil:
			found = append(found, candidate{container: i, port: *p.ContainerPort, declared: p.AppProtocol != ""})
		case slices.ContainsFunc(d.Unknown(), within):
			found = append(found, candidate{container: i, computed: mapping})
		}
	}
	if d.IsUnknown(at) {
		found = append(found, candidate{container: i, computed: d.Locate(at)})
	}
	return found
}

// servicePort returns a TCP port of an essential application: one with appProtocol, else the first one;
// 0 without any.
func (cs *containers) servicePort() int {
	serving, collectors := cs.essentials()
	var found, others []candidate
	for _, i := range serving {
		found = append(found, candidates(cs.doc, i)...)
	}
	for _, i := range collectors {
		others = append(others, candidates(cs.doc, i)...)
	}
	if len(found) == 0 {
		cs.reportNoPort(serving)
		return 0
	}
	chosen := found[max(0, slices.IndexFunc(found, func(c candidate) bool { return c.declared }))]
	if chosen.computed != "" {
		cs.doc.reportAt(codeServicePort, chosen.computed, "why",
			fmt.Sprintf("the port of container %s is known at deployment only", cs.doc.containerName(chosen.container)))
		return 0
	}
	cs.reportPort(chosen, serving[0], slices.DeleteFunc(found, func(c candidate) bool { return c == chosen }), others)
	return chosen.port
}

// reportPort reports the port that was chosen, where there was a choice: a warning unless the
// definition shows that it is the right one. First is the first essential application, others are
// the other ports of those, and collected the ports of collectors.
func (cs *containers) reportPort(chosen candidate, first int, others, collected []candidate) {
	unique := chosen.declared && !slices.ContainsFunc(others, func(c candidate) bool { return c.declared })
	also := cs.portNames(append(others, collected...))
	code, why := codePortChosen, ""
	switch {
	case unique && also != "":
		why = "which has an appProtocol, and not with " + also
	case unique:
		return
	case len(others) > 0:
		code, why = codePortChoice, "the first of several: it may be "+also
	case chosen.container != first:
		code, why = codePortChoice, fmt.Sprintf("as container %s, the first essential application, has no TCP port",
			cs.doc.containerName(first))
	case also != "":
		why = "and not with " + also + ", which is known as a collector"
	default:
		return
	}
	cs.doc.report(code, fmt.Sprintf("$.containerDefinitions[%d].portMappings", chosen.container), "port", chosen.port,
		"container", cs.doc.containerName(chosen.container), "why", why)
}

// portNames returns ports with the names of their containers.
func (cs *containers) portNames(ports []candidate) string {
	var names []string
	for _, c := range ports {
		port := strconv.Itoa(c.port)
		if c.computed != "" {
			port = "one that is known at deployment only"
		}
		names = append(names, fmt.Sprintf("%s of container %s", port, cs.doc.containerName(c.container)))
	}
	return strings.Join(names, ", ")
}

// reportNoPort reports why the service has no port.
func (cs *containers) reportNoPort(serving []int) {
	if len(serving) == 0 {
		return // a finding of the essential containers
	}
	first := serving[0]
	why := fmt.Sprintf("container %s has no TCP port", cs.doc.containerName(first))
	if len(serving) > 1 {
		why = "no essential application has a TCP port"
	}
	mappings := cs.doc.Definition.ContainerDefinitions[first].PortMappings
	for _, i := range cs.applications() {
		if other := candidates(cs.doc, i); len(other) > 0 {
			reason := "not essential"
			if cs.doc.Definition.ContainerDefinitions[i].IsEssential() {
				reason = "known as a collector"
			}
			why += ", but " + cs.portNames(other[:1]) + ", which is " + reason
			break
		}
	}
	switch ranged := func(p taskdef.PortMapping) bool { return p.ContainerPortRange != "" && p.Protocol != "udp" }; {
	case slices.ContainsFunc(mappings, ranged):
		why += " but those of a range"
	case len(mappings) > 0:
		why += " but UDP"
	}
	cs.doc.report(codeServicePort, fmt.Sprintf("$.containerDefinitions[%d]", first), "why", why)
}

// syncContainers returns the essential applications that have a health check, without known collectors.
func (cs *containers) syncContainers() []string {
	serving, collectors := cs.essentials()
	names, checked := cs.checkedNames(serving), cs.checkedNames(collectors)
	if len(names) > 1 {
		cs.doc.report(codeHealthFrom, "$.containerDefinitions",
			"what", "is healthy while each of the containers "+strings.Join(names, ", ")+" is")
	}
	if len(checked) > 0 {
		cs.doc.report(codeHealthFrom, "$.containerDefinitions",
			"what", "does not have the health of "+strings.Join(checked, ", ")+", a known collector")
	}
	return names
}

// checkedNames returns the names of those containers that have a health check, sorted.
func (cs *containers) checkedNames(containers []int) []string {
	names := []string{}
	for _, i := range containers {
		if c := cs.doc.Definition.ContainerDefinitions[i]; c.Name != "" && c.HealthCheck.Enabled() {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxExcludedRange is how many ports of a range go past the transparent proxy: each is a rule in
// the network of the task.
const maxExcludedRange = 100

// plainPorts returns the TCP ports of a task that its mesh does not carry: all but the service's, of
// the containers that are not the mesh's.
func plainPorts(def *taskdef.TaskDefinition, service int) []int {
	var ports []int
	for _, c := range def.ContainerDefinitions {
		if workload.IsMeshContainer(c.Name) || isUserProxy(c) {
			continue
		}
		for _, p := range c.PortMappings {
			from, to := p.Ports()
			if p.Protocol == "udp" || from < 1 || to-from >= maxExcludedRange {
				continue
			}
			for port := from; port <= to; port++ {
				ports = append(ports, port)
			}
		}
	}
	slices.Sort(ports)
	return slices.DeleteFunc(slices.Compact(ports), func(port int) bool { return port == service })
}

// checkPlainPorts reports the ports that the mesh does not carry, by container.
func checkPlainPorts(t *task) {
	if t.cfg.Service == nil {
		return
	}
	var redirection *config.TransparentProxy
	if isTransparent(t.cfg) {
		redirection = &t.cfg.TransparentProxy
	}
	for i, c := range t.doc.Definition.ContainerDefinitions {
		if workload.IsMeshContainer(c.Name) || isUserProxy(c) || t.annotations.native[t.doc.containerName(i)] {
			continue
		}
		direct, captured := outside(c.PortMappings, t.cfg.Service.Port, redirection)
		report := func(ports []string, consequence string) {
			if len(ports) > 0 {
				t.doc.report(codePortPlain, fmt.Sprintf("$.containerDefinitions[%d].portMappings", i),
					"ports", strings.Join(ports, ", "), "container", t.doc.containerName(i), "consequence", consequence)
			}
		}
		report(direct, "callers reach them without its encryption and its intentions")
		report(captured, "the transparent proxy takes their connections, and has no listener for them; "+
			"transparentProxy.excludeInboundPorts of the mesh file lets them through")
	}
}

// outside returns the ports of a container but the service's: those that callers reach directly, and
// those whose connections the transparent proxy takes. There is none for nil.
func outside(mappings []taskdef.PortMapping, service int, redirection *config.TransparentProxy) (direct,
	captured []string) {
	for _, p := range mappings {
		switch from, to := p.Ports(); {
		case from < 1 || from == to && from == service && p.Protocol != "udp":
		case p.Protocol == "udp":
			direct = append(direct, portText(from, to)+"/udp")
		case redirection != nil && !excluded(*redirection, from, to):
			captured = append(captured, portText(from, to))
		default:
			direct = append(direct, portText(from, to))
		}
	}
	return direct, captured
}

// portText returns a port, or a range of them.
func portText(from, to int) string {
	if from == to {
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// excluded reports whether all ports of a range go past the transparent proxy.
func excluded(c config.TransparentProxy, from, to int) bool {
	for port := from; port <= to; port++ {
		if !slices.Contains(c.ExcludeInboundPorts, port) {
			return false
		}
	}
	return true
}

// checkDefaultImages reports images of the mesh that the mesh file does not have.
func checkDefaultImages(t *task) {
	var defaults, without []string
	all, given := images{}.withDefaults(t.image), t.mesh.settings.Images
	for _, c := range t.sidecarBuilder().all() {
		if c.Image == "" {
			without = append(without, c.Name)
			continue
		}
		own := slices.Contains([]string{given.ConsulECS, given.Envoy, given.Dataplane, given.Consul}, c.Image)
		if !own && slices.Contains([]string{all.ConsulECS, all.Envoy, all.Dataplane, all.Consul}, c.Image) {
			defaults = append(defaults, c.Image)
		}
	}
	if len(without) > 0 {
		t.doc.report(codeNoImage, "$", "containers", strings.Join(without, ", "))
	}
	slices.Sort(defaults)
	if defaults = slices.Compact(defaults); len(defaults) > 0 {
		t.doc.report(codeDefault, "$", "what", "the containers of the mesh have the images "+
			strings.Join(defaults, ", "),
			"fix", "set admission.images in the mesh file")
	}
}
