package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// corpusVariable names a directory of task definitions that are admitted in place of
// testdata/plain. With -v the test reports what is refused of them, and why.
const corpusVariable = "TASKDEF_CORPUS"

// definitions returns the documents of that directory by their names.
func definitions(t *testing.T) map[string][]byte {
	t.Helper()
	dir := os.Getenv(corpusVariable)
	if dir == "" {
		dir = filepath.Join("testdata", "plain")
	}
	docs := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !slices.Contains([]string{".json", ".yaml", ".yml", ".template"}, filepath.Ext(path)) {
			return nil
		}
		docs[entry.Name()], err = os.ReadFile(path)
		return err
	})
	if err != nil || len(docs) < 50 {
		t.Fatalf("%d definitions in %s: %v", len(docs), dir, err)
	}
	return docs
}

// Whatever is published as a task definition is either refused as a document, in which
// case the error says where, or admitted so that all its own members are still there and
// a second admission changes nothing.
func TestDefinitionsOfACorpusLoseNothing(t *testing.T) {
	t.Parallel()
	plain, admitted := &report{codes: map[string]int{}}, &report{codes: map[string]int{}}
	docs, meshes := definitions(t), []string{"transparent", "direct", "agent"}
	if testing.Short() {
		meshes = meshes[:1]
	}
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		for _, resource := range resources(docs[name]) {
			label := strings.TrimSpace(name + " " + resource)
			r, err := Admit(docs[name], Options{Resource: resource})
			plain.add(label, r, err)
			if err != nil {
				checkReason(t, label, err)
				continue
			}
			for _, mesh := range meshes {
				r := checkAdmitted(t, label+" with "+mesh, docs[name],
					Options{Mesh: meshFile(t, mesh), Resource: resource})
				if mesh == "transparent" {
					admitted.add(label, r, nil)
				}
			}
		}
	}
	t.Logf("as they are:\n%s", plain)
	t.Logf("in the mesh:\n%s", admitted)
}

// A container whose image has an ENTRYPOINT and a CMD gets the same program as without the
// mesh. The exception is a command that is a program itself, about which there is a finding.
func TestContainersOfACorpusRunTheSameProgram(t *testing.T) {
	t.Parallel()
	docs, containers := definitions(t), 0
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		for _, resource := range resources(docs[name]) {
			r, err := Admit(docs[name], Options{Mesh: meshFile(t, "direct"), Resource: resource})
			if err != nil || !r.Injected {
				continue
			}
			containers += checkPrograms(t, strings.TrimSpace(name+" "+resource), r)
		}
	}
	if containers < 50 {
		t.Errorf("%d containers, want 50", containers)
	}
}

// checkPrograms compares the programs of a definition before and after its admission, and
// returns how many containers it has.
func checkPrograms(t *testing.T, name string, r *Result) (containers int) {
	t.Helper()
	key := r.After.Key
	after := map[string]*taskdef.Node{}
	for _, c := range r.After.Task.Get(key("containerDefinitions")).Items() {
		container, _ := c.Get(key("name")).Text()
		after[container] = c
	}
	for _, c := range r.Plain.Task.Get(key("containerDefinitions")).Items() {
		container, _ := c.Get(key("name")).Text()
		_, proxy := c.Get(key("dockerLabels")).Get(annotationKind).Text()
		if mesh := proxy || workload.IsMeshContainer(container); mesh || container == "" {
			continue // a proxy of the definition's runs below envoy-entrypoint
		}
		containers++
		want, got := commandLine(r.Plain, c), commandLine(r.After, after[container])
		replaced := slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.Code == codeEntryPoint && strings.Contains(f.Message, " "+container+" ")
		})
		if replaced {
			want = want[1:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: container %s runs %q, want %q", name, container, got, want)
		}
	}
	return containers
}

// commandLine returns that of a container by Docker's rules, without app-entrypoint.
func commandLine(doc *taskdef.Document, c *taskdef.Node) []string {
	words := func(key string) []string {
		var all []string
		for _, item := range c.Get(doc.Key(key)).Items() {
			all = append(all, string(item.JSON()))
		}
		return all
	}
	entry, command := words("entryPoint"), words("command")
	entry = entry[wrapperWords(texts(c.Get(doc.Key("entryPoint")))):]
	switch {
	case slices.Equal(entry, []string{`""`}): // Docker runs the command alone
		return command
	case len(entry) > 0 || len(words("entryPoint")) > 0:
		return slices.Concat(entry, command)
	case len(command) > 0:
		return append([]string{"ENTRYPOINT"}, command...)
	}
	return []string{"ENTRYPOINT", "CMD"}
}

// resources returns the names of a template's task definitions, or one empty name when there is no choice.
func resources(doc []byte) []string {
	_, err := Admit(doc, Options{})
	if err == nil {
		return []string{""}
	}
	_, names, choice := strings.Cut(err.Error(), "that is a task definition: ")
	if !choice {
		return []string{""}
	}
	return strings.Split(strings.TrimSuffix(names, ": name one by -resource"), ", ")
}

