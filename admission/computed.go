package admission

import (
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// hiddenFinder looks for annotations that cannot be read. Without the mesh, only those that count then
// are findings.
type hiddenFinder struct {
	doc      *document
	injected bool
}

// reportHidden reports the annotations that cannot be read, since CloudFormation computes
// them or what they are in: neither would they count, nor the rights that they ask for.
// Without the mesh, only those that count then.
func reportHidden(d *document, injected bool) {
	f := hiddenFinder{d, injected}
	f.checkNames()
	if d.format == formatTemplate {
		f.walk(d.Task, d.Locate("$"), false)
	}
}

// walk looks below a value, which is computed or not.
func (f hiddenFinder) walk(n *taskdef.Node, path string, computed bool) {
	computed = computed || n.IsComputed()
	f.checkTag(n, path, computed)
	for i, item := range n.Items() {
		f.walk(item, fmt.Sprintf("%s[%d]", path, i), computed)
	}
	for _, key := range n.Keys() {
		value, at := n.Get(key), path+"."+key
		if strings.HasPrefix(key, annotationPrefix) {
			at = fmt.Sprintf("%s[%q]", path, key)
			if computed || value.IsComputed() {
				f.report(key, at)
				continue
			}
		}
		f.walk(value, at, computed)
	}
}

// checkTag looks at a value that may be a tag.
func (f hiddenFinder) checkTag(n *taskdef.Node, path string, computed bool) {
	if tag, is := n.Get("Key").Text(); is && strings.HasPrefix(tag, annotationPrefix) &&
		(computed || n.Get("Value").IsComputed()) {
		f.report(tag, path)
	}
}

// report reports an annotation that cannot be read, if it counts.
func (f hiddenFinder) report(label, path string) {
	if f.injected || label == annotationInject || ofBroker(label) {
		f.doc.reportAt(codeAnnValue, path, "annotation", label, "value", "known at deployment only", "want",
			"a docker label or a tag whose value is written out")
	}
}
