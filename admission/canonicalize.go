package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// awsvpc is the network mode of the mesh.
const awsvpc = "awsvpc"

// canonicalize writes the defaults that the mesh relies on where the definition has
// nothing. It changes no value that is there. Most of them Definition has already.
func canonicalize(t *task) {
	before := len(t.doc.findings) // each value that Definition did not have is a finding
	if t.doc.isFullDefinition() {
		canonicalizeTask(t.doc)
	}
	for i, n := range t.doc.containers() {
		canonicalizeContainer(t.doc, i, n)
	}
	if len(t.doc.findings) > before {
		t.doc.refresh()
	}
}

// unwrap takes the definition out of an answer of DescribeTaskDefinition, without what
// only that has, and reads its annotations again, which have other paths then. It reports
// whether it changed anything.
func (t *task) unwrap() (bool, error) {
	if t.doc.format != formatECS {
		return false, nil
	}
	answer := t.doc.Task != t.doc.Root
	var removed []string
	if answer {
		if tags := t.doc.Root.Get("tags"); tags != nil && t.doc.Task.Get("tags") == nil {
			removed = removeReserved(tags)
			if len(tags.Items()) > 0 { // ECS refuses an empty list
				t.doc.Task.Set("tags", tags)
			}
		}
		doc, err := taskdef.Parse(t.doc.Task.JSON())
		if err != nil {
			return false, err
		}
		t.untagged = t.doc.Root.Get("tags") == nil && doc.Task.Get("tags") == nil
		for _, key := range t.doc.Root.Keys() {
			if key != "tags" && key != "taskDefinition" {
				removed = append(removed, key)
			}
		}
		t.doc.Document, t.doc.findings = doc, nil
		t.annotate()
		if t.untagged {
			t.doc.report(codeTagsAbsent, "$")
		}
	}
	for _, key := range taskdef.OutputKeys {
		if t.doc.Task.Get(key) != nil {
			t.doc.Task.Delete(key)
			removed = append(removed, key)
		}
	}
	if len(removed) == 0 {
		return answer, nil
	}
	t.doc.report(codeOutput, "$", "keys", strings.Join(removed, ", "))
	t.doc.refresh()
	return true, nil
}

// removeReserved removes the tags that only AWS may set, and returns what they are.
func removeReserved(tags *taskdef.Node) []string {
	var removed []string
	tags.SetItems(slices.DeleteFunc(slices.Clone(tags.Items()), func(tag *taskdef.Node) bool {
		key, _ := tag.Get("key").Text()
		if taskdef.ReservedTag(key) {
			removed = append(removed, "tag "+key)
		}
		return taskdef.ReservedTag(key)
	}))
	return removed
}

func canonicalizeTask(d *document) {
	external := slices.Contains(d.Definition.RequiresCompatibilities, launchExternal)
	if d.isAbsent(d.Task, "networkMode") && !external {
		d.set(d.Task, "networkMode", awsvpc)
		d.report(codeNetDefault, "$.networkMode")
	}
	tags := d.list(d.Task, "tags")
	if tags == nil || slices.ContainsFunc(d.Definition.Tags,
		func(tag taskdef.Tag) bool { return tag.Key == annotationMesh }) {
		return
	}
	tags.Append(d.node(taskdef.Tag{Key: annotationMesh, Value: "true"}))
}

func canonicalizeContainer(d *document, i int, n *taskdef.Node) {
	c := d.Definition.ContainerDefinitions[i]
	if !d.isContainer(i) || workload.IsMeshContainer(c.Name) {
		return
	}
	if d.isAbsent(n, "essential") {
		d.set(n, "essential", true)
	}
	for _, port := range d.get(n, "portMappings").Items() {
		if port.IsObject() && d.get(port, "containerPort") != nil && d.isAbsent(port, "protocol") {
			d.set(port, "protocol", "tcp")
		}
	}
	canonicalizeHealth(d, i, n)
}

// canonicalizeHealth puts the word before a health check's command that Docker needs, in each branch of
// Fn::If.
func canonicalizeHealth(d *document, i int, n *taskdef.Node) {
	at := fmt.Sprintf("$.containerDefinitions[%d].healthCheck", i)
	for _, check := range alternatives(at, d.get(n, "healthCheck"), nil) {
		for _, command := range alternatives(check.path+".command", d.get(check.value, "command"), nil) {
			canonicalizeCommand(d, command.path, command.value)
		}
	}
}

// canonicalizeCommand puts CMD or CMD-SHELL before the command of a health check that has neither.
func canonicalizeCommand(d *document, path string, command *taskdef.Node) {
	line := texts(command)
	computed := func(word *taskdef.Node) bool { _, known := word.Text(); return !known }
	if len(line) == 0 || slices.ContainsFunc(command.Items(), computed) ||
		slices.Contains([]string{"CMD", "CMD-SHELL", "NONE"}, line[0]) {
		return
	}
	word := "CMD"
	if len(line) == 1 && strings.ContainsRune(line[0], ' ') {
		word = "CMD-SHELL"
	}
	command.SetItems(slices.Insert(command.Items(), 0, d.node(word)))
	d.report(codeHealth, path, "word", word)
}