// checkAdmitted admits a definition twice, and compares what comes out.
func checkAdmitted(t *testing.T, name string, doc []byte, o Options) *Result {
	t.Helper()
	r, err := Admit(doc, o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	first := r.After.Bytes()
	after, err := read(first, r.Format, o.Resource)
	if err != nil {
		t.Fatalf("%s: the output is not read: %v", name, err)
	}
	checkKept(t, name, r, after)
	o.Format = r.Format
	again, err := Admit(first, o)
	if err != nil {
		t.Fatalf("%s: the output is not admitted: %v", name, err)
	}
	if !bytes.Equal(first, again.After.Bytes()) {
		t.Errorf("%s: the second admission changes the first:\n%s", name, taskdef.Diff(r.After, again.After))
	}
	return r
}

// checkReason checks that an error is about a place of the document or a choice to make.
func checkReason(t *testing.T, name string, err error) {
	t.Helper()
	_, fault := errors.AsType[*taskdef.Fault](err)
	_, invalid := errors.AsType[*taskdef.InvalidError](err)
	if expected := fault || invalid; !expected && !strings.Contains(err.Error(), "template") {
		t.Errorf("%s: %v", name, err)
	}
}

// checkKept reports what the output lacks of the input: members and, in YAML, comments.
func checkKept(t *testing.T, name string, r *Result, after *taskdef.Document) {
	t.Helper()
	before, root := r.Before.Task, after.Task
	if r.Format == formatTemplate {
		before, root = r.Before.Root, after.Root
	}
	for _, path := range missingPaths(before, root, "$") {
		t.Errorf("%s: the output lacks %s", name, path)
	}
	if taskdef.IsYAML(r.Before.Bytes()) {
		if was, is := comments(t, r.Before.Bytes()), comments(t, after.Bytes()); !maps.Equal(was, is) {
			t.Errorf("%s: comments %v, want %v", name, is, was)
		}
	}
}

// missingPaths returns the paths of what a value has and its later form lacks. A list may have got elements, and
// null, AWS::NoValue and an emptied entryPoint may have got a value. The flags of the wrapper are
// admission's.
func missingPaths(before, after *taskdef.Node, path string) []string {
	switch {
	case before.IsNull(), isNoValue(before) && after != nil, string(before.JSON()) == `[""]`:
		return nil
	case after == nil:
		return []string{path}
	case before.IsObject():
		var paths []string
		for _, key := range before.Keys() {
			if path != "$" || !slices.Contains(taskdef.OutputKeys, key) {
				paths = append(paths, missingPaths(before.Get(key), after.Get(key), path+"."+key)...)
			}
		}
		return paths
	case before.IsList():
		var paths []string
		items, rest := before.Items(), after.Items()
		items = items[wrapperWords(texts(before)):]
		for i, item := range items {
			at := slices.IndexFunc(rest, func(n *taskdef.Node) bool { return len(missingPaths(item, n, "")) == 0 })
			switch {
			case at >= 0:
				rest = rest[at+1:]
			case !ownedItem(item):
				paths = append(paths, fmt.Sprintf("%s[%d]", path, i))
			}
		}
		return paths
	}
	was, is := before.JSON(), after.JSON()
	if !bytes.Equal(was, is) {
		return []string{path}
	}
	return nil
}

// ownedItem reports whether an element of a list is admission's: a container of the mesh,
// a dependency on one, or the tag of an earlier admission.
func ownedItem(n *taskdef.Node) bool {
	for _, key := range []string{"name", "Name", "containerName", "ContainerName"} {
		if name, is := n.Get(key).Text(); is && workload.IsMeshContainer(name) {
			return true
		}
	}
	for _, key := range []string{"key", "Key"} {
		if name, is := n.Get(key).Text(); is && name == taskdef.SealTag {
			return true
		}
	}
	return false
}

// comments counts the lines of comments of a YAML document.
func comments(t *testing.T, doc []byte) map[string]int {
	t.Helper()
	var tree yaml.Node
	if err := yaml.Unmarshal(doc, &tree); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		for line := range strings.Lines(n.HeadComment + "\n" + n.LineComment + "\n" + n.FootComment) {
			if text := strings.TrimSpace(line); text != "" {
				found[text]++
			}
		}
		for _, child := range n.Content {
			visit(child)
		}
	}
	visit(&tree)
	return found
}

// report is what became of a corpus.
type report struct {
	unread, refused, admitted int
	lines                     []string
	codes                     map[string]int
}

func (r *report) add(name string, result *Result, err error) {
	if err != nil {
		r.unread++
		r.lines = append(r.lines, fmt.Sprintf("%s is not read: %v", name, err))
		return
	}
	counted := map[string]bool{}
	for _, f := range result.Findings {
		if f.Severity != taskdef.Error {
			continue
		}
		r.lines = append(r.lines, name+": "+f.String())
		if !counted[f.Code] {
			r.codes[f.Code]++
		}
		counted[f.Code] = true
	}
	if result.Rejected(false) {
		r.refused++
	} else {
		r.admitted++
	}
}

// String returns a line for each error, and the numbers of definitions.
func (r *report) String() string {
	lines := slices.Clone(r.lines)
	for _, code := range slices.Sorted(maps.Keys(r.codes)) {
		lines = append(lines, fmt.Sprintf("%s: %d definitions", code, r.codes[code]))
	}
	lines = append(lines, fmt.Sprintf("%d admitted, %d refused, %d not read", r.admitted, r.refused, r.unread))
	return strings.Join(lines, "\n")
}
