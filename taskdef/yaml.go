package taskdef

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// maxYAMLNodes bounds what aliases of a template multiply.
const maxYAMLNodes = 200_000

// flowMapping matches the beginning of a mapping in braces whose first key has no quotes.
var flowMapping = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^\{\s*(#[^\n]*\n\s*)*[A-Za-z][\w:]*\s*:\s`)
})

var quotedKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^("[^"\n]*"|'[^'\n]*')\s*:\s`) })

// IsYAML reports whether a document can only be YAML.
func IsYAML(doc []byte) bool {
	text := bytes.TrimSpace(doc)
	return flowMapping().Match(text) || !looksLikeJSON(text) && (looksLikeYAML(text) || quotedKey().Match(text))
}

// looksLikeJSON reports whether a document begins as one of JSON does. A mapping of YAML whose first
// key has no quotes does not.
func looksLikeJSON(doc []byte) bool {
	text := bytes.TrimSpace(doc)
	return len(text) == 0 || (text[0] == '{' || text[0] == '[') && !flowMapping().Match(text)
}

// readYAML reads a template that is YAML, and returns the YAML document as well. The
// nodes have the long forms of functions.
func readYAML(doc []byte) (*Node, *yaml.Node, error) {
	if err := CheckText(doc); err != nil {
		return nil, nil, err
	}
	tree, dec := &yaml.Node{}, yaml.NewDecoder(bytes.NewReader(doc))
	if err := dec.Decode(tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read the template: %w", err)
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("the file has more than one YAML document: keep that of the template")
	}
	switch {
	case len(tree.Content) == 1 && tree.Content[0].Kind == yaml.SequenceNode:
		return nil, nil, errors.New("this is a list in YAML, and no template: containers are a list in JSON; `yq " +
			"-o=json` converts it")
	case len(tree.Content) != 1 || tree.Content[0].Kind != yaml.MappingNode:
		return nil, nil, errors.New("the template is YAML, but not a mapping")
	}
	if err := checkKeys(tree); err != nil {
		return nil, nil, fmt.Errorf("read the template: %w", err)
	}
	unfold(tree)
	budget := maxYAMLNodes
	root := fromYAML(tree.Content[0], &budget)
	if budget < 0 {
		return nil, nil, fmt.Errorf("the template has more than %d values, aliases counted in full", maxYAMLNodes)
	}
	return root, tree, nil
}

// checkKeys refuses what the tools for templates read in different ways: a key that a
// mapping has twice, and the merge key.
func checkKeys(y *yaml.Node) error {
	found := map[string]bool{}
	for i, child := range y.Content {
		if y.Kind == yaml.MappingNode && i%2 == 0 {
			switch {
			case child.Tag == "!!merge":
				return fmt.Errorf("line %d: write the members out in place of the merge key <<", child.Line)
			case found[child.Value]:
				return fmt.Errorf("line %d: key %s given twice: remove one of them", child.Line, OneLine(child.Value))
			}
			found[child.Value] = true
		}
		if err := checkKeys(child); err != nil {
			return err
		}
	}
	return nil
}

// unfold makes folded texts literal ones: the encoder adds empty lines to those that
// have indented lines.
func unfold(y *yaml.Node) {
	if y.Style&yaml.FoldedStyle != 0 {
		y.Style = y.Style&^yaml.FoldedStyle | yaml.LiteralStyle
	}
	for _, child := range y.Content {
		unfold(child)
	}
}

// fromYAML returns the JSON form of a value. It stops when the budget is spent.
func fromYAML(y *yaml.Node, budget *int) *Node {
	if *budget--; *budget < 0 {
		return &Node{scalar: "null"}
	}
	n := &Node{line: y.Line}
	switch y.Kind {
	case yaml.AliasNode:
		return fromYAML(y.Alias, budget)
	case yaml.MappingNode:
		for i := 0; i+1 < len(y.Content); i += 2 {
			n.Set(y.Content[i].Value, fromYAML(y.Content[i+1], budget))
		}
	case yaml.SequenceNode:
		n.list = true
		for _, item := range y.Content {
			n.items = append(n.items, fromYAML(item, budget))
		}
	default:
		n.scalar = scalarJSON(y)
	}
	if key := function(y); key != "" {
		return &Node{members: []member{{key, n}}, line: y.Line}
	}
	return n
}

// function returns the long form of a tag such as !Sub, and empty for a plain value.
func function(y *yaml.Node) string {
	name, custom := strings.CutPrefix(y.Tag, "!")
	switch {
	case !custom || name == "" || strings.HasPrefix(name, "!"):
		return ""
	case name == "Ref" || name == "Condition":
		return name
	}
	return "Fn::" + name
}

// scalarJSON returns a scalar as JSON has it. What JSON has no form for is a string, such as a date.
// CloudFormation reads YAML 1.1, in which a plain yes is true and 010 is 8.
func scalarJSON(y *yaml.Node) string {
	switch y.Tag {
	case "!!null":
		return "null"
	case "!!bool":
		return strings.ToLower(y.Value)
	case "!!int", "!!float":
		if json.Valid([]byte(y.Value)) {
			return y.Value
		}
		if n, err := strconv.ParseInt(strings.ReplaceAll(y.Value, "_", ""), 0, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	case "!!str":
		if y.Style == 0 {
			switch strings.ToLower(y.Value) {
			case "yes", "on":
				return "true"
			case "no", "off":
				return "false"
			}
		}
	}
	return quote(y.Value)
}
