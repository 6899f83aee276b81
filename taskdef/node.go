package taskdef

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Node is a value of a JSON document. It keeps what maps and floats would lose: the
// order of members, and how numbers and strings are written. The zero value is an empty
// object.
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

// NewNode returns the JSON form of a Go value, of a node a copy. It panics for a value that
// has none, such as a function.
func NewNode(value any) *Node {
	switch value := value.(type) {
	case *Node:
		return value.clone(func(_, _ *Node) {})
	case string:
		return &Node{scalar: quote(value)}
	}
	if t := reflect.TypeOf(value); isOwn(t) || t.Kind() == reflect.Pointer && isOwn(t.Elem()) {
		return nodeOf(reflect.ValueOf(value))
	}
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(err)
	}
	n, _ := readNode(doc.Bytes())
	return n
}

// isOwn reports whether a type is one of the definition's.
func isOwn(t reflect.Type) bool {
	return t != nil && t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[TaskDefinition]().PkgPath()
}

// nodeOf returns what encoding/json makes of a value of the definition's types, in a fraction of the time.
func nodeOf(v reflect.Value) *Node {
	switch v.Kind() {
	case reflect.Pointer:
		return nodeOf(v.Elem())
	case reflect.Struct:
		n := &Node{}
		for _, f := range fieldsOf(v.Type(), false).all {
			if value := v.Field(f.index); !f.omitted || !value.IsZero() {
				n.members = append(n.members, member{f.key, nodeOf(value)})
			}
		}
		return n
	case reflect.Slice:
		n := &Node{list: true, items: make([]*Node, 0, v.Len())}
		for i := range v.Len() {
			n.items = append(n.items, nodeOf(v.Index(i)))
		}
		return n
	case reflect.Map:
		n, texts := &Node{}, v.Interface().(map[string]string)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			n.members = append(n.members, member{key, &Node{scalar: quote(texts[key])}})
		}
		return n
	case reflect.String:
		return &Node{scalar: quote(v.String())}
	case reflect.Interface:
		return NewNode(v.Interface())
	}
	return &Node{scalar: fmt.Sprint(v)} // a number or a boolean
}

// clone copies a tree, and reports each copy.
func (n *Node) clone(report func(of, made *Node)) *Node {
	if n == nil {
		return nil
	}
	c := &Node{scalar: n.scalar, list: n.list, line: n.line, members: slices.Clone(n.members),
		items: slices.Clone(n.items)}
	for i := range c.members {
		c.members[i].value = c.members[i].value.clone(report)
	}
	for i, item := range c.items {
		c.items[i] = item.clone(report)
	}
	report(n, c)
	return c
}

