package controlplane

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Revision is a registered task definition. Definition is replaced when its status
// changes, never modified: tasks have it, too.
type Revision struct {
	Definition *taskdef.TaskDefinition
	Tags       []shapes.Tag

	attributes []shapes.NameValue
}

// definitionAPI has the calls about task definitions.
type definitionAPI struct{ state *state }

// RegisterTaskDefinition makes the family's next revision.
func (a *definitionAPI) RegisterTaskDefinition(call shapes.Call,
	in shapes.RegisterTaskDefinitionInput) (shapes.TaskDefinitionOutput, error) {
	def, err := readDefinition(in.Document)
	if err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	tags := def.Tags
	if err := Tags(tags); err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	def.Tags = nil
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	number := len(a.state.families[def.Family]) + 1 // no number is used again
	def.Revision, def.TaskDefinitionARN = number, a.state.account.TaskDefinition(def.Family, number)
	r := &Revision{Definition: def, Tags: tags, attributes: requiredAttributes(def)}
	def.Compatibilities = compatibilities(def)
	def.Status, def.RegisteredBy, def.RegisteredAt = shapes.Active, call.Principal, shapes.At(call.Now).Seconds()
	a.state.families[def.Family] = append(a.state.families[def.Family], r)
	return shapes.TaskDefinitionOutput{TaskDefinition: r.shape(), Tags: slices.Clone(tags)}, nil
}

// readDefinition parses and checks what a client wants to register. Members
// that only answers have are ignored, as all that are unknown.
func readDefinition(document []byte) (*taskdef.TaskDefinition, error) {
	doc, err := taskdef.Parse(document)
	var invalid *taskdef.InvalidError
	var fault *taskdef.Fault
	switch {
	case errors.As(err, &invalid):
		return nil, shapes.Errorf("SerializationException", "%s", violations(invalid.Violations))
	case errors.As(err, &fault):
		return nil, shapes.Errorf("SerializationException", "%s", fault)
	case err != nil:
		return nil, err
	}
	if text := refusal(doc.Validate()); text != "" {
		return nil, shapes.Client("%s", text)
	}
	def := doc.Definition
	def.TaskDefinitionARN, def.Revision, def.Status, def.RegisteredBy = "", 0, "", ""
	def.RequiresAttributes, def.Compatibilities = nil, nil
	def.RegisteredAt, def.DeregisteredAt, def.DeleteRequestedAt = nil, nil, nil
	return def, nil
}

// refusal returns why registration refuses a definition that breaks rules; empty when it does not.
func refusal(found []taskdef.Violation) string {
	return violations(slices.DeleteFunc(found, func(v taskdef.Violation) bool { return v.Severity != taskdef.Error }))
}

