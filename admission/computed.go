package admission

import (
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/admission/annotation"
	"github.com/meshtask/consul-ecs/taskdef"
)

// reportHidden reports the annotations that cannot be read, since CloudFormation computes
// them or what they are in: neither would they count, nor the rights that they ask for.
// Without the mesh, only those that count then.
func (t *task) reportHidden(injected bool) {
	if t.format == FormatTemplate {
		t.findHidden(t.doc.Task, t.doc.Locate("$"), injected, false)
	}
}

// findHidden looks below a value, which is computed or not.
func (t *task) findHidden(n *taskdef.Node, path string, injected, computed bool) {
	computed = computed || n.IsComputed()
	report := func(label, at string) {
		name := strings.TrimPrefix(label, annotation.Prefix)
		if !injected && name != annotation.Inject && !annotation.OfBroker(name) {
			return
		}
		t.report(codeAnnValue, at, "annotation", label, "value", "known at deployment only", "want", "a docker label or a tag whose value is written out")
	}
	if tag, is := n.Get("Key").Text(); is && strings.HasPrefix(tag, annotation.Prefix) && (computed || n.Get("Value").IsComputed()) {
		report(tag, path)
	}
	for i, item := range n.Items() {
		t.findHidden(item, fmt.Sprintf("%s[%d]", path, i), injected, computed)
	}
	for _, key := range n.Keys() {
		value, at := n.Get(key), path+"."+key
		if strings.HasPrefix(key, annotation.Prefix) {
			at = fmt.Sprintf("%s[%q]", path, key)
			if computed || value.IsComputed() {
				report(key, at)
				continue
			}
		}
		t.findHidden(value, at, injected, computed)
	}
}
