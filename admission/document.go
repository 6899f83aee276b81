package admission

import (
	"slices"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// get returns a member by its key in the ECS API, or nil.
func (t *task) get(n *taskdef.Node, key string) *taskdef.Node { return n.Get(t.doc.Key(key)) }

// set sets a member. The value has the keys of the ECS API, unless it is a node.
func (t *task) set(n *taskdef.Node, key string, value any) { n.Set(t.doc.Key(key), t.node(value)) }

// node writes a value with the keys of the document's format, unless it is a node.
func (t *task) node(value any) *taskdef.Node {
	n := taskdef.NewNode(value)
	if _, written := value.(*taskdef.Node); !written {
		t.doc.Spell(n)
	}
	return n
}

// refresh reads the definition again, before one mutator has what another has changed. A value
// of a wrong type is an error after all of them.
func (t *task) refresh() { _ = t.doc.Refresh() }

// list returns a member that is a list, and makes it when it is absent. It is nil when
// the member is computed.
func (t *task) list(n *taskdef.Node, key string) *taskdef.Node {
	if t.absent(n, key) {
		t.set(n, key, []string{})
	}
	found := t.get(n, key)
	if !found.IsList() {
		return nil
	}
	return found
}

// lists are the lists that a member may be: itself, as list has it, or the branches of
// Fn::If. There are none when it is computed otherwise.
func (t *task) lists(n *taskdef.Node, key string) []*taskdef.Node {
	switch {
	case !t.listed(n, key):
		return nil
	case t.list(n, key) != nil:
		return []*taskdef.Node{t.list(n, key)}
	}
	return branches(t.get(n, key))
}

// listed reports whether lists has any.
func (t *task) listed(n *taskdef.Node, key string) bool {
	return t.absent(n, key) || t.get(n, key).IsList() || isChoice(t.get(n, key))
}

// isChoice reports whether a value is Fn::If of lists.
func isChoice(n *taskdef.Node) bool {
	choice := n.Get("Fn::If").Items()
	return len(choice) == 3 && !slices.ContainsFunc(choice[1:], func(b *taskdef.Node) bool { return !b.IsList() && !isNoValue(b) && !isChoice(b) })
}

// branches are the lists of Fn::If, with one in place of each AWS::NoValue.
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

// absent reports whether a member is neither given nor computed.
func (t *task) absent(n *taskdef.Node, key string) bool {
	found := t.get(n, key)
	return found == nil || found.IsNull() || t.format == formatTemplate && isNoValue(found)
}

// text is a member that is a string.
func (t *task) text(n *taskdef.Node, key string) string {
	text, _ := t.get(n, key).Text()
	return text
}

// label gives a container a docker label, and reports whether it could: the labels may be
// computed.
func (t *task) label(n *taskdef.Node, key, value string) bool {
	if !canLabel(t, n) {
		return false
	}
	if t.absent(n, "dockerLabels") {
		t.set(n, "dockerLabels", map[string]string{})
	}
	t.get(n, "dockerLabels").Set(key, taskdef.NewNode(value))
	return true
}

// texts are the elements of a list, empty for those that are computed.
func texts(list *taskdef.Node) []string {
	var words []string
	for _, item := range list.Items() {
		word, _ := item.Text()
		words = append(words, word)
	}
	return words
}

// containers are the nodes of the containers, as many as the definition has.
func (t *task) containers() []*taskdef.Node { return t.get(t.doc.Task, "containerDefinitions").Items() }

// whole reports whether the document has more of the task than its containers.
func (t *task) whole() bool { return t.format != formatContainers }

// isContainer reports whether an element of the list is a container: CloudFormation may
// compute it, or its name only.
func (t *task) isContainer(i int) bool {
	n := t.containers()[i]
	if t.text(n, "name") != "" {
		return true
	}
	return t.format == formatTemplate && n.IsObject() && !n.IsComputed() && !t.absent(n, "name")
}

// applications are the indexes of the containers that the mesh is for: neither its own
// ones nor computed ones, nor named as AWS's own, nor what starts before the proxy, nor those with the annotation
// depends=false, nor native ones, nor the definition's own proxy, nor token-receive, which
// an application may wait for.
func (t *task) applications() []int {
	before := t.beforeProxy()
	var found []int
	for i, c := range t.doc.Definition.ContainerDefinitions {
		ours := !t.isContainer(i) || workload.IsMeshContainer(c.Name) || workload.IsAWSContainer(c.Name) || isUserProxy(c) || t.isReceiver(i)
		name := t.containerName(i)
		if !ours && !before[i] && !t.notes.exempt[name] && !t.notes.native[name] {
			found = append(found, i)
		}
	}
	return found
}

// beforeProxy are the containers that must not wait for the proxy: what the injected
// containers log through, and what that or the definition's own proxy depends on.
func (t *task) beforeProxy() map[int]bool {
	containers := t.doc.Definition.ContainerDefinitions
	before := map[int]bool{}
	// visit follows dependsOn. A wrapped container may wait although the proxy depends on its
	// START: it has started.
	var visit func(i int, must bool)
	visit = func(i int, must bool) {
		if known, visited := before[i]; visited && (known || !must) {
			return
		}
		before[i] = must
		for _, d := range containers[i].DependsOn {
			at := slices.IndexFunc(containers, func(c taskdef.Container) bool { return c.Name == d.ContainerName })
			if at >= 0 && !workload.IsMeshContainer(d.ContainerName) {
				visit(at, must || d.Condition != taskdef.ConditionStart || !t.line(at).judge().wrap)
			}
		}
	}
	for i, c := range containers {
		if c.FirelensConfiguration != nil || isUserProxy(c) {
			visit(i, c.FirelensConfiguration != nil)
		}
	}
	return before
}

// primary is the index of the first essential application, -1 without one.
func (t *task) primary() int {
	for _, i := range t.applications() {
		if t.doc.Definition.ContainerDefinitions[i].IsEssential() {
			return i
		}
	}
	return -1
}

// anyComputed reports whether CloudFormation computes one of the containers.
func (t *task) anyComputed() bool {
	for i := range t.containers() {
		if !t.isContainer(i) {
			return t.format == formatTemplate
		}
	}
	return false
}
