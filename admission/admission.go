package admission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Formats of a document.
const (
	formatECS        = "ecs"
	formatTemplate   = "cfn"
	formatContainers = "containers"
)

// Options are what Admit takes besides the document.
type Options struct {
	// Format is one of the formats; found out from the document when empty.
	Format string
	// Resource is the resource of a CloudFormation template; the only task definition
	// when empty.
	Resource string
	// Mesh is the mesh file, see ParseMesh; nil without one.
	Mesh *Mesh
	// Image is that of consul-ecs where the mesh file has none; empty requires it there.
	Image string
	// Token is that of the one who submits the definition, which must not become part of
	// it; empty without one.
	Token secret.Value
	// RolePath is the path of the roles that the auth method accepts; when empty that of the
	// mesh file, or the controller's default.
	RolePath string
	// Register is true for a definition that is registered with ECS: an answer of
	// DescribeTaskDefinition becomes what can be, also without the mesh. It is for formatECS.
	Register bool
	// Flags makes the flags of a command of consul-ecs, by which the lines of containers are
	// checked; nil for another command. Without it no line is checked.
	Flags func(command string) *flag.FlagSet
	// Lock are the configurations of images; nil without them.
	Lock *taskdef.ImageLock
	// Pin names the images of the lock by their digests.
	Pin bool
}

// Result is an admitted, or a rejected, definition.
type Result struct {
	// Before and After are the document as it was read, and after all mutators.
	Before, After *taskdef.Document
	// Plain is Before, of an answer of DescribeTaskDefinition the definition in it.
	Plain *taskdef.Document
	// Format is that of both.
	Format string
	// Injected is false when the annotations do not ask for the mesh. Then After is the
	// input.
	Injected bool
	// Volumes are the names of volumes that the task needs and a list of containers
	// cannot declare.
	Volumes []string
	// Findings are sorted by path, then code.
	Findings []Finding
	// Usages are what the definition uses of Consul, by namespace, and Requirements the
	// rights that this takes. Nothing without the mesh.
	Usages       map[string]*UseSummary
	Requirements []Requirement
	// Unnamed is true when the name of its service is known at deployment only: what it
	// requires is missing then.
	Unnamed bool
	// Login is how its containers log in to Consul with the identity and the tags of the
	// task role; nil when they do not.
	Login *config.ConsulLogin
	// RolePath is the path of the roles that the auth method accepts. It begins and ends with a
	// slash.
	RolePath string
	// Policies are those that the definition asks the token broker for.
	Policies Policies
}

// Line returns the line in the document as it was read that a finding is about: that of the value, or of what
// it was put into.
func (r *Result) Line(f Finding) int {
	path := f.Path
	if r.Before.Locate("$") != r.After.Locate("$") { // that of an answer of DescribeTaskDefinition
		path = r.Before.Locate(path)
	}
	return r.Before.Line(path)
}

// add adds a finding, see newFinding.
func (r *Result) add(code, path string, pairs ...any) {
	r.Findings = sorted(append(r.Findings, newFinding(code, path, pairs)))
}

// Rejected reports whether a finding forbids the definition: an error, or with strict
// also a warning.
func (r *Result) Rejected(strict bool) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Severity == taskdef.Error || strict && f.Severity == taskdef.Warn
	})
}

// task is one definition on its way through the pipeline.
type task struct {
	doc         *document
	annotations *annotations
	images      *lockedImages
	containers  *containers
	mesh        Mesh
	// cfg and configuration are the configuration of this task's containers, checked
	// and as it is written; nil until connect has made them.
	cfg           *config.Config
	configuration []byte
	// existing are the containers of the mesh as they were read, by their names.
	existing map[string]existingContainer
	volumes  []string
	// untagged is set for an answer of DescribeTaskDefinition without tags.
	untagged bool
	// rolePath and image are those of Options.
	rolePath, image string
}

func newTask(doc *taskdef.Document, format string, o Options) *task {
	t := &task{doc: &document{Document: doc, format: format}, rolePath: o.RolePath, image: o.Image,
		existing: map[string]existingContainer{}}
	if o.Mesh != nil {
		t.mesh = *o.Mesh
	}
	t.annotations = &annotations{doc: t.doc}
	t.images = &lockedImages{doc: t.doc, lock: o.Lock, pinned: o.Pin}
	t.containers = &containers{doc: t.doc, annotations: t.annotations, images: t.images, flags: o.Flags}
	t.annotate()
	return t
}

// annotate reads the annotations of the document.
func (t *task) annotate() {
	t.annotations.read()
	t.containers.inferNative()
}

// step is a part of an admission.
type step struct {
	name string
	run  func(*task)
}

// pipeline is what an admission does, in this order: mutators change a task, validators add
// findings, and all of these read the same copy.
type pipeline struct{ mutators, validators []step }

func standard() pipeline {
	return pipeline{
		mutators: []step{
			{"canonicalize", canonicalize}, {"connect", connect}, {"expose-check", exposeChecks},
			{"constraints", constrain},
		},
		validators: []step{
			{"connect", checkMesh}, {"expose-check", checkExpose}, {"validate", checkRules},
			{"resources", checkResources},
		},
	}
}

