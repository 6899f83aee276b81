package controlplane

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/internal/textfile"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Registry has the task definitions of an account. Its methods are the API's
// calls; their errors are *ecs.Error.
type Registry struct {
	account shapes.Account

	mu       sync.Mutex
	families map[string]*family
}

// New returns an empty Registry.
func NewRegistry(account shapes.Account) *Registry {
	return &Registry{account: account, families: map[string]*family{}}
}

// family is all revisions of one name. They begin with 1, and no number is ever
// used again.
type family struct{ revisions []*Revision }

// Revision is a registered task definition.
type Revision struct {
	Number int
	ARN    string
	// Status is ACTIVE, INACTIVE or DELETE_IN_PROGRESS.
	Status string
	// Definition must not be changed.
	Definition *taskdef.TaskDefinition
	Tags       []shapes.Tag
	// Compatibilities are the launch types that take it.
	Compatibilities []string

	attributes   []shapes.NameValue
	registered   time.Time
	registeredBy string
	deregistered time.Time
	deletedAt    time.Time
}

// Find finds a revision by family, family:revision or ARN; of a family the
// latest active one. It is nil when there is none.
func (g *Registry) Find(ref string) (*Revision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.find(ref)
	if r == nil || err != nil {
		return nil, err
	}
	found := *r
	return &found, nil
}

// Retag replaces a revision's tags by what change makes of them. It is false for
// a revision that does not exist.
func (g *Registry) Retag(ref string, change func([]shapes.Tag) ([]shapes.Tag, error)) (known bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.find(ref)
	if r == nil || err != nil {
		return false, nil
	}
	tags, err := change(r.Tags)
	if err == nil {
		r.Tags = tags
	}
	return true, err
}

// RegisterTaskDefinition makes the family's next revision.
func (g *Registry) RegisterTaskDefinition(call shapes.Call, in shapes.RegisterTaskDefinitionInput) (shapes.TaskDefinitionOutput, error) {
	def, err := readDefinition(in.Document)
	if err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	var tags []shapes.Tag
	for _, t := range def.Tags {
		tags = append(tags, shapes.Tag(t))
	}
	if err := Tags(tags); err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	def.Tags = nil
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.families[def.Family]
	if f == nil {
		f = &family{}
		g.families[def.Family] = f
	}
	r := &Revision{
		Number: len(f.revisions) + 1, Status: shapes.Active, Definition: def, Tags: tags,
		attributes: requiredAttributes(def), Compatibilities: compatibilities(def),
		registered: call.Now, registeredBy: call.Principal,
	}
	r.ARN = g.account.TaskDefinition(def.Family, r.Number)
	def.Revision, def.TaskDefinitionARN = r.Number, r.ARN
	f.revisions = append(f.revisions, r)
	return shapes.TaskDefinitionOutput{TaskDefinition: r.shape(), Tags: slices.Clone(tags)}, nil
}

// readDefinition parses and checks what a client wants to register. Members
// that only answers have are ignored, as all that are unknown.
func readDefinition(document []byte) (*taskdef.TaskDefinition, error) {
	def, _, err := taskdef.Parse(document)
	var invalid *taskdef.InvalidError
	var fault *textfile.Fault
	switch {
	case errors.As(err, &invalid):
		return nil, shapes.Errorf("SerializationException", "%s", violations(invalid.Violations))
	case errors.As(err, &fault):
		return nil, shapes.Errorf("SerializationException", "%s", fault)
	case err != nil:
		return nil, err
	}
	def.TaskDefinitionARN, def.Revision, def.Status, def.RegisteredBy = "", 0, "", ""
	def.RequiresAttributes, def.Compatibilities = nil, nil
	def.RegisteredAt, def.DeregisteredAt, def.DeleteRequestedAt = nil, nil, nil
	if text := refusal(def); text != "" {
		return nil, shapes.Client("%s", text)
	}
	return def, nil
}

// refusal is why registration refuses a definition; empty when it does not.
func refusal(def *taskdef.TaskDefinition) string {
	return violations(slices.DeleteFunc(def.Validate(), func(v taskdef.Violation) bool { return v.Severity != taskdef.Error }))
}

// violations are in AWS's words where these are known, all of them.
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

// shape is the revision as DescribeTaskDefinition shows it.
func (r *Revision) shape() shapes.TaskDefinition {
	d := *r.Definition
	d.Status, d.Compatibilities, d.RegisteredBy = r.Status, r.Compatibilities, r.registeredBy
	d.RegisteredAt = moment(r.registered)
	d.DeregisteredAt = moment(r.deregistered)
	d.DeleteRequestedAt = moment(r.deletedAt)
	return shapes.TaskDefinition{TaskDefinition: d, RequiresAttributes: r.attributes}
}

// moment is nothing for a time that has not come.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return shapes.At(t).Seconds()
}

// find finds one by any of its names; without a number the latest active
// one. It is nil when there is none.
func (g *Registry) find(ref string) (*Revision, error) {
	name, number, err := g.account.Revision(ref)
	if err != nil {
		return nil, err
	}
	f := g.families[name]
	if f == nil {
		return nil, nil
	}
	if number > 0 {
		if number > len(f.revisions) {
			return nil, nil
		}
		return f.revisions[number-1], nil
	}
	for _, r := range slices.Backward(f.revisions) {
		if r.Status == shapes.Active {
			return r, nil
		}
	}
	return nil, nil
}

