package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// checkNames reports where annotations may come from at deployment without their names being in
// the document: policies that the token broker reads could be among them, so nothing is admitted
// there, with the mesh or without.
func (f hiddenFinder) checkNames() {
	switch f.doc.format {
	case formatTemplate:
		f.checkMacros()
		for _, properties := range f.written(f.doc.Task, f.doc.Locate("$"), "the properties") {
			f.checkTagKeys(properties)
			f.checkLabels(properties)
		}
	case formatContainers:
		f.checkRendered()
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
func (f hiddenFinder) items(list part, what string) []part {
	var all []part
	for i, item := range list.value.Items() {
		all = append(all, f.written(item, fmt.Sprintf("%s[%d]", list.path, i), what)...)
	}
	return all
}

// written returns what a value may be, of Fn::If both alternatives. What is not written out is reported.
func (f hiddenFinder) written(n *taskdef.Node, path, what string) []part {
	ref, _ := n.Get("Ref").Text()
	alternatives := n.Get("Fn::If").Items()
	switch {
	case n == nil || ref == "AWS::NoValue":
		return nil
	case !n.IsComputed():
		return []part{{n, path}}
	case len(n.Keys()) == 1 && len(alternatives) == 3:
		return slices.Concat(f.written(alternatives[1], path+".Fn::If[1]", what),
			f.written(alternatives[2], path+".Fn::If[2]", what))
	}
	f.doc.reportAt(codeAnnHidden, path, "what", what)
	return nil
}

// checkTagKeys looks at the tags, whose keys are values.
func (f hiddenFinder) checkTagKeys(properties part) {
	tags, path := properties.get("Tags")
	for _, list := range f.written(tags, path, "tags") {
		for _, tag := range f.items(list, "this tag") {
			key, at := tag.get("Key")
			for _, name := range f.written(key, at, "the key of this tag") {
				if text, _ := name.value.Text(); name.path != at && strings.HasPrefix(text, annotationPrefix) {
					hiddenFinder{f.doc, true}.report(text, name.path)
				}
			}
		}
	}
}

// checkLabels looks at the docker labels, whose names are written out where they are.
func (f hiddenFinder) checkLabels(properties part) {
	containers, path := properties.get("ContainerDefinitions")
	for _, list := range f.written(containers, path, "containerDefinitions") {
		for _, container := range f.items(list, "this container") {
			labels, at := container.get("DockerLabels")
			f.written(labels, at, "dockerLabels")
		}
	}
}

// checkMacros looks at what is around the properties: a macro may rewrite what stands beside it. Those
// of AWS for whole templates change no task definition, but for the one that includes any text.
func (f hiddenFinder) checkMacros() {
	root := f.doc.Root
	if root == f.doc.Task {
		return
	}
	for _, macro := range append(root.Get("Transform").Items(), root.Get("Transform")) {
		name, _ := macro.Get("Name").Text()
		if text, is := macro.Text(); is {
			name = text
		}
		if name == "AWS::Include" || name != "" && !strings.HasPrefix(name, "AWS::") {
			f.doc.reportAt(codeAnnHidden, "$.Transform", "what", "the macro "+name)
		}
	}
	resources := root.Get("Resources")
	for _, around := range []part{{root, "$"}, {resources, "$.Resources"}, resourceOf(f.doc, resources)} {
		if around.value.Get("Fn::Transform") != nil {
			f.doc.reportAt(codeAnnHidden, around.path+".Fn::Transform", "what", "this macro")
		}
	}
}

// resourceOf returns the resource of a template that is the task definition.
func resourceOf(d *document, resources *taskdef.Node) part {
	for _, key := range resources.Keys() {
		if r := resources.Get(key); r.Get("Properties") == d.Task {
			return part{r, "$.Resources." + key}
		}
	}
	return part{}
}

// checkRendered looks at names of docker labels that Terraform's templatefile makes.
func (f hiddenFinder) checkRendered() {
	for i, container := range f.doc.Definition.ContainerDefinitions {
		for label := range container.DockerLabels {
			if strings.Contains(label, "${") || strings.Contains(label, "%{") {
				f.doc.report(codeAnnHidden, labelPath(i, label), "what", "this docker label")
			}
		}
	}
}
