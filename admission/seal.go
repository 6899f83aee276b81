package admission

import (
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
)

// seal writes the tag with the hash of the definition without that tag, by which a
// later reader finds out whether it was changed after its admission.
func (t *task) seal() {
	if !t.doc.isFullDefinition() || t.cfg == nil {
		return
	}
	tags := t.doc.list(t.doc.Task, "tags")
	if tags == nil {
		return
	}
	isSeal := func(n *taskdef.Node) bool { return t.doc.text(n, "key") == taskdef.SealTag }
	at := slices.IndexFunc(tags.Items(), isSeal)
	tags.SetItems(slices.DeleteFunc(slices.Clone(tags.Items()), isSeal))
	tag := t.doc.node(taskdef.Tag{Key: taskdef.SealTag, Value: taskdef.Seal(sealed(t.doc))})
	if at < 0 {
		at = len(tags.Items())
	}
	tags.SetItems(slices.Insert(tags.Items(), at, tag))
}

// sealed returns what the hash is of: for the ECS API what DescribeTaskDefinition answers as well, and the
// text of a template, whose values are not all known.
func sealed(d *document) []byte {
	if d.format != formatECS {
		return d.Task.JSON()
	}
	d.refresh()
	return d.Definition.Sealed()
}
