package admission

import (
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
)

// seal writes the tag with the hash of the definition without that tag, by which a
// later reader finds out whether it was changed after its admission.
func (t *task) seal() {
	if !t.whole() || t.cfg == nil {
		return
	}
	tags := t.list(t.doc.Task, "tags")
	if tags == nil {
		return
	}
	isSeal := func(n *taskdef.Node) bool { return t.text(n, "key") == taskdef.SealTag }
	at := slices.IndexFunc(tags.Items(), isSeal)
	tags.SetItems(slices.DeleteFunc(slices.Clone(tags.Items()), isSeal))
	tag := t.node(taskdef.Tag{Key: taskdef.SealTag, Value: taskdef.Seal(t.sealed())})
	if at < 0 {
		at = len(tags.Items())
	}
	tags.SetItems(slices.Insert(tags.Items(), at, tag))
}

// sealed is what the hash is of: for the ECS API what DescribeTaskDefinition answers as well,
// and the text of a template, whose values are not all known.
func (t *task) sealed() []byte {
	if t.format != formatECS {
		return t.doc.Task.JSON()
	}
	t.refresh()
	return t.doc.Definition.Sealed()
}