func violations(list []taskdef.Violation) string {
	var texts []string
	for _, v := range list {
		text := v.Message
		if v.Code == taskdef.CodeType {
			text = v.Path + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

func (r *Revision) shape() shapes.TaskDefinition {
	shape := shapes.TaskDefinition{TaskDefinition: *r.Definition, RequiresAttributes: r.attributes}
	shape.EnableFaultInjection = new(taskdef.Or(shape.EnableFaultInjection, false))
	return shape
}

func (r *Revision) set(change func(*taskdef.TaskDefinition)) {
	d := *r.Definition
	change(&d)
	r.Definition = &d
}

// revision finds a revision by family, family:revision or ARN; of a family the
// latest active one. It is nil when there is none.
func (s *state) revision(ref string) (*Revision, error) {
	name, number, err := s.account.Revision(ref)
	if err != nil {
		return nil, err
	}
	revisions := s.families[name]
	if number > 0 {
		if number > len(revisions) {
			return nil, nil
		}
		return revisions[number-1], nil
	}
	for _, r := range slices.Backward(revisions) {
		if r.Definition.Status == shapes.Active {
			return r, nil
		}
	}
	return nil, nil
}

func (s *state) definition(ref string) (*Revision, error) {
	r, err := s.revision(ref)
	if err == nil && r == nil {
		err = shapes.Client("TaskDefinition not found.")
	}
	return r, err
}

// DescribeTaskDefinition shows a revision, of a family the latest active one.
func (a *definitionAPI) DescribeTaskDefinition(_ shapes.Call,
	in shapes.TaskDefinitionInput) (shapes.TaskDefinitionOutput,
	error) {
	if err := enum("include", in.Include, "TAGS"); err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	r, err := a.state.revision(in.TaskDefinition)
	if err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	if r == nil {
		return shapes.TaskDefinitionOutput{}, shapes.Client("Unable to describe task definition.")
	}
	out := shapes.TaskDefinitionOutput{TaskDefinition: r.shape()}
	if slices.Contains(in.Include, "TAGS") {
		out.Tags = append([]shapes.Tag{}, r.Tags...)
	}
	return out, nil
}

// DeregisterTaskDefinition makes a revision INACTIVE. Its tasks run on.
func (a *definitionAPI) DeregisterTaskDefinition(call shapes.Call,
	in shapes.TaskDefinitionInput) (shapes.TaskDefinitionOutput,
	error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	_, number, err := a.state.account.Revision(in.TaskDefinition)
	if err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	if number == 0 {
		return shapes.TaskDefinitionOutput{}, shapes.Client("Revision is missing.")
	}
	r, err := a.state.revision(in.TaskDefinition)
	if err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	if r == nil {
		return shapes.TaskDefinitionOutput{}, shapes.Client("The specified task definition does not exist.")
	}
	if r.Definition.Status == shapes.Active {
		r.set(func(d *taskdef.TaskDefinition) {
			d.Status, d.DeregisteredAt = shapes.Inactive, shapes.At(call.Now).Seconds()
		})
	}
	return shapes.TaskDefinitionOutput{TaskDefinition: r.shape()}, nil
}

// DeleteTaskDefinitions deletes inactive revisions. They show
// DELETE_IN_PROGRESS until nothing refers to them: here as long as this runs.
func (a *definitionAPI) DeleteTaskDefinitions(call shapes.Call,
	in shapes.DeleteTaskDefinitionsInput) (shapes.DeleteTaskDefinitionsOutput, error) {
	out := shapes.DeleteTaskDefinitionsOutput{TaskDefinitions: []shapes.TaskDefinition{}, Failures: []shapes.Failure{}}
	const limit = 10
	if err := atMost("taskDefinitions", len(in.TaskDefinitions), limit); err != nil {
		return out, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	for _, ref := range in.TaskDefinitions {
		fail := func(reason string) { out.Failures = append(out.Failures, shapes.Failure{ARN: ref, Reason: reason}) }
		_, number, err := a.state.account.Revision(ref)
		if err != nil {
			return out, err
		}
		r, _ := a.state.revision(ref) // its error is the one above
		switch {
		case number == 0 || r == nil:
			fail("The specified task definition does not exist. Specify a valid account, family, revision and try " +
				"again.")
		case r.Definition.Status == shapes.Active:
			fail("The specified task definition is still in ACTIVE status. Please deregister the target and try again.")
		default:
			if r.Definition.Status == shapes.Inactive {
				r.set(func(d *taskdef.TaskDefinition) {
					d.Status, d.DeleteRequestedAt = shapes.DeleteInProgress, shapes.At(call.Now).Seconds()
				})
			}
			out.TaskDefinitions = append(out.TaskDefinitions, r.shape())
		}
	}
	return out, nil
}

// ListTaskDefinitions lists revisions of one status, ACTIVE by default.
func (a *definitionAPI) ListTaskDefinitions(call shapes.Call,
	in shapes.ListTaskDefinitionsInput) (shapes.ListTaskDefinitionsOutput, error) {
	out := shapes.ListTaskDefinitionsOutput{ARNs: []string{}}
	err := errors.Join(
		enum("status", []string{in.Status}, shapes.Active, shapes.Inactive, shapes.DeleteInProgress),
		enum("sort", []string{in.Sort}, "ASC", "DESC"))
	if err != nil {
		return out, err
	}
	status := cmp.Or(in.Status, shapes.Active)
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	var found []*Revision
	for _, name := range slices.Sorted(maps.Keys(a.state.families)) {
		if in.FamilyPrefix == "" || name == in.FamilyPrefix {
			found = append(found, a.state.families[name]...)
		}
	}
	descending := in.Sort == "DESC"
	if descending {
		slices.Reverse(found)
	}
	listed := func(r *Revision) bool { return r.Definition.Status == status }
	scope := "revisions " + in.FamilyPrefix + " " + status + " " + in.Sort
	found, out.NextToken, err = Page(found, listed, in.PageInput, scope, call.Now, descending,
		func(r *Revision) string {
			return fmt.Sprintf("%s %09d", r.Definition.Family, r.Definition.Revision)
		})
	for _, r := range found {
		out.ARNs = append(out.ARNs, r.Definition.TaskDefinitionARN)
	}
	return out, err
}

// ListTaskDefinitionFamilies lists families that have an active revision, or
// none, or all of them, which is the default.
func (a *definitionAPI) ListTaskDefinitionFamilies(call shapes.Call,
	in shapes.ListTaskDefinitionsInput) (shapes.ListFamiliesOutput, error) {
	out := shapes.ListFamiliesOutput{Families: []string{}}
	if err := enum("status", []string{in.Status}, shapes.Active, shapes.Inactive, "ALL"); err != nil {
		return out, err
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	listed := func(name string) bool {
		active := slices.ContainsFunc(a.state.families[name], func(r *Revision) bool {
			return r.Definition.Status == shapes.Active
		})
		return strings.HasPrefix(name, in.FamilyPrefix) &&
			(in.Status == "" || in.Status == "ALL" || active == (in.Status == shapes.Active))
	}
	found, next, err := Page(slices.Sorted(maps.Keys(a.state.families)), listed, in.PageInput,
		"families "+in.FamilyPrefix+" "+in.Status, call.Now, false, itself)
	out.Families, out.NextToken = append(out.Families, found...), next
	return out, err
}
