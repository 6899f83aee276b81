package taskdef

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writeYAML writes a document that was read from YAML. Only the properties of the task
// definition are written anew, and in them what has not changed keeps its comments,
// its style and the short forms of functions. Where that would mean something else, all
// of the document is written anew.
func (d *Document) writeYAML() []byte {
	want := d.Root.JSON()
	whole := *d.yaml
	whole.Content = []*yaml.Node{anchors{}.restore(updateYAML(d.yaml.Content[0], d.Root), false)}
	for _, write := range []func() []byte{
		func() []byte { return d.spliceYAML(whole.Content[0]) },
		func() []byte { return encodeYAML(&whole) },
	} {
		doc := write()
		if root, _, err := readYAML(doc); err == nil && bytes.Equal(root.JSON(), want) {
			return doc
		}
	}
	return encodeYAML(newYAML(d.Root))
}

// anchors are the values of a tree that aliases may lead to.
type anchors map[string]*yaml.Node

// restore lets every alias of a changed tree mean what it did: the first one that leads to
// a value which is not there any more becomes that value, with its anchor. Comments stay
// where they were; moved is set within such a value.
func (a anchors) restore(y *yaml.Node, moved bool) *yaml.Node {
	value := y
	if y.Kind == yaml.AliasNode {
		value = y.Alias
	}
	restored := *value
	restored.HeadComment, restored.LineComment, restored.FootComment, restored.Content = "", "", "", nil
	if !moved {
		restored.HeadComment, restored.LineComment, restored.FootComment = y.HeadComment, y.LineComment, y.FootComment
	}
	if value.Anchor != "" {
		if a[value.Anchor] == value {
			restored.Kind, restored.Tag, restored.Value, restored.Anchor = yaml.AliasNode, "", value.Anchor, ""
			return &restored
		}
		a[value.Anchor] = value
	}
	for _, child := range value.Content {
		restored.Content = append(restored.Content, a.restore(child, moved || value != y))
	}
	return &restored
}

// spliceYAML replaces the lines of the task definition by those of a tree; nil when these
// are not its own.
func (d *Document) spliceYAML(tree *yaml.Node) []byte {
	before := d.yaml.Content[0]
	if d.prefix != "$" {
		_, resource, _ := strings.Cut(d.prefix, "$.Resources.")
		for _, key := range []string{"Resources", strings.TrimSuffix(resource, ".Properties"), "Properties"} {
			if before, tree = memberYAML(before, key), memberYAML(tree, key); before == nil || tree == nil {
				return nil
			}
		}
	}
	if before.Kind != yaml.MappingNode || before.Style&yaml.FlowStyle != 0 || len(before.Content) == 0 {
		return nil
	}
	lines := slices.Collect(bytes.Lines(d.original))
	indent := before.Content[0].Column - 1
	first, end := blockLines(lines, before)
	if first < 0 {
		return nil
	}
	var spliced bytes.Buffer
	spliced.Write(bytes.Join(lines[:first], nil))
	text := encodeYAML(tree)
	if bytes.Contains(d.original, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 {
			spliced.WriteString(strings.Repeat(" ", indent))
		}
		spliced.Write(line)
	}
	spliced.Write(bytes.Join(lines[end:], nil))
	return spliced.Bytes()
}

// blockLines returns the first line of a mapping in block style, and the one after its last.
func blockLines(lines [][]byte, mapping *yaml.Node) (first, end int) {
	first = mapping.Content[0].Line - 1
	if comment := mapping.Content[0].HeadComment; comment != "" {
		first -= strings.Count(comment, "\n") + 1
	}
	if first < 0 {
		return first, first
	}
	end = first
	indent := bytes.Repeat([]byte(" "), mapping.Content[0].Column-1)
	for i := first; i < len(lines); i++ {
		text := bytes.TrimSpace(lines[i])
		inside := bytes.HasPrefix(lines[i], indent)
		if len(text) > 0 && text[0] != '#' && !inside {
			break
		}
		if len(text) > 0 && inside {
			end = i + 1
		}
	}
	return first, end
}

func memberYAML(y *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Kind == yaml.MappingNode && y.Content[i].Value == key {
			return y.Content[i+1]
		}
	}
	return nil
}

