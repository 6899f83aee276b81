package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// located is the value of an annotation, with its place.
type located struct {
	value, path string
	// container is the index of the container that has the label, -1 for a tag.
	container int
}

// annotations are those of a definition: labels before tags.
type annotations struct {
	task map[string]located
	// exempt are the names of containers that neither wait for the proxy nor delay
	// their shutdown.
	exempt map[string]bool
	// native are the names of containers that speak the mesh's TLS themselves.
	native map[string]bool
	// wrap are the choices of containers whether app-entrypoint precedes them.
	wrap map[string]choice
	// admitted is true when admission has made a container of the definition before.
	admitted bool
}

// value is the value of an annotation, and false without one.
func (a annotations) value(name string) (string, bool) {
	found, ok := a.task[name]
	return found.value, ok
}

// inject reports whether the annotations ask for the mesh; without one, whether there
// is a mesh file.
func (a annotations) inject(file bool) bool {
	value, ok := a.value(annotationInject)
	if !ok {
		return file
	}
	wanted, err := strconv.ParseBool(value)
	return err != nil || wanted // what it should be is a finding
}

// reportNotInjected reports that nothing is injected when no annotation requests it.
func (t *task) reportNotInjected() {
	if _, given := t.notes.value(annotationInject); !given {
		t.add(codeNotInjected, "$", "annotation", annotationInject)
	}
}

// annotate reads the annotations of the document.
func (t *task) annotate() {
	t.notes = annotations{task: map[string]located{}, exempt: map[string]bool{}, native: map[string]bool{}, wrap: map[string]choice{}}
	def := t.doc.Definition
	for i, c := range def.ContainerDefinitions {
		if workload.IsMeshContainer(c.Name) {
			t.notes.admitted = t.notes.admitted || madeHere(c)
			continue
		}
		for _, label := range slices.Sorted(maps.Keys(c.DockerLabels)) {
			path := labelPath(i, label)
			if t.recognized(label, path) && !t.ofNative(c, label) && !t.doc.IsUnknown(path) {
				t.note(label, located{c.DockerLabels[label], path, i})
			}
		}
	}
	for i, tag := range def.Tags {
		path := fmt.Sprintf("$.tags[%d]", i)
		label, labelled := t.notes.task[tag.Key]
		switch known := t.recognized(tag.Key, path) && !t.doc.IsUnknown(path+".value"); {
		case known && !labelled:
			t.note(tag.Key, located{tag.Value, path, -1})
		case known && label.value != tag.Value:
			t.add(codeAnnTag, path, "annotation", tag.Key, "tag", strconv.Quote(tag.Value),
				"label", strconv.Quote(label.value))
		}
	}
	t.inferNative()
}

// labelPath is where a container has a docker label.
func labelPath(i int, label string) string {
	return fmt.Sprintf("$.containerDefinitions[%d].dockerLabels[%q]", i, label)
}

// recognized reports whether a label or the key of a tag is an annotation.
func (t *task) recognized(name, path string) bool {
	if !strings.HasPrefix(name, annotationPrefix) {
		return false
	}
	fix, known := recognizeAnnotation(name)
	if !known {
		t.add(codeAnnUnknown, path, "annotation", name, "fix", fix)
	}
	return known
}

// badValue reports a value, or a word of it, that an annotation must not have.
func (t *task) badValue(name string, a located, value, want string) {
	t.add(codeAnnValue, a.path, "annotation", name, "value", strconv.Quote(value), "want", want)
}

// checkValues checks the annotations that are passed on. Without the mesh only the token
// broker reads some.
func (t *task) checkValues(injected bool) {
	pairs := 0
	for _, name := range slices.Sorted(maps.Keys(t.notes.task)) {
		a := t.notes.task[name]
		if !injected && !ofBroker(name) {
			continue
		}
		for _, p := range checkAnnotation(name, a.value) {
			t.badValue(name, a, p.Value, p.Want)
		}
		if strings.HasPrefix(name, annotationMeta) {
			pairs++
		}
		if strings.HasPrefix(name, annotationMeta) && pairs == maxMeta+1 {
			t.badValue(name, a, a.value, fmt.Sprintf("at most %d annotations %s<key>", maxMeta, annotationMeta))
		}
	}
}

// note keeps an annotation. Two containers have to agree on one that is about the task.
func (t *task) note(name string, a located) {
	switch name {
	case annotationKind, annotationFromImage:
		return // of a container, see kind and record
	case annotationInject, annotationDepends, annotationNative, annotationWrap:
		wanted, err := strconv.ParseBool(a.value)
		if err != nil {
			t.badValue(name, a, a.value, "true or false")
		}
		switch {
		case a.container < 0 && name == annotationWrap:
			t.badValue(name, a, a.value, "a docker label of a container")
			return
		case a.container < 0: // a tag, of the whole task
		case name == annotationDepends:
			t.notes.exempt[t.containerName(a.container)] = err == nil && !wanted
			return
		case name == annotationNative:
			t.notes.native[t.containerName(a.container)] = wanted
			return
		case name == annotationWrap && err == nil:
			t.notes.wrap[t.containerName(a.container)] = map[bool]choice{true: choiceWrap, false: choiceLeave}[wanted]
			return
		case name == annotationWrap:
			return
		}
	}
	before, given := t.notes.task[name]
	if given && before.value != a.value {
		t.add(codeAnnConflict, a.path, "annotation", name, "one", strconv.Quote(before.value), "other", strconv.Quote(a.value),
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
		t.badValue(name, a, a.value, fmt.Sprintf("an integer from %d to %d", low, high))
		return 0, false
	}
	return n, true
}

// upstreams reads name:port and name:port:datacenter.
func (t *task) upstreams() ([]upstream, bool) {
	a, given := t.notes.task[annotationUpstreams]
	if !given {
		return nil, false
	}
	list, wrong := parseUpstreams(a.value)
	for _, word := range wrong {
		t.badValue(annotationUpstreams, a, word, "name:port or name:port:datacenter")
	}
	return list, true
}

// serviceMeta are the annotations service-meta-<key>.
func (a annotations) serviceMeta() map[string]string {
	meta := map[string]string{}
	for name, found := range a.task {
		if key, is := strings.CutPrefix(name, annotationMeta); is {
			meta[key] = found.value
		}
	}
	return meta
}

// madeHere reports whether admission has made a container before.
func madeHere(c taskdef.Container) bool {
	return c.DockerLabels[annotationInjectedBy] != ""
}
