package admission

import (
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// reportHidden reports the annotations that cannot be read, since CloudFormation computes
// them or what they are in: neither would they count, nor the rights that they ask for.
// Without the mesh, only those that count then.
func (t *task) reportHidden(injected bool) {
	t.reportUnseen()
	if t.format == formatTemplate {
		t.findHidden(t.doc.Task, t.doc.Locate("$"), injected, false)
	}
}

// findHidden looks below a value, which is computed or not.
func (t *task) findHidden(n *taskdef.Node, path string, injected, computed bool) {
	computed = computed || n.IsComputed()
	t.findHiddenTag(n, path, injected, computed)
	for i, item := range n.Items() {
		t.findHidden(item, fmt.Sprintf("%s[%d]", path, i), injected, computed)
	}
	for _, key := range n.Keys() {
		value, at := n.Get(key), path+"."+key
		if strings.HasPrefix(key, annotationPrefix) {
			at = fmt.Sprintf("%s[%q]", path, key)
			if computed || value.IsComputed() {
				t.addHidden(key, at, injected)
				continue
			}
		}
		t.findHidden(value, at, injected, computed)
	}
}

// findHiddenTag looks at a value that may be a tag.
func (t *task) findHiddenTag(n *taskdef.Node, path string, injected, computed bool) {
	if tag, is := n.Get("Key").Text(); is && strings.HasPrefix(tag, annotationPrefix) && (computed || n.Get("Value").IsComputed()) {
		t.addHidden(tag, path, injected)
	}
}

// addHidden reports an annotation that cannot be read, if it counts.
func (t *task) addHidden(label, path string, injected bool) {
	if injected || label == annotationInject || ofBroker(label) {
		t.report(codeAnnValue, path, "annotation", label, "value", "known at deployment only", "want", "a docker label or a tag whose value is written out")
	}
}