// updateYAML returns the YAML form of a value. What y has of it already stays as it is.
func updateYAML(y *yaml.Node, n *Node) *yaml.Node {
	budget := maxYAMLNodes
	if bytes.Equal(fromYAML(y, &budget).JSON(), n.JSON()) {
		return y
	}
	updated := *y
	updated.Anchor = "" // aliases mean the value before, see restore
	switch key := function(y); {
	case key != "" && y.Kind == yaml.SequenceNode && n.Get(key) != nil && len(n.Get(key).items) == len(y.Content):
		updated.Content = nil
		for i, argument := range n.Get(key).items {
			updated.Content = append(updated.Content, updateYAML(y.Content[i], argument))
		}
	case key == "" && y.Kind == yaml.MappingNode && n.IsObject():
		updated.Content = updateMembers(y, n)
	case key == "" && y.Kind == yaml.SequenceNode && n.IsList():
		updated.Content = updateItems(y, n)
	default:
		fresh := newYAML(n)
		fresh.HeadComment, fresh.LineComment, fresh.FootComment = y.HeadComment, y.LineComment, y.FootComment
		return fresh
	}
	return &updated
}

func updateMembers(y *yaml.Node, n *Node) (content []*yaml.Node) {
	for _, m := range n.members {
		key, value := newYAML(&Node{scalar: quote(m.key)}), newYAML(m.value)
		for i := 0; i+1 < len(y.Content); i += 2 {
			if y.Content[i].Value == m.key {
				key, value = y.Content[i], updateYAML(y.Content[i+1], m.value)
			}
		}
		content = append(content, key, value)
	}
	return content
}

func updateItems(y *yaml.Node, n *Node) (content []*yaml.Node) {
	left := slices.Clone(y.Content)
	for _, item := range n.items {
		value := newYAML(item)
		if i := slices.IndexFunc(left, func(have *yaml.Node) bool { return sameItem(have, item) }); i >= 0 {
			value = updateYAML(left[i], item)
			left = slices.Delete(left, i, i+1)
		}
		content = append(content, value)
	}
	return content
}

// sameItem reports whether an element has the same name, or for one without a name,
// whether all of it is in the other.
func sameItem(have *yaml.Node, want *Node) bool {
	budget := maxYAMLNodes
	n := fromYAML(have, &budget)
	for _, key := range []string{"Name", "Key", "ContainerName"} {
		if name := want.Get(key); name != nil {
			return n.Get(key) != nil && bytes.Equal(n.Get(key).JSON(), name.JSON())
		}
	}
	rest := slices.ContainsFunc(n.members, func(m member) bool {
		same := want.Get(m.key)
		return same == nil || !bytes.Equal(same.JSON(), m.value.JSON())
	})
	return bytes.Equal(n.JSON(), want.JSON()) || len(n.members) > 0 && want.IsObject() && !rest
}

// newYAML writes a value in block style.
func newYAML(n *Node) *yaml.Node {
	y := &yaml.Node{}
	switch {
	case n.scalar != "":
		return newScalar(n)
	case n.list:
		y.Kind, y.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range n.items {
			y.Content = append(y.Content, newYAML(item))
		}
	default:
		y.Kind, y.Tag = yaml.MappingNode, "!!map"
		for _, m := range n.members {
			y.Content = append(y.Content, newYAML(&Node{scalar: quote(m.key)}), newYAML(m.value))
		}
	}
	if len(y.Content) == 0 {
		y.Style = yaml.FlowStyle
	}
	return y
}

// older matches strings that are something else in YAML 1.1, which CloudFormation reads,
// but not in the encoder's version: booleans, times such as 12:30, = and <<.
var older = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|=|<<|[-+]?[0-9][0-9_:.]*)$`)

// newScalar writes a scalar. The encoder quotes what would not be a text otherwise.
func newScalar(n *Node) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.scalar}
	switch value := n.value().(type) {
	case string:
		y.Tag, y.Value = "!!str", value
		if older.MatchString(value) {
			y.Style = yaml.DoubleQuotedStyle
		}
	case bool:
		y.Tag = "!!bool"
	case nil:
		y.Tag = "!!null"
	default:
		y.Tag = "!!int"
		if strings.ContainsAny(n.scalar, ".eE") {
			y.Tag = "!!float"
		}
	}
	return y
}

func encodeYAML(y *yaml.Node) []byte {
	var doc bytes.Buffer
	enc := yaml.NewEncoder(&doc)
	enc.SetIndent(2)
	_ = enc.Encode(y) // it was read from YAML
	_ = enc.Close()
	return doc.Bytes()
}