// Keys returns the keys of an object, in their order. n may be nil.
func (n *Node) Keys() []string {
	if n == nil {
		return nil
	}
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

// Items returns the elements of a list.
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

// Text returns the value of a string, and false when the value is none.
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

// IsComputed reports whether the value is known at deployment only: an intrinsic function
// of CloudFormation, or a text with a dynamic reference. n may be nil.
func (n *Node) IsComputed() bool {
	if text, is := n.Text(); is {
		return strings.Contains(text, "{{resolve:")
	}
	function := func(key string) bool { return strings.HasPrefix(key, "Fn::") }
	keys := n.Keys()
	return slices.ContainsFunc(keys, function) || len(keys) == 1 && keys[0] == "Ref"
}

// MarshalJSON implements json.Marshaler.
func (n *Node) MarshalJSON() ([]byte, error) { return n.JSON(), nil }

// JSON returns the value without blanks.
func (n *Node) JSON() []byte { return n.write(make([]byte, 0, n.length()), -1) }

// indented returns the value with two blanks per level, and a line break at its end.
func (n *Node) indented() []byte { return append(n.write(make([]byte, 0, 2*n.length()), 0), '\n') }

// length returns about the length of the value without blanks.
func (n *Node) length() int {
	total := len(n.scalar) + len(n.items) + 3
	for _, m := range n.members {
		total += len(m.key) + len(`"":,`) + m.value.length()
	}
	for _, item := range n.items {
		total += item.length()
	}
	return total
}

// write appends the value, at a level of indentation or, below 0, without blanks.
func (n *Node) write(doc []byte, level int) []byte {
	below := level
	if level >= 0 {
		below++
	}
	switch {
	case n.scalar != "":
		return append(doc, n.scalar...)
	case n.list && len(n.items) == 0:
		return append(doc, "[]"...)
	case n.list:
		doc = append(doc, '[')
		for i, item := range n.items {
			doc = item.write(separate(doc, i, below), below)
		}
		return append(breakLine(doc, level), ']')
	case len(n.members) == 0:
		return append(doc, "{}"...)
	}
	doc = append(doc, '{')
	for i, m := range n.members {
		doc = append(appendQuoted(separate(doc, i, below), m.key), ':')
		if level >= 0 {
			doc = append(doc, ' ')
		}
		doc = m.value.write(doc, below)
	}
	return append(breakLine(doc, level), '}')
}

// separate begins the next element of an object or a list.
func separate(doc []byte, index, level int) []byte {
	if index > 0 {
		doc = append(doc, ',')
	}
	return breakLine(doc, level)
}

func breakLine(doc []byte, level int) []byte {
	if level < 0 {
		return doc
	}
	doc = append(doc, '\n')
	for range level {
		doc = append(doc, ' ', ' ')
	}
	return doc
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

// appendQuoted writes a string, with '<' and '&' as they are.
func appendQuoted(doc []byte, s string) []byte {
	start := len(doc)
	doc = append(doc, '"')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c > '~' {
			var quoted bytes.Buffer
			enc := json.NewEncoder(&quoted)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(s) // a string is always JSON
			return append(doc[:start], bytes.TrimSpace(quoted.Bytes())...)
		}
		if c == '"' || c == '\\' {
			doc = append(doc, '\\')
		}
		doc = append(doc, c)
	}
	return append(doc, '"')
}

func quote(s string) string { return string(appendQuoted(nil, s)) }

// value returns what encoding/json makes of the node, with numbers as they are written.
func (n *Node) value() any {
	switch text := n.scalar; {
	case strings.HasPrefix(text, `"`):
		if plain := text[1 : len(text)-1]; isPlain(plain) {
			return plain
		}
		var value string
		_ = json.Unmarshal([]byte(text), &value) // a node is always JSON
		return value
	case text == "true" || text == "false":
		return text == "true"
	case text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9'):
		return json.Number(text)
	}
	dec := json.NewDecoder(bytes.NewReader(n.JSON()))
	dec.UseNumber()
	var value any
	_ = dec.Decode(&value) // a node is always JSON
	return value
}

// nodeReader reads a document that is known to be JSON, so it looks for the ends of
// values only: the decoder of
// encoding/json takes several times as long.
type nodeReader struct {
	doc string
	// at is the next byte, and line its line.
	at, line int
	// path is that of the value being read.
	path     []byte
	warnings []Warning
}

// readNode reads a document that is known to be JSON. It warns about keys that an
// object has twice: only the last one counts, for the AWS tools as here.
func readNode(doc []byte) (*Node, []Warning) {
	r := nodeReader{doc: string(doc), line: 1, path: []byte("$")}
	return r.read(), r.warnings
}

func (r *nodeReader) read() *Node {
	first := r.next()
	n, path := &Node{line: r.line}, len(r.path)
	switch first {
	case '{':
		for r.at++; r.next() != '}'; r.path = r.path[:path] {
			key, _ := (&Node{scalar: r.scalar()}).Text()
			r.path = append(append(r.path, '.'), key...)
			if n.Get(key) != nil {
				r.warnings = append(r.warnings,
					Warning{Path: string(r.path), Message: "key given twice, the last one counts"})
			}
			n.Set(key, r.read())
		}
		r.at++
	case '[':
		n.list = true
		for r.at++; r.next() != ']'; r.path = r.path[:path] {
			r.path = append(strconv.AppendInt(append(r.path, '['), int64(len(n.items)), 10), ']')
			n.items = append(n.items, r.read())
		}
		r.at++
	default:
		n.scalar = r.scalar()
	}
	return n
}

// next returns the first byte of a key or value, or a closing bracket.
func (r *nodeReader) next() byte {
	for ; strings.IndexByte(" \t\r\n,:", r.doc[r.at]) >= 0; r.at++ {
		if r.doc[r.at] == '\n' {
			r.line++
		}
	}
	return r.doc[r.at]
}

// scalar reads to the end of a string, or of a word or number.
func (r *nodeReader) scalar() string {
	rest := r.doc[r.at:]
	end := strings.IndexAny(rest, " \t\r\n,]}")
	if rest[0] == '"' {
		for end = 1; rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		end++
	} else if end < 0 {
		end = len(rest)
	}
	r.at += end
	return rest[:end]
}
