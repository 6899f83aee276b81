package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// reportUnseen reports where annotations may come from at deployment without their names being in
// the document: policies that the token broker reads could be among them, so nothing is admitted
// there, with the mesh or without.
func (t *task) reportUnseen() {
	switch t.format {
	case formatTemplate:
		t.unseenMacros()
		for _, properties := range t.seen(t.doc.Task, t.doc.Locate("$"), "the properties") {
			t.unseenTags(properties)
			t.unseenLabels(properties)
		}
	case formatContainers:
		t.unseenRendered()
	}
}

// part is a value that is written out, with its place in the document.
type part struct {
	value *taskdef.Node
	path  string
}

// get returns a member of an object.
func (p part) get(key string) (*taskdef.Node, string) { return p.value.Get(key), p.path + "." + key }

// items returns the elements of a list, as what they are given by.
func (t *task) items(list part, what string) []part {
	var all []part
	for i, item := range list.value.Items() {
		all = append(all, t.seen(item, fmt.Sprintf("%s[%d]", list.path, i), what)...)
	}
	return all
}

// seen returns what a value may be, of Fn::If both alternatives. What is not written out is reported.
func (t *task) seen(n *taskdef.Node, path, what string) []part {
	ref, _ := n.Get("Ref").Text()
	alternatives := n.Get("Fn::If").Items()
	switch {
	case n == nil || ref == "AWS::NoValue":
		return nil
	case !n.IsComputed():
		return []part{{n, path}}
	case len(n.Keys()) == 1 && len(alternatives) == 3:
		return slices.Concat(t.seen(alternatives[1], path+".Fn::If[1]", what), t.seen(alternatives[2], path+".Fn::If[2]", what))
	}
	t.report(codeAnnHidden, path, "what", what)
	return nil
}

// unseenTags looks at the tags, whose keys are values.
func (t *task) unseenTags(properties part) {
	tags, path := properties.get("Tags")
	for _, list := range t.seen(tags, path, "tags") {
		for _, tag := range t.items(list, "this tag") {
			key, at := tag.get("Key")
			for _, name := range t.seen(key, at, "the key of this tag") {
				if text, _ := name.value.Text(); name.path != at && strings.HasPrefix(text, annotationPrefix) {
					t.addHidden(text, name.path, true)
				}
			}
		}
	}
}

// unseenLabels looks at the docker labels, whose names are written out where they are.
func (t *task) unseenLabels(properties part) {
	containers, path := properties.get("ContainerDefinitions")
	for _, list := range t.seen(containers, path, "containerDefinitions") {
		for _, container := range t.items(list, "this container") {
			labels, at := container.get("DockerLabels")
			t.seen(labels, at, "dockerLabels")
		}
	}
}

// unseenMacros looks at what is around the properties: a macro may rewrite what stands beside it. Those
// of AWS for whole templates change no task definition, but for the one that includes any text.
func (t *task) unseenMacros() {
	root := t.doc.Root
	if root == t.doc.Task {
		return
	}
	for _, macro := range append(root.Get("Transform").Items(), root.Get("Transform")) {
		name, _ := macro.Get("Name").Text()
		if text, is := macro.Text(); is {
			name = text
		}
		if name == "AWS::Include" || name != "" && !strings.HasPrefix(name, "AWS::") {
			t.report(codeAnnHidden, "$.Transform", "what", "the macro "+name)
		}
	}
	resources := root.Get("Resources")
	for _, around := range []part{{root, "$"}, {resources, "$.Resources"}, t.resource(resources)} {
		if around.value.Get("Fn::Transform") != nil {
			t.report(codeAnnHidden, around.path+".Fn::Transform", "what", "this macro")
		}
	}
}

// resource returns the resource of a template that is the task definition.
func (t *task) resource(resources *taskdef.Node) part {
	for _, key := range resources.Keys() {
		if r := resources.Get(key); r.Get("Properties") == t.doc.Task {
			return part{r, "$.Resources." + key}
		}
	}
	return part{}
}

// unseenRendered looks at names of docker labels that Terraform's templatefile makes.
func (t *task) unseenRendered() {
	for i, container := range t.doc.Definition.ContainerDefinitions {
		for label := range container.DockerLabels {
			if strings.Contains(label, "${") || strings.Contains(label, "%{") {
				t.add(codeAnnHidden, labelPath(i, label), "what", "this docker label")
			}
		}
	}
}