// DescribeTaskDefinition shows a revision, of a family the latest active one.
func (g *Registry) DescribeTaskDefinition(_ shapes.Call, in shapes.TaskDefinitionInput) (shapes.TaskDefinitionOutput, error) {
	if err := Enum("include", in.Include, "TAGS"); err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.find(in.TaskDefinition)
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
func (g *Registry) DeregisterTaskDefinition(call shapes.Call, in shapes.TaskDefinitionInput) (shapes.TaskDefinitionOutput, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, number, err := g.account.Revision(in.TaskDefinition)
	if err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	if number == 0 {
		return shapes.TaskDefinitionOutput{}, shapes.Client("Revision is missing.")
	}
	r, err := g.find(in.TaskDefinition)
	if err != nil {
		return shapes.TaskDefinitionOutput{}, err
	}
	if r == nil {
		return shapes.TaskDefinitionOutput{}, shapes.Client("The specified task definition does not exist.")
	}
	if r.Status == shapes.Active {
		r.Status, r.deregistered = shapes.Inactive, call.Now
	}
	return shapes.TaskDefinitionOutput{TaskDefinition: r.shape()}, nil
}

// DeleteTaskDefinitions deletes inactive revisions. They show
// DELETE_IN_PROGRESS until nothing refers to them: here as long as this runs.
func (g *Registry) DeleteTaskDefinitions(call shapes.Call, in shapes.DeleteTaskDefinitionsInput) (shapes.DeleteTaskDefinitionsOutput, error) {
	out := shapes.DeleteTaskDefinitionsOutput{TaskDefinitions: []shapes.TaskDefinition{}, Failures: []shapes.Failure{}}
	const limit = 10
	if err := AtMost("taskDefinitions", len(in.TaskDefinitions), limit); err != nil {
		return out, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, ref := range in.TaskDefinitions {
		fail := func(reason string) { out.Failures = append(out.Failures, shapes.Failure{ARN: ref, Reason: reason}) }
		_, number, err := g.account.Revision(ref)
		if err != nil {
			return out, err
		}
		r, _ := g.find(ref) // its error is the one above
		switch {
		case number == 0 || r == nil:
			fail("The specified task definition does not exist. Specify a valid account, family, revision and try again.")
		case r.Status == shapes.Active:
			fail("The specified task definition is still in ACTIVE status. Please deregister the target and try again.")
		default:
			if r.Status == shapes.Inactive {
				r.Status, r.deletedAt = shapes.DeleteInProgress, call.Now
			}
			out.TaskDefinitions = append(out.TaskDefinitions, r.shape())
		}
	}
	return out, nil
}

// ListTaskDefinitions lists revisions of one status, ACTIVE by default.
func (g *Registry) ListTaskDefinitions(call shapes.Call, in shapes.ListTaskDefinitionsInput) (shapes.ListTaskDefinitionsOutput, error) {
	out := shapes.ListTaskDefinitionsOutput{ARNs: []string{}}
	err := errors.Join(
		Enum("status", []string{in.Status}, shapes.Active, shapes.Inactive, shapes.DeleteInProgress),
		Enum("sort", []string{in.Sort}, "ASC", "DESC"))
	if err != nil {
		return out, err
	}
	status := in.Status
	if status == "" {
		status = shapes.Active
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []*Revision
	for _, name := range slices.Sorted(maps.Keys(g.families)) {
		if in.FamilyPrefix != "" && name != in.FamilyPrefix {
			continue
		}
		for _, r := range g.families[name].revisions {
			if r.Status == status {
				found = append(found, r)
			}
		}
	}
	d := Ascending
	if in.Sort == "DESC" {
		slices.Reverse(found)
		d = Descending
	}
	scope := "revisions " + in.FamilyPrefix + " " + status + " " + in.Sort
	found, out.NextToken, err = Page(found, in.PageInput, scope, call.Now, d, func(r *Revision) string {
		return fmt.Sprintf("%s %09d", r.Definition.Family, r.Number)
	})
	for _, r := range found {
		out.ARNs = append(out.ARNs, r.ARN)
	}
	return out, err
}

// ListTaskDefinitionFamilies lists families that have an active revision, or
// none, or all of them, which is the default.
func (g *Registry) ListTaskDefinitionFamilies(call shapes.Call, in shapes.ListTaskDefinitionsInput) (shapes.ListFamiliesOutput, error) {
	out := shapes.ListFamiliesOutput{Families: []string{}}
	if err := Enum("status", []string{in.Status}, shapes.Active, shapes.Inactive, "ALL"); err != nil {
		return out, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []string
	for _, name := range slices.Sorted(maps.Keys(g.families)) {
		active := slices.ContainsFunc(g.families[name].revisions, func(r *Revision) bool { return r.Status == shapes.Active })
		if strings.HasPrefix(name, in.FamilyPrefix) && (in.Status == "" || in.Status == "ALL" || active == (in.Status == shapes.Active)) {
			found = append(found, name)
		}
	}
	found, next, err := Page(found, in.PageInput, "families "+in.FamilyPrefix+" "+in.Status, call.Now, Ascending, func(name string) string { return name })
	out.Families, out.NextToken = append(out.Families, found...), next
	return out, err
}
