package taskdef

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
)

// SealTag is the key of the tag that has the seal of an admitted definition.
const SealTag = "consul.hashicorp.com/admission"

// Seal returns the value of SealTag for a text: that of Sealed, or of a template.
func Seal(text []byte) string { return fmt.Sprintf("v1:%x", sha256.Sum256(text)) }

// Sealed returns the text of a definition with its defaults, the same for what is registered and for what
// DescribeTaskDefinition answers: without the tag SealTag and OutputKeys.
func (d TaskDefinition) Sealed() []byte {
	d.Tags = slices.DeleteFunc(slices.Clone(d.Tags), func(t Tag) bool { return t.Key == SealTag })
	n := nodeOf(reflect.ValueOf(d))
	for _, key := range OutputKeys {
		n.Delete(key)
	}
	n.prune()
	return n.JSON()
}

// Admitted reports whether the definition has its own seal: it is as it was admitted.
func (d *TaskDefinition) Admitted() bool {
	return slices.Contains(d.Tags, Tag{Key: SealTag, Value: Seal(d.Sealed())})
}
