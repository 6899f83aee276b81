package admission

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// record is which members of a container admission has written from its image. The label
// annotationFromImage has it, with a hash of each, so that what the user has changed since
// counts as the user's.
type record struct {
	entryPoint, command, stopSignal, image bool
	// reference is true when the container still has the image that the members are from.
	reference bool
}

// recorded are the members of a record, with their present values.
type recorded struct {
	key     string
	written *bool
	value   []string
}

// recordedOf returns the members of a record of a container.
func recordedOf(d *document, n *taskdef.Node, r *record) []recorded {
	entry := d.get(n, "entryPoint")
	words := wrapperWords(texts(entry))
	signal := ""
	reference, _, _ := strings.Cut(d.text(n, "image"), "@") // the digest of -pin may change
	if words > 0 {
		_, signal = withoutFlag(entry.Items()[2:words], stopSignalFlag)
	}
	return []recorded{
		{"entryPoint", &r.entryPoint, texts(entry)[words:]},
		{"command", &r.command, texts(d.get(n, "command"))},
		{"stopSignal", &r.stopSignal, []string{signal}},
		{"image", &r.image, []string{d.text(n, "image")}},
		{"reference", &r.reference, []string{reference}},
	}
}

// String returns the member as the label has it.
func (m recorded) String() string {
	return fmt.Sprintf("%s:%x", m.key, sha256.Sum256([]byte(strings.Join(m.value, "\x00"))))[:len(m.key)+9]
}

// record reads the record of a container: the members that are as they were written.
func (d *document) record(n *taskdef.Node) record {
	var r record
	label, _ := d.get(n, "dockerLabels").Get(annotationFromImage).Text()
	if label == "" {
		return r
	}
	words := strings.Fields(label)
	for _, m := range recordedOf(d, n, &r) {
		*m.written = slices.Contains(words, m.String())
	}
	return r
}

// setRecord writes the record of a container, after the members.
func (d *document) setRecord(n *taskdef.Node, r record) {
	var words []string
	for _, m := range recordedOf(d, n, &r) {
		if *m.written {
			words = append(words, m.String())
		}
	}
	labels := d.get(n, "dockerLabels")
	switch {
	case len(words) > 0:
		d.label(n, annotationFromImage, strings.Join(words, " "))
	case labels.Get(annotationFromImage) == nil:
	case len(labels.Keys()) == 1:
		n.Delete(d.Key("dockerLabels"))
	default:
		labels.Delete(annotationFromImage)
	}
}

// canLabel reports whether a container can get a docker label: its labels may be computed.
func canLabel(d *document, n *taskdef.Node) bool {
	labels := d.get(n, "dockerLabels")
	return d.isAbsent(n, "dockerLabels") || labels.IsObject() && !labels.IsComputed()
}
