package admission

import (
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
)

// document is a definition on its way through the pipeline, with the findings about it. Its methods take
// the keys of the ECS API.
type document struct {
	*taskdef.Document
	format   string
	findings []Finding
}

// get returns a member by its key in the ECS API, or nil.
func (d *document) get(n *taskdef.Node, key string) *taskdef.Node { return n.Get(d.Key(key)) }

// set sets a member. The value has the keys of the ECS API, unless it is a node.
func (d *document) set(n *taskdef.Node, key string, value any) { n.Set(d.Key(key), d.node(value)) }

// node writes a value with the keys of the document's format, unless it is a node.
func (d *document) node(value any) *taskdef.Node {
	n := taskdef.NewNode(value)
	if _, written := value.(*taskdef.Node); !written {
		d.Spell(n)
	}
	return n
}

// refresh reads the definition again, before one mutator has what another has changed. A value
// of a wrong type is an error after all of them.
func (d *document) refresh() { _ = d.Refresh() }

// list returns a member that is a list, and makes it when it is absent. It is nil when
// the member is computed.
func (d *document) list(n *taskdef.Node, key string) *taskdef.Node {
	if d.isAbsent(n, key) {
		d.set(n, key, []string{})
	}
	found := d.get(n, key)
	if !found.IsList() {
		return nil
	}
	return found
}

// lists returns the lists that a member may be: itself, as list has it, or the branches of Fn::If. There are
// none when it is computed otherwise.
func (d *document) lists(n *taskdef.Node, key string) []*taskdef.Node {
	switch {
	case !d.isListed(n, key):
		return nil
	case d.list(n, key) != nil:
		return []*taskdef.Node{d.list(n, key)}
	}
	return branches(d.get(n, key))
}

// isListed reports whether lists has any.
func (d *document) isListed(n *taskdef.Node, key string) bool {
	return d.isAbsent(n, key) || d.get(n, key).IsList() || isChoice(d.get(n, key))
}

// isChoice reports whether a value is Fn::If of lists.
func isChoice(n *taskdef.Node) bool {
	choice := n.Get("Fn::If").Items()
	return len(choice) == 3 && !slices.ContainsFunc(choice[1:],
		func(b *taskdef.Node) bool { return !b.IsList() && !isNoValue(b) && !isChoice(b) })
}

// branches returns the lists of Fn::If, with one in place of each AWS::NoValue.
func branches(n *taskdef.Node) []*taskdef.Node {
	var lists []*taskdef.Node
	choice := n.Get("Fn::If").Items()
	for i := 1; i < len(choice); i++ {
		if isNoValue(choice[i]) {
			choice[i] = taskdef.NewNode([]string{})
		}
		if choice[i].IsList() {
			lists = append(lists, choice[i])
		}
		lists = append(lists, branches(choice[i])...)
	}
	return lists
}

// isNoValue reports whether CloudFormation removes a member.
func isNoValue(n *taskdef.Node) bool {
	ref, _ := n.Get("Ref").Text()
	return ref == "AWS::NoValue" && n.IsComputed()
}

// mayBeAbsent reports whether CloudFormation may remove a member, by a branch of Fn::If.
func mayBeAbsent(n *taskdef.Node) bool {
	return slices.ContainsFunc(n.Get("Fn::If").Items(),
		func(branch *taskdef.Node) bool { return isNoValue(branch) || mayBeAbsent(branch) })
}

// isAbsent reports whether a member is neither given nor computed.
func (d *document) isAbsent(n *taskdef.Node, key string) bool {
	found := d.get(n, key)
	return found == nil || found.IsNull() || d.format == formatTemplate && isNoValue(found)
}

// text returns a member that is a string.
func (d *document) text(n *taskdef.Node, key string) string {
	text, _ := d.get(n, key).Text()
	return text
}

// label gives a container a docker label, and reports whether it could: the labels may be
// computed.
func (d *document) label(n *taskdef.Node, key, value string) bool {
	if !canLabel(d, n) {
		return false
	}
	if d.isAbsent(n, "dockerLabels") {
		d.set(n, "dockerLabels", map[string]string{})
	}
	d.get(n, "dockerLabels").Set(key, taskdef.NewNode(value))
	return true
}

// texts returns the elements of a list, empty for those that are computed.
func texts(list *taskdef.Node) []string {
	var words []string
	for _, item := range list.Items() {
		word, _ := item.Text()
		words = append(words, word)
	}
	return words
}

// containers returns the nodes of the containers, as many as the definition has.
func (d *document) containers() []*taskdef.Node { return d.get(d.Task, "containerDefinitions").Items() }

// isFullDefinition reports whether the document has more of the task than its containers.
func (d *document) isFullDefinition() bool { return d.format != formatContainers }

// isContainer reports whether an element of the list is a container: CloudFormation may
// compute it, or its name only.
func (d *document) isContainer(i int) bool {
	n := d.containers()[i]
	if d.text(n, "name") != "" {
		return true
	}
	return d.format == formatTemplate && n.IsObject() && !n.IsComputed() && !d.isAbsent(n, "name")
}

// hasComputedContainer reports whether CloudFormation computes one of the containers.
func (d *document) hasComputedContainer() bool {
	for i := range d.containers() {
		if !d.isContainer(i) {
			return d.format == formatTemplate
		}
	}
	return false
}
