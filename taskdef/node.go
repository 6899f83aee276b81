package taskdef

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Node is a value of a JSON document. It keeps what maps and floats would lose: the
// order of members, and how numbers and strings are written.
type Node struct {
	// scalar is the JSON text of a string, a number, a boolean or null; empty for
	// an object and a list.
	scalar  string
	list    bool
	members []member
	items   []*Node
	// line is where the value begins in the document that was read, 0 for a new one.
	line int
}

type member struct {
	key   string
	value *Node
}

// NewNode returns the JSON form of a Go value.
func NewNode(value any) (*Node, error) {
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	n, _ := readNode(doc.Bytes())
	return n, nil
}

// Keys are the keys of an object, in their order.
func (n *Node) Keys() []string {
	keys := make([]string, 0, len(n.members))
	for _, m := range n.members {
		keys = append(keys, m.key)
	}
	return keys
}

// Get returns a member of an object, or nil. n may be nil.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// Set replaces a member of an object, or adds it as the last one.
func (n *Node) Set(key string, value *Node) {
	for i := range n.members {
		if n.members[i].key == key {
			n.members[i].value = value
			return
		}
	}
	n.members = append(n.members, member{key, value})
}

// Delete removes a member of an object if it exists.
func (n *Node) Delete(key string) {
	n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.key == key })
}

// Items are the elements of a list.
func (n *Node) Items() []*Node {
	if n == nil {
		return nil
	}
	return n.items
}

// Append adds elements to a list.
func (n *Node) Append(items ...*Node) { n.items = append(n.items, items...) }

// SetItems replaces the elements of a list.
func (n *Node) SetItems(items []*Node) { n.items = items }

// IsList reports whether the value is a list.
func (n *Node) IsList() bool { return n != nil && n.list }

// Text is the value of a string, and false when the value is none.
func (n *Node) Text() (string, bool) {
	if n == nil || !strings.HasPrefix(n.scalar, `"`) {
		return "", false
	}
	text, ok := n.value().(string)
	return text, ok
}

// IsObject reports whether the value is an object.
func (n *Node) IsObject() bool { return n != nil && n.scalar == "" && !n.list }

// IsNull reports whether the value is null.
func (n *Node) IsNull() bool { return n != nil && n.scalar == "null" }

// MarshalJSON writes the value without blanks.
func (n *Node) MarshalJSON() ([]byte, error) { return n.compact(nil), nil }

func (n *Node) compact(doc []byte) []byte {
	switch {
	case n.scalar != "":
		return append(doc, n.scalar...)
	case n.list:
		doc = append(doc, '[')
		for i, item := range n.items {
			if i > 0 {
				doc = append(doc, ',')
			}
			doc = item.compact(doc)
		}
		return append(doc, ']')
	}
	doc = append(doc, '{')
	for i, m := range n.members {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(append(doc, quote(m.key)...), ':')
		doc = m.value.compact(doc)
	}
	return append(doc, '}')
}

// isPlain reports whether a text is the same in JSON but for the quotes.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			return false
		}
	}
	return true
}

// quote writes a key, with '<' and '&' as they are.
func quote(s string) []byte {
	if isPlain(s) {
		return append(append([]byte{'"'}, s...), '"')
	}
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string is always JSON
	return bytes.TrimSpace(doc.Bytes())
}

// value is what encoding/json makes of the node, with numbers as they are written.
func (n *Node) value() any {
	switch text := n.scalar; {
	case len(text) > 1 && text[0] == '"' && isPlain(text[1:len(text)-1]):
		return text[1 : len(text)-1]
	case text == "true" || text == "false":
		return text == "true"
	case text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9'):
		return json.Number(text)
	}
	dec := json.NewDecoder(bytes.NewReader(n.compact(nil)))
	dec.UseNumber()
	var value any
	_ = dec.Decode(&value) // a node is always JSON
	return value
}

// nodeReader reads a document that is known to be JSON.
type nodeReader struct {
	doc      []byte
	dec      *json.Decoder
	warnings []Warning
	// line is that of the byte at counted.
	line, counted int
}

// readNode reads a document that is known to be JSON. It warns about keys that an
// object has twice: only the last one counts, for the AWS tools as here.
func readNode(doc []byte) (*Node, []Warning) {
	r := nodeReader{doc: doc, dec: json.NewDecoder(bytes.NewReader(doc)), line: 1}
	r.dec.UseNumber() // any number is one
	return r.read("$"), r.warnings
}

func (r *nodeReader) read(path string) *Node {
	before := r.dec.InputOffset()
	token, err := r.dec.Token()
	if err != nil {
		return nil // the closing bracket that More does not count
	}
	n := &Node{line: r.lineAt(int(r.dec.InputOffset()))}
	switch token {
	case json.Delim('{'):
		for r.dec.More() {
			key, _ := r.dec.Token()
			r.add(n, fmt.Sprint(key), path)
		}
	case json.Delim('['):
		n.list = true
		for i := 0; r.dec.More(); i++ {
			n.items = append(n.items, r.read(path+"["+strconv.Itoa(i)+"]"))
		}
	default:
		n.scalar = strings.TrimLeft(string(r.doc[before:r.dec.InputOffset()]), " \t\r\n,:")
		return n
	}
	_, _ = r.dec.Token() // the closing bracket
	return n
}

// lineAt is the line of an offset, which is not before the one of the call before.
func (r *nodeReader) lineAt(offset int) int {
	r.line += bytes.Count(r.doc[r.counted:offset], []byte{'\n'})
	r.counted = offset
	return r.line
}

func (r *nodeReader) add(n *Node, key, path string) {
	path += "." + key
	if n.Get(key) != nil {
		r.warnings = append(r.warnings, Warning{Path: path, Message: "key given twice, the last one counts"})
	}
	n.Set(key, r.read(path))
}
