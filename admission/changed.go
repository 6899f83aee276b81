package admission

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// existingContainer is a container of the mesh as it was read.
type existingContainer struct {
	container taskdef.Container
	node      *taskdef.Node
}

// sealSidecar labels a container of the mesh with a hash of it, by which a later admission finds
// out whether it was changed.
func sealSidecar(d *document, n *taskdef.Node) {
	d.get(n, "dockerLabels").Set(annotationMade, taskdef.NewNode(sidecarSeal(d, n)))
}

// sidecarSeal returns the hash of a container without the label that has it.
func sidecarSeal(d *document, n *taskdef.Node) string {
	text, err := unsealed(d, n)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("v1:%x", sum[:8])
}

// unsealed returns the text of a container without the labels that say who made it: with the defaults
// of ECS, so that it is the same for the answer of DescribeTaskDefinition, or as a template has it.
func unsealed(d *document, n *taskdef.Node) ([]byte, error) {
	n = taskdef.NewNode(n)
	if labels := d.get(n, "dockerLabels"); labels.IsObject() {
		labels.Delete(annotationMade)
		labels.Delete(annotationInjectedBy)
	}
	if d.format == formatTemplate {
		return n.JSON(), nil
	}
	return canonicalContainer(d, n)
}

// canonicalContainer returns the text of a container with the defaults of ECS.
func canonicalContainer(d *document, n *taskdef.Node) ([]byte, error) {
	doc, err := taskdef.Parse(fmt.Appendf(nil, `{"networkMode": %q, "containerDefinitions": [%s]}`,
		d.Definition.NetworkMode, n.JSON()))
	if err != nil {
		return nil, fmt.Errorf("read a container of the mesh: %w", err)
	}
	return taskdef.Canonical(doc.Definition.ContainerDefinitions[0]), nil
}

// reuse returns the existing container in place of the one that is made, if these differ
// in nothing but the defaults that DescribeTaskDefinition writes out, and its order.
func (in injector) reuse(made *taskdef.Node, was existingContainer) *taskdef.Node {
	if in.doc.format != formatECS {
		return made
	}
	text, err := canonicalContainer(in.doc, made)
	if err != nil || !bytes.Equal(text, taskdef.Canonical(was.container)) {
		return made
	}
	return was.node
}

// reportChanged names what was changed in containers of the mesh after an admission, and is
// changed back by this one. What another mesh file changes has the seal of its admission. Of a
// container without a seal, which an earlier version or Terraform made, it names what is lost.
func (t *task) reportChanged() {
	t.doc.refresh()
	for i, c := range t.doc.Definition.ContainerDefinitions {
		was, given := t.existing[c.Name]
		seal := was.container.DockerLabels[annotationMade]
		if !given || !madeHere(was.container) || seal != "" && seal == sidecarSeal(t.doc, was.node) {
			continue
		}
		before, err := unsealed(t.doc, was.node)
		now, errNow := unsealed(t.doc, t.doc.containers()[i])
		if err != nil || errNow != nil {
			continue // ECS refuses such a container
		}
		changed, how := changedMembers(before, now),
			"was changed after its admission, and is again what the mesh file has"
		if seal == "" {
			written := func(member string) bool { return t.containers.writtenEarlier(was.container, member) }
			changed, how = slices.DeleteFunc(missingMembers(before, now), written),
				"was not what the mesh file has, and is that now"
		}
		for _, member := range changed {
			t.doc.report(codeChanged, fmt.Sprintf("$.containerDefinitions[%d].%s", i, member),
				"member", member, "container", c.Name, "how", how, "fix", fixOfChange(c.Name, member))
		}
	}
}

// writtenEarlier reports whether a member of a container without a seal is one that an earlier version
// wrote itself: for its transparent proxy, for the application's stop timeout, or the application's.
func (cs *containers) writtenEarlier(was taskdef.Container, member string) bool {
	switch member {
	case "user", "linuxParameters":
		p := was.LinuxParameters
		return was.Name == workload.ContainerMeshInit && p != nil && p.Capabilities != nil &&
			slices.Contains(p.Capabilities.Add, "NET_ADMIN")
	case "stopTimeout":
		line := strings.Join(slices.Concat(was.EntryPoint, was.Command), " ") + " "
		return was.StopTimeout != nil && strings.Contains(line, strings.Join(stopFlag(*was.StopTimeout), " ")+" ")
	case "logConfiguration":
		logs := taskdef.Canonical(was.LogConfiguration)
		return slices.ContainsFunc(cs.applications(), func(i int) bool {
			return bytes.Equal(logs, taskdef.Canonical(cs.doc.Definition.ContainerDefinitions[i].LogConfiguration))
		})
	}
	return false
}

// settable are the members that the settings of a container have.
var settable = []string{
	"image", "essential", "cpu", "memory", "memoryReservation", "user", "readonlyRootFilesystem", "linuxParameters",
	"startTimeout",
	"stopTimeout", "environment", "secrets", "dockerLabels", "portMappings", "mountPoints", "healthCheck",
	"restartPolicy", "logConfiguration",
}

// changedMembers returns the keys, as the ECS API writes them, whose values differ.
func changedMembers(before, now []byte) []string {
	a, b := taskdef.NewNode(json.RawMessage(before)), taskdef.NewNode(json.RawMessage(now))
	keys := append(a.Keys(), b.Keys()...)
	slices.Sort(keys)
	var changed []string
	for _, key := range slices.Compact(keys) {
		x, y := a.Get(key), b.Get(key)
		if x == nil || y == nil || !bytes.Equal(x.JSON(), y.JSON()) {
			changed = append(changed, strings.ToLower(key[:1])+key[1:])
		}
	}
	return changed
}

// missingMembers returns the keys, as the ECS API writes them, of settings that are not in the other
// value. The image and the values of variables are those of the mesh file.
func missingMembers(before, now []byte) []string {
	a, b := taskdef.NewNode(json.RawMessage(before)), taskdef.NewNode(json.RawMessage(now))
	var missing []string
	for _, key := range a.Keys() {
		member := strings.ToLower(key[:1]) + key[1:]
		if member != "image" && slices.Contains(settable, member) && !within(a.Get(key), b.Get(key)) {
			missing = append(missing, member)
		}
	}
	slices.Sort(missing)
	return missing
}

// within reports whether a value is a part of another: each member and each item of it is there.
func within(part, all *taskdef.Node) bool {
	switch {
	case all == nil:
		return false
	case part.IsList():
		return !slices.ContainsFunc(part.Items(), func(item *taskdef.Node) bool {
			return !slices.ContainsFunc(all.Items(), func(other *taskdef.Node) bool { return within(item, other) })
		})
	case part.IsObject():
		return !slices.ContainsFunc(part.Keys(), func(key string) bool {
			return strings.ToLower(key) != "value" && !within(part.Get(key), all.Get(key))
		})
	}
	return bytes.Equal(part.JSON(), all.JSON())
}

// fixOfChange returns how to have another value of a container's member after each admission.
func fixOfChange(container, member string) string {
	role := roleOf(container)
	ends := member == "essential" && (role == roleInstall || role == roleMeshInit)
	unchecked := member == "healthCheck" && role != roleProxy
	if slices.Contains(settable, member) && !ends && !unchecked {
		return "set it in admission.sidecars." + role + " of the mesh file"
	}
	return "the mesh file has no setting for it: leave it as it is"
}
