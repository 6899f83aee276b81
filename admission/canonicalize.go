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

// outputKeys are the members that DescribeTaskDefinition adds.
var outputKeys = []string{
	"taskDefinitionArn", "revision", "status", "requiresAttributes", "compatibilities",
	"registeredAt", "deregisteredAt", "deleteRequestedAt", "registeredBy",
}

// canonicalize writes the defaults that the mesh relies on where the definition has
// nothing. It changes no value that is there. Most of them Definition has already.
func canonicalize(t *task) error {
	before := len(t.findings) // each value that Definition did not have is a finding
	if t.whole() {
		if err := t.canonicalizeTask(); err != nil {
			return err
		}
	}
	for i, n := range t.containers() {
		if err := t.canonicalizeContainer(i, n); err != nil {
			return err
		}
	}
	if len(t.findings) == before {
		return nil
	}
	return t.doc.Refresh()
}

// unwrap takes the definition out of an answer of DescribeTaskDefinition, without what
// only that has, and reads its annotations again, which have other paths then. It reports
// whether it changed anything.
func (t *task) unwrap() (bool, error) {
	if t.format != FormatECS {
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
		text, _ := t.doc.Task.MarshalJSON() // it is JSON
		doc, err := t.open(text)
		if err != nil {
			return false, err
		}
		t.doc, t.findings = doc, nil
		t.annotate()
	}
	for _, key := range outputKeys {
		if t.doc.Task.Get(key) != nil {
			t.doc.Task.Delete(key)
			removed = append(removed, key)
		}
	}
	if len(removed) == 0 {
		return answer, nil
	}
	t.add(codeOutput, "$", "keys", strings.Join(removed, ", "))
	return true, t.doc.Refresh()
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

func (t *task) canonicalizeTask() error {
	if t.absent(t.doc.Task, "networkMode") {
		if err := t.set(t.doc.Task, "networkMode", awsvpc); err != nil {
			return err
		}
		t.add(codeNetDefault, "$.networkMode")
	}
	tags := t.list(t.doc.Task, "tags")
	if tags == nil || slices.ContainsFunc(t.doc.Definition.Tags, func(tag taskdef.Tag) bool { return tag.Key == annotationMesh }) {
		return nil
	}
	tag, err := t.node(taskdef.Tag{Key: annotationMesh, Value: "true"})
	if err == nil {
		tags.Append(tag)
	}
	return err
}

func (t *task) canonicalizeContainer(i int, n *taskdef.Node) error {
	c := t.doc.Definition.ContainerDefinitions[i]
	if !t.isContainer(i) || workload.Owned(c.Name) {
		return nil
	}
	if t.absent(n, "essential") {
		if err := t.set(n, "essential", true); err != nil {
			return err
		}
	}
	for _, port := range t.get(n, "portMappings").Items() {
		if port.IsObject() && t.get(port, "containerPort") != nil && t.absent(port, "protocol") {
			if err := t.set(port, "protocol", "tcp"); err != nil {
				return err
			}
		}
	}
	return t.canonicalizeHealth(i, n)
}

// canonicalizeHealth puts the word before a health check's command that Docker needs.
func (t *task) canonicalizeHealth(i int, n *taskdef.Node) error {
	command := t.get(t.get(n, "healthCheck"), "command")
	line, known := texts(command)
	if !known || len(line) == 0 || slices.Contains([]string{"CMD", "CMD-SHELL", "NONE"}, line[0]) {
		return nil
	}
	word := "CMD"
	if len(line) == 1 && strings.ContainsRune(line[0], ' ') {
		word = "CMD-SHELL"
	}
	first, err := t.node(word)
	if err != nil {
		return err
	}
	command.SetItems(append([]*taskdef.Node{first}, command.Items()...))
	t.add(codeHealth, fmt.Sprintf("$.containerDefinitions[%d].healthCheck.command", i), "word", word)
	return nil
}