// Steps returns the names of the mutators and of the validators, in their order.
func Steps() (mutators, validators []string) {
	p := standard()
	for _, m := range p.mutators {
		mutators = append(mutators, m.name)
	}
	for _, v := range p.validators {
		validators = append(validators, v.name)
	}
	return mutators, validators
}

// Admit reads a document, injects the mesh and checks the result. The error is about a
// document that is no task definition; what is wrong with a definition is a finding. For a
// *taskdef.InvalidError there is a Result, too, which has the violations and what the rules
// find in the rest of the document, which is not changed.
func Admit(doc []byte, o Options) (*Result, error) {
	format := cmp.Or(o.Format, detect(doc))
	if o.Register && format != formatECS {
		return nil, fmt.Errorf("only a task definition of the format %s can be registered, this is of the format %s",
			formatECS, format)
	}
	before, err := read(doc, format, o.Resource)
	invalid, ok := errors.AsType[*taskdef.InvalidError](err)
	if err != nil && !ok {
		return nil, err
	}
	after := before.Clone()
	t := newTask(after, format, o)
	r := &Result{Before: before, Plain: before, After: after, Format: format,
		Injected: t.annotations.wantMesh(o.Mesh != nil)}
	if invalid != nil {
		r.After = before
		t.checkInvalid(r, invalid)
	} else {
		err = t.run(r, o)
		r.require(t)
	}
	t.scan(o.Token)
	r.Findings = sorted(t.doc.findings)
	return r, err
}

// run injects the mesh when it is asked for, and checks the result.
func (t *task) run(r *Result, o Options) error {
	if r.Injected || o.Register {
		unwrapped, err := t.unwrap()
		if err != nil {
			return err
		}
		if unwrapped {
			r.Plain = t.doc.Clone()
		}
		r.After = t.doc.Document
	}
	t.annotations.check(r.Injected)
	reportHidden(t.doc, r.Injected)
	switch {
	case r.Injected && t.doc.format == formatTemplate && t.doc.Task.IsComputed():
		t.doc.report(codeContainers, "$", "what", "the properties")
		return nil
	case !r.Injected:
		t.reportNotInjected()
		checkRules(t)
		return nil
	}
	t.strip(o.Token)
	err := standard().run(t)
	r.After, r.Volumes = t.doc.Document, t.volumes
	return err
}

// checkInvalid reports the values of a wrong type, and what the rules find in the others
// with the defaults of the mesh. Nothing is injected.
func (t *task) checkInvalid(r *Result, invalid *taskdef.InvalidError) {
	for _, v := range invalid.Violations {
		t.doc.findings = append(t.doc.findings, Finding(v))
	}
	t.annotations.check(r.Injected)
	reportHidden(t.doc, r.Injected)
	switch {
	case !r.Injected:
		t.reportNotInjected()
	case t.doc.Task.IsObject():
		canonicalize(t)
	}
	checkRules(t)
	r.Injected = false
}

func (p pipeline) run(t *task) error {
	for _, m := range p.mutators {
		m.run(t)
	}
	t.reportChanged()
	t.seal()
	if err := t.doc.Refresh(); err != nil {
		return fmt.Errorf("after the mutators: %w", err)
	}
	result := t.doc.Document
	t.doc.Document = result.Clone() // nothing that a validator writes gets into the result
	for _, v := range p.validators {
		v.run(t)
	}
	t.doc.Document = result
	return nil
}

// detect finds the format out: a list, a template or its properties, or else what the
// ECS API takes.
func detect(doc []byte) string {
	text := bytes.TrimSpace(doc)
	switch {
	case bytes.HasPrefix(text, []byte("[")):
		return formatContainers
	case bytes.HasPrefix(text, []byte("{")) && !bytes.Contains(text, []byte("Resources")) &&
		!bytes.Contains(text, []byte("ContainerDefinitions")):
		return formatECS // without reading it
	}
	var root map[string]json.RawMessage // keys are exact, unlike those of a struct
	err := json.Unmarshal(doc, &root)   // what is wrong with it is reported when it is opened
	if root["Resources"] != nil || root["ContainerDefinitions"] != nil || err != nil && taskdef.IsYAML(doc) {
		return formatTemplate
	}
	return formatECS
}

// read reads a document of a format, of a template that resource in it.
func read(doc []byte, format, resource string) (*taskdef.Document, error) {
	switch {
	case resource != "" && format != formatTemplate:
		return nil, fmt.Errorf("a resource is of a template, but the document is of the format %s", format)
	case format == formatECS:
		return taskdef.Parse(doc)
	case format == formatContainers:
		return taskdef.ParseContainers(doc)
	case format == formatTemplate:
		parsed, err := taskdef.ParseTemplate(doc, resource)
		if errors.Is(err, taskdef.ErrChoose) {
			err = fmt.Errorf("%w: name one by -resource", err)
		}
		return parsed, err
	}
	return nil, fmt.Errorf("format %q: want %s, %s or %s", format, formatECS, formatTemplate, formatContainers)
}

// sorted orders findings by path, code and message, and drops what is there twice.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(taskdef.ComparePaths(a.Path, b.Path), strings.Compare(a.Code, b.Code),
			strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(findings)
}
