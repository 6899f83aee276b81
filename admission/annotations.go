package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/internal/nearest"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// Prefix is that of every annotation, a docker label or a tag of the definition.
const Prefix = "consul.hashicorp.com/"

// Annotations, without Prefix.
const (
	annInject      = "mesh-inject"
	annServiceName = "service-name"
	annServicePort = "service-port"
	annUpstreams   = "upstreams"
	annTags        = "service-tags"
	annMeta        = "service-meta-"
	annGateway     = "gateway-kind"
	annNative      = "native"
	annCPU         = "sidecar-cpu"
	annMemory      = "sidecar-memory"
	annDepends     = "depends"
	annNamespace   = "namespace"
	annPartition   = "partition"
	annInjectedBy  = "injected-by"
	annMesh        = "mesh"
	annExpose      = "expose-checks"
	annKind        = "kind"
	annAdmission   = "admission"
)

// known are all annotations. The last ones are read by other programs.
var known = []string{
	annInject, annServiceName, annServicePort, annUpstreams, annTags, annGateway, annNative, annCPU, annMemory,
	annDepends, annNamespace, annPartition, annInjectedBy, annMesh, annExpose, annKind, annAdmission, "kv-prefixes", "policies", "ttl",
}

// annotation is the value of one, with its place.
type annotation struct {
	value, path string
	// container is the index of the container that has the label, -1 for a tag.
	container int
}

// annotations are those of a definition: labels before tags.
type annotations struct {
	task map[string]annotation
	// exempt are the names of containers that neither wait for the proxy nor delay
	// their shutdown.
	exempt map[string]bool
	// native are the names of containers that speak the mesh's TLS themselves.
	native map[string]bool
}

// value is the value of an annotation, and false without one.
func (a annotations) value(name string) (string, bool) {
	found, ok := a.task[name]
	return found.value, ok
}

// inject reports whether the annotations ask for the mesh; without one, whether there
// is a mesh file.
func (a annotations) inject(file bool) bool {
	value, ok := a.value(annInject)
	if !ok {
		return file
	}
	wanted, err := strconv.ParseBool(value)
	return err != nil || wanted // what it should be is a finding
}

// annotate reads the annotations of the document.
func (t *task) annotate() {
	t.notes = annotations{task: map[string]annotation{}, exempt: map[string]bool{}, native: map[string]bool{}}
	def := t.doc.Definition
	for i, c := range def.ContainerDefinitions {
		if workload.Owned(c.Name) {
			continue
		}
		for _, label := range slices.Sorted(maps.Keys(c.DockerLabels)) {
			name, ours := strings.CutPrefix(label, Prefix)
			path := labelPath(i, label)
			if ours && t.recognized(name, path) && !t.ofNative(c, name) {
				t.note(name, annotation{c.DockerLabels[label], path, i})
			}
		}
	}
	for i, tag := range def.Tags {
		name, ours := strings.CutPrefix(tag.Key, Prefix)
		path := fmt.Sprintf("$.tags[%d]", i)
		if _, labelled := t.notes.task[name]; ours && t.recognized(name, path) && !labelled {
			t.note(name, annotation{tag.Value, path, -1})
		}
	}
	t.inferNative()
}

// labelPath is where a container has a docker label.
func labelPath(i int, label string) string {
	return fmt.Sprintf("$.containerDefinitions[%d].dockerLabels[%q]", i, label)
}

func (t *task) recognized(name, path string) bool {
	if slices.Contains(known, name) || strings.HasPrefix(name, annMeta) {
		return true
	}
	fix := "remove it"
	if near := nearest.Key(name, known); near != "" {
		fix = "did you mean " + Prefix + near + "?"
	}
	t.add(codeAnnUnknown, path, "annotation", Prefix+name, "fix", fix)
	return false
}

// note keeps an annotation. Two containers have to agree on one that is about the task.
func (t *task) note(name string, a annotation) {
	switch name {
	case annKind:
		return // of a container, see kind
	case annInject, annDepends, annNative:
		wanted, err := strconv.ParseBool(a.value)
		if err != nil {
			t.add(codeAnnValue, a.path, "annotation", Prefix+name, "value", strconv.Quote(a.value), "want", "true or false")
		}
		switch {
		case a.container < 0: // a tag, of the whole task
		case name == annDepends:
			t.notes.exempt[t.containerName(a.container)] = err == nil && !wanted
			return
		case name == annNative:
			t.notes.native[t.containerName(a.container)] = wanted
			return
		}
	}
	before, given := t.notes.task[name]
	if given && before.value != a.value {
		t.add(codeAnnConflict, a.path, "annotation", Prefix+name, "one", strconv.Quote(before.value), "other", strconv.Quote(a.value),
			"a", t.containerName(before.container), "b", t.containerName(a.container))
		return
	}
	t.notes.task[name] = a
}

// containerName is a container's name, or its place when CloudFormation computes that.
func (t *task) containerName(i int) string {
	return cmp.Or(t.doc.Definition.ContainerDefinitions[i].Name, fmt.Sprintf("[%d]", i))
}

// number is the value of an annotation that is a number, and false without one or when
// it is none.
func (t *task) number(name string, low, high int) (int, bool) {
	a, given := t.notes.task[name]
	if !given {
		return 0, false
	}
	n, err := strconv.Atoi(a.value)
	if err != nil || n < low || n > high {
		t.add(codeAnnValue, a.path, "annotation", Prefix+name, "value", strconv.Quote(a.value), "want", fmt.Sprintf("an integer from %d to %d", low, high))
		return 0, false
	}
	return n, true
}

// words are the elements of a list: commas or blanks separate them, since a tag cannot
// have commas.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// upstream is one element of the annotation upstreams.
type upstream struct {
	DestinationName string `json:"destinationName"`
	Datacenter      string `json:"datacenter,omitempty"`
	LocalBindPort   int    `json:"localBindPort"`
}

// upstreams reads name:port and name:port:datacenter.
func (t *task) upstreams() ([]upstream, bool) {
	a, given := t.notes.task[annUpstreams]
	if !given {
		return nil, false
	}
	list := []upstream{}
	for _, word := range words(a.value) {
		parts := strings.Split(word, ":")
		port := 0
		if len(parts) == 2 || len(parts) == 3 {
			port, _ = strconv.Atoi(parts[1])
		}
		if parts[0] == "" || port < 1 || port > 65535 {
			t.add(codeAnnValue, a.path, "annotation", Prefix+annUpstreams, "value", strconv.Quote(word), "want", "name:port or name:port:datacenter")
			continue
		}
		u := upstream{DestinationName: parts[0], LocalBindPort: port}
		if len(parts) == 3 {
			u.Datacenter = parts[2]
		}
		list = append(list, u)
	}
	return list, true
}

// serviceMeta are the annotations service-meta-<key>.
func (a annotations) serviceMeta() map[string]string {
	meta := map[string]string{}
	for name, found := range a.task {
		if key, is := strings.CutPrefix(name, annMeta); is {
			meta[key] = found.value
		}
	}
	return meta
}

// madeHere reports whether admission has made a container before.
func madeHere(c taskdef.Container) bool { return c.DockerLabels[Prefix+annInjectedBy] != "" }
