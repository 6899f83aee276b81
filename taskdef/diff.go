package taskdef

import (
	"fmt"

	"github.com/aymanbagabas/go-udiff"
	"github.com/wI2L/jsondiff"
)

// Diff returns the unified difference between two documents in canonical form: two
// blanks per level, all else as it is written. It is empty when they are equal. YAML is compared as
// it is written.
func Diff(before, after *Document) string {
	if before.yaml != nil {
		return udiff.Unified("before", "after", string(before.Bytes()), string(after.Bytes()))
	}
	return udiff.Unified("before", "after", string(indent(before.Root.text())), string(indent(after.Root.text())))
}

// Patch returns the JSON Patch (RFC 6902) that turns one document into the other.
func Patch(before, after *Document) ([]byte, error) {
	operations, err := jsondiff.CompareJSON(before.Root.text(), after.Root.text())
	if err != nil {
		return nil, fmt.Errorf("compare task definitions: %w", err)
	}
	if operations == nil {
		operations = jsondiff.Patch{}
	}
	patch, err := NewNode(operations)
	if err != nil {
		return nil, err
	}
	return indent(patch.compact(nil)), nil
}
