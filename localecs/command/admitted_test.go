package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// What `consul-ecs admit` accepts, localecs accepts: the definitions that its tests have
// admitted. CloudFormation and Terraform would register those of the other formats.
func TestCheckAcceptsAdmittedDefinitions(t *testing.T) {
	t.Parallel()
	const testdata = "../../admission/testdata"
	paths, err := filepath.Glob(filepath.Join(testdata, "admitted", "*"))
	if err != nil {
		t.Fatal(err)
	}
	checked, converted := 0, 0
	for _, path := range paths {
		name := filepath.Base(path)
		findings, err := os.ReadFile(filepath.Join(testdata, "findings", strings.TrimSuffix(name, ".json")+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(findings, []byte("error ")) || bytes.Contains(findings, []byte("\nerror ")) {
			continue // it is refused
		}
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		definition, other := registered(t, doc)
		checked++
		if other {
			converted++
			path = filepath.Join(t.TempDir(), name+".json")
			text, err := json.Marshal(definition)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := append([]string{"run", "-check", "-dir", filepath.Join(t.TempDir(), "state")}, provided(definition)...)
			if got := call(t, append(words, path)...); got.code != 0 {
				t.Errorf("exit code %d: %s", got.code, got.stderr)
			}
		})
	}
	if checked < 40 || converted != 7 {
		t.Errorf("%d definitions are checked, want 40, %d of other formats, want 7", checked, converted)
	}
}

// registered returns the definition that is registered of a document, and whether that is of another format than that
// of the ECS API.
func registered(t *testing.T, doc []byte) (*taskdef.TaskDefinition, bool) {
	t.Helper()
	var d *taskdef.Document
	var err error
	switch {
	case bytes.HasPrefix(doc, []byte("[")):
		d, err = taskdef.ParseContainers(doc)
	case bytes.Contains(doc, []byte("ContainerDefinitions")):
		if d, err = taskdef.ParseTemplate(doc, ""); err == nil {
			compute(t, d.Task)
			err = d.Refresh()
		}
	default:
		d, err = taskdef.Parse(doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	definition, other := d.Definition, d.Definition.Family == ""
	if other {
		definition.Family = "app"
	}
	if bytes.HasPrefix(doc, []byte("[")) {
		definition.NetworkMode, definition.Memory, definition.Volumes = "awsvpc", "1024", []taskdef.Volume{{Name: "consul_data"}}
	}
	return definition, other || d.Task.Get("Family") != nil
}

// compute gives every value that CloudFormation computes one that fits: of a condition the
// first one, no AWS::NoValue, and otherwise one by the key of the member.
func compute(t *testing.T, n *taskdef.Node) {
	t.Helper()
	value := func(key string, n *taskdef.Node) *taskdef.Node {
		for branches := n.Get("Fn::If").Items(); branches != nil; branches = n.Get("Fn::If").Items() {
			n = branches[1]
		}
		ref, _ := n.Get("Ref").Text()
		switch {
		case ref == "AWS::NoValue":
			return nil
		case !n.IsComputed():
			return n
		}
		literal := "computed"
		switch {
		case strings.HasSuffix(key, "Port"), strings.HasSuffix(key, "Timeout"), key == "Memory", key == "Cpu":
			literal = "64"
		case strings.HasSuffix(key, "Arn"):
			literal = "arn:aws:iam::123456789012:role/computed"
		}
		var wanted any = literal
		if key == "Command" {
			wanted = []string{literal}
		}
		return taskdef.NewNode(wanted)
	}
	for _, key := range n.Keys() {
		if made := value(key, n.Get(key)); made != nil {
			n.Set(key, made)
			compute(t, made)
		} else {
			n.Delete(key)
		}
	}
	if n.IsList() {
		var items []*taskdef.Node
		for _, item := range n.Items() {
			if made := value("", item); made != nil {
				compute(t, made)
				items = append(items, made)
			}
		}
		n.SetItems(items)
	}
}

// provided returns the flags that provide what a definition names outside of itself.
func provided(definition *taskdef.TaskDefinition) []string {
	var words []string
	known := map[string]bool{}
	once := func(key string, flags ...string) {
		if !known[key] {
			words = append(words, flags...)
		}
		known[key] = true
	}
	for _, c := range definition.ContainerDefinitions {
		once(c.Image, "-image", c.Image+"=host", "-cmd", c.Image+"=true")
		for _, s := range c.Secrets {
			once(s.ValueFrom, "-secret", s.ValueFrom+"=value")
		}
		for _, f := range c.EnvironmentFiles {
			once(f.Value, "-environment-file", f.Value+"="+os.DevNull)
		}
	}
	return words
}
