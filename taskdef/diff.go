package taskdef

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Diff returns the unified difference between two documents in canonical form: two
// blanks per level, all else as it is written. It is empty when they are equal. YAML is compared as
// it is written.
func Diff(before, after *Document) string {
	if before.yaml != nil {
		return udiff.Unified("before", "after", string(before.Bytes()), string(after.Bytes()))
	}
	return udiff.Unified("before", "after", string(before.Root.indented()), string(after.Root.indented()))
}

// Patch returns the JSON Patch (RFC 6902) that turns one document into the other.
func Patch(before, after *Document) []byte {
	return NewNode(appendPatch([]operation{}, "", before.Root, after.Root)).indented()
}

// operation is an element of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value *Node  `json:"value,omitempty"`
}

// pointerEscapes are those of a JSON Pointer (RFC 6901).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// appendPatch appends what turns one value into the other. Lists are compared element by
// element, and change their length at their ends.
func appendPatch(patch []operation, path string, before, after *Node) []operation {
	switch {
	case before.IsObject() && after.IsObject():
		for _, key := range before.Keys() {
			member := path + "/" + pointerEscapes.Replace(key)
			if value := after.Get(key); value != nil {
				patch = appendPatch(patch, member, before.Get(key), value)
			} else {
				patch = append(patch, operation{Op: "remove", Path: member})
			}
		}
		for _, key := range after.Keys() {
			if before.Get(key) == nil {
				patch = append(patch, operation{"add", path + "/" + pointerEscapes.Replace(key), after.Get(key)})
			}
		}
	case before.IsList() && after.IsList():
		old, items := before.Items(), after.Items()
		both := min(len(old), len(items))
		for i := range both {
			patch = appendPatch(patch, path+"/"+strconv.Itoa(i), old[i], items[i])
		}
		for i := len(old) - 1; i >= both; i-- {
			patch = append(patch, operation{Op: "remove", Path: path + "/" + strconv.Itoa(i)})
		}
		for _, item := range items[both:] {
			patch = append(patch, operation{"add", path + "/-", item})
		}
	case !bytes.Equal(before.JSON(), after.JSON()):
		patch = append(patch, operation{"replace", path, after})
	}
	return patch
}
