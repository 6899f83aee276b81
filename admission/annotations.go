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

// annotation is the value of an annotation, with its path.
type annotation struct {
	value, path string
	// container is the index of the container that has the label, -1 for a tag.
	container int
}

// annotations are those of a definition: labels before tags.
type annotations struct {
	doc    *document
	values map[string]annotation
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

// value returns the value of an annotation, and false without one.
func (as *annotations) value(name string) (string, bool) {
	found, ok := as.values[name]
	return found.value, ok
}

// wantMesh reports whether the annotations ask for the mesh; without one, whether there
// is a mesh file.
func (as *annotations) wantMesh(file bool) bool {
	value, ok := as.value(annotationInject)
	if !ok {
		return file
	}
	wanted, err := strconv.ParseBool(value)
	return err != nil || wanted // what it should be is a finding
}

// reportNotInjected reports that nothing is injected when no annotation requests it.
func (t *task) reportNotInjected() {
	if _, given := t.annotations.value(annotationInject); !given {
		t.doc.report(codeNotInjected, "$", "annotation", annotationInject)
	}
}

// read reads the annotations of the document, in place of those that were read before.
func (as *annotations) read() {
	*as = annotations{doc: as.doc, values: map[string]annotation{}, exempt: map[string]bool{},
		native: map[string]bool{}, wrap: map[string]choice{}}
	def := as.doc.Definition
	for i, c := range def.ContainerDefinitions {
		if workload.IsMeshContainer(c.Name) {
			as.admitted = as.admitted || madeHere(c)
			continue
		}
		for _, label := range slices.Sorted(maps.Keys(c.DockerLabels)) {
			path := labelPath(i, label)
			if as.recognize(label, path) && !isNativeName(c, label) && !as.doc.IsUnknown(path) {
				as.add(label, annotation{c.DockerLabels[label], path, i})
			}
		}
	}
	for i, tag := range def.Tags {
		path := fmt.Sprintf("$.tags[%d]", i)
		label, labelled := as.values[tag.Key]
		switch known := as.recognize(tag.Key, path) && !as.doc.IsUnknown(path+".value"); {
		case known && !labelled:
			as.add(tag.Key, annotation{tag.Value, path, -1})
		case known && label.value != tag.Value:
			as.doc.report(codeAnnTag, path, "annotation", tag.Key, "tag", strconv.Quote(tag.Value),
				"label", strconv.Quote(label.value))
		}
	}
}

// labelPath returns the path of a docker label of a container.
func labelPath(i int, label string) string {
	return fmt.Sprintf("$.containerDefinitions[%d].dockerLabels[%q]", i, label)
}

// recognize reports whether a label or the key of a tag is an annotation.
func (as *annotations) recognize(name, path string) bool {
	if !strings.HasPrefix(name, annotationPrefix) {
		return false
	}
	fix, known := recognizeAnnotation(name)
	if !known {
		as.doc.report(codeAnnUnknown, path, "annotation", name, "fix", fix)
	}
	return known
}

// reportValue reports a value, or a word of it, that an annotation must not have.
func (as *annotations) reportValue(name string, a annotation, value, want string) {
	as.doc.report(codeAnnValue, a.path, "annotation", name, "value", strconv.Quote(value), "want", want)
}

// check checks the annotations that are passed on. Without the mesh only the token
// broker reads some.
func (as *annotations) check(injected bool) {
	pairs := 0
	for _, name := range slices.Sorted(maps.Keys(as.values)) {
		a := as.values[name]
		if !injected && !ofBroker(name) {
			continue
		}
		for _, p := range checkAnnotation(name, a.value) {
			as.reportValue(name, a, p.Value, p.Want)
		}
		if strings.HasPrefix(name, annotationMeta) {
			pairs++
		}
		if strings.HasPrefix(name, annotationMeta) && pairs == maxMeta+1 {
			as.reportValue(name, a, a.value, fmt.Sprintf("at most %d annotations %s<key>", maxMeta, annotationMeta))
		}
	}
}

// add adds an annotation. Two containers have to agree on one that is about the task.
func (as *annotations) add(name string, a annotation) {
	switch name {
	case annotationKind, annotationFromImage:
		return // of a container, see kind and record
	case annotationInject, annotationDepends, annotationNative, annotationWrap:
		wanted, err := strconv.ParseBool(a.value)
		if err != nil {
			as.reportValue(name, a, a.value, "true or false")
		}
		switch {
		case a.container < 0 && name == annotationWrap:
			as.reportValue(name, a, a.value, "a docker label of a container")
			return
		case a.container < 0: // a tag, of the whole task
		case name == annotationDepends:
			as.exempt[as.doc.containerName(a.container)] = err == nil && !wanted
			return
		case name == annotationNative:
			as.native[as.doc.containerName(a.container)] = wanted
			return
		case name == annotationWrap && err == nil:
			as.wrap[as.doc.containerName(a.container)] = map[bool]choice{true: choiceWrap, false: choiceSkip}[wanted]
			return
		case name == annotationWrap:
			return
		}
	}
	before, given := as.values[name]
	if given && before.value != a.value {
		as.doc.report(codeAnnConflict, a.path, "annotation", name, "one", strconv.Quote(before.value), "other",
			strconv.Quote(a.value),
			"a", as.doc.containerName(before.container), "b", as.doc.containerName(a.container))
		return
	}
	as.values[name] = a
}

// containerName returns a container's name, or its index when CloudFormation computes that.
func (d *document) containerName(i int) string {
	return cmp.Or(d.Definition.ContainerDefinitions[i].Name, fmt.Sprintf("[%d]", i))
}

// number returns the value of an annotation that is a number, and false without one or when it is none.
func (as *annotations) number(name string, low, high int) (int, bool) {
	a, given := as.values[name]
	if !given {
		return 0, false
	}
	n, err := strconv.Atoi(a.value)
	if err != nil || n < low || n > high {
		as.reportValue(name, a, a.value, fmt.Sprintf("an integer from %d to %d", low, high))
		return 0, false
	}
	return n, true
}

// upstreams reads name:port and name:port:datacenter.
func (as *annotations) upstreams() ([]upstream, bool) {
	a, given := as.values[annotationUpstreams]
	if !given {
		return nil, false
	}
	list, wrong := parseUpstreams(a.value)
	for _, word := range wrong {
		as.reportValue(annotationUpstreams, a, word, "name:port or name:port:datacenter")
	}
	return list, true
}

// serviceMeta returns the values of the annotations service-meta-<key>, by key.
func (as *annotations) serviceMeta() map[string]string {
	meta := map[string]string{}
	for name, found := range as.values {
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
