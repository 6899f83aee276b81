package taskdef

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is a task definition as it is written, in one of three formats: what
// register-task-definition takes, a resource of a CloudFormation template, and a
// list of container definitions.
type Document struct {
	// Definition is the decoded document, with the defaults of registration.
	Definition *TaskDefinition
	// Warnings are about keys that ECS does not know and keys given twice.
	Warnings []Warning
	// Root is the whole document, and Task the definition in it. Refresh has to be
	// called when they have been changed.
	Root, Task *Node

	original []byte
	// unchanged is the tree that was read, without blanks.
	unchanged []byte
	// yaml is the tree of a template that is YAML.
	yaml     *yaml.Node
	repeated []Warning
	format   format
	// prefix is the path of Task in Root.
	prefix  string
	subject subject
}

type format int

const (
	formatECS format = iota
	formatTemplate
	formatContainers
)

// Parse reads a task definition as `aws ecs register-task-definition
// --cli-input-json` takes it, or as describe-task-definition prints it. The error
// is a *Fault, or an *InvalidError that lists every value of a wrong type; the document is
// returned with the latter, and Validate judges its other values. Whether ECS would accept
// the definition is up to Validate.
func Parse(doc []byte) (*Document, error) {
	d, err := read(doc, formatECS)
	if err != nil {
		return nil, err
	}
	d.Task, d.prefix = d.Root, "$"
	if inner := d.Root.Get("taskDefinition"); inner != nil && d.Root.Get("containerDefinitions") == nil {
		d.Task, d.prefix = inner, "$.taskDefinition"
	}
	return d, d.Refresh()
}

// ParseTemplate reads a task definition from a CloudFormation template, JSON or YAML: the
// resource of that name, or the only task definition when the name is empty, or a
// document that has the resource's properties alone. Values that CloudFormation
// computes are unknown: no rule judges them. Errors are those of Parse.
func ParseTemplate(doc []byte, resource string) (*Document, error) {
	d, err := read(doc, formatTemplate)
	if err != nil {
		return nil, err
	}
	if d.yaml != nil && d.Root.Get("Resources") == nil && d.Root.Get("ContainerDefinitions") == nil {
		return nil, faultAt(doc, 0, "this looks like YAML and is no template, but ECS takes JSON; `yq -o=json` "+
			"converts it")
	}
	if resource, err = findResource(d.Root, resource); err != nil {
		return nil, err
	}
	d.Task, d.prefix = d.Root, "$"
	if resource != "" {
		d.Task, d.prefix = d.Root.Get("Resources").Get(resource).Get("Properties"),
			"$.Resources."+resource+".Properties"
	}
	return d, d.Refresh()
}

// ParseContainers reads a list of container definitions, as Terraform has it. All
// that a task has besides is unknown: no rule judges it. Errors are those of Parse.
func ParseContainers(doc []byte) (*Document, error) {
	d, err := read(doc, formatContainers)
	if err != nil {
		return nil, err
	}
	d.Task, d.prefix = &Node{members: []member{{"containerDefinitions", d.Root}}}, "$"
	return d, d.Refresh()
}

func read(doc []byte, f format) (*Document, error) {
	d := &Document{original: doc, format: f}
	var err error
	if f == formatTemplate && !looksLikeJSON(doc) {
		d.Root, d.yaml, err = readYAML(doc)
	} else if err = checkJSON(doc, f); err == nil {
		d.Root, d.repeated = readNode(doc)
	}
	if err != nil {
		return nil, err
	}
	d.unchanged = d.Root.JSON()
	return d, nil
}

// TemplateType is the type of a template's resource that is a task definition.
const TemplateType = "AWS::ECS::TaskDefinition"

// ErrChoose is in the error about a template that has several task definitions, or none of
// the name.
var ErrChoose = errors.New("choose a resource of the template that is a task definition")

// findResource returns the name of the resource; empty when the document is not a
// template but the properties.
func findResource(root *Node, name string) (string, error) {
	resources := root.Get("Resources")
	if resources == nil && name == "" {
		return "", nil
	}
	found := definitionsOf(resources)
	switch {
	case slices.Contains(found, name):
		return name, nil
	case name == "" && len(found) == 1:
		return found[0], nil
	case len(found) == 0 && slices.ContainsFunc(resources.Keys(), isLoop):
		return "", errors.New("the template makes its resources by Fn::ForEach: write the task definitions out, or " +
			"take the processed template " +
			"(aws cloudformation get-template --template-stage Processed)")
	case len(found) == 0:
		return "", fmt.Errorf("the template has no resource of type %q", TemplateType)
	}
	return "", fmt.Errorf("%w: %s", ErrChoose, OneLine(strings.Join(found, ", ")))
}

// definitionsOf returns the names of the resources that are task definitions.
func definitionsOf(resources *Node) []string {
	var found []string
	for _, key := range resources.Keys() {
		if kind, _ := resources.Get(key).Get("Type").Text(); kind == TemplateType {
			found = append(found, key)
		}
	}
	return found
}

// TemplateResources returns the names by which ParseTemplate reads each task definition of a
// template: the empty name alone for a document that has the properties of one. Errors are
// those of ParseTemplate.
func TemplateResources(doc []byte) ([]string, error) {
	d, err := read(doc, formatTemplate)
	if err != nil {
		return nil, err
	}
	found := definitionsOf(d.Root.Get("Resources"))
	if len(found) == 0 {
		return []string{""}, nil
	}
	return found, nil
}

// isLoop reports whether a key of a template makes resources when it is deployed.
func isLoop(key string) bool { return strings.HasPrefix(key, "Fn::ForEach::") }

// Refresh reads Definition and Warnings again. The error is an *InvalidError; values of a
// wrong type are then absent from Definition, and unknown to the rules.
func (d *Document) Refresh() error {
	b := binder{template: d.format == formatTemplate, rendered: d.format == formatContainers, locate: d.Locate,
		written: map[string]string{}}
	d.Definition = &TaskDefinition{}
	if d.Task == nil || d.Task.IsNull() {
		b.wrongType(describeType(reflect.Struct), nil)
	} else {
		b.bind(reflect.ValueOf(d.Definition).Elem(), d.Task, field{})
	}
	if d.described() {
		b.path = []byte(".tags")
		b.bind(reflect.ValueOf(&d.Definition.Tags).Elem(), withoutReserved(d.Root.Get("tags")), field{})
	}
	b.sort()
	d.Warnings = slices.Concat(d.repeated, b.warnings)
	for _, key := range d.Root.Keys() {
		if d.described() && key != "tags" && key != "taskDefinition" {
			d.Warnings = append(d.Warnings, unknownKey("$", key, []string{"tags", "taskDefinition"}))
		}
	}
	if len(d.Definition.Tags) == 0 && (d.described() || d.format == formatTemplate) {
		d.Definition.Tags = nil // CloudFormation registers no empty list
	}
	d.Definition.SetDefaults()
	d.subject = subject{TaskDefinition: d.Definition, written: b.written, unknown: append(b.unknown, d.elsewhere()...),
		faults: b.faults}
	if len(b.violations) > 0 {
		return &InvalidError{Violations: b.violations}
	}
	return nil
}

// described reports whether the document is an answer of DescribeTaskDefinition.
func (d *Document) described() bool { return d.format == formatECS && d.Task != d.Root }

// elsewhere returns the members of the definition that are not in the document.
func (d *Document) elsewhere() []string {
	if d.format == formatTemplate && d.Definition.Family == "" {
		return []string{"family"} // CloudFormation makes one
	}
	if d.format != formatContainers {
		return nil
	}
	keys := slices.Sorted(maps.Keys(fieldsOf(reflect.TypeFor[TaskDefinition](), false).byKey))
	return slices.DeleteFunc(keys, func(key string) bool { return key == "containerDefinitions" })
}

// Validate applies every rule and returns all violations; none means that ECS
// would register the definition, as far as its values are known. Warnings are
// among them, see Severity.
func (d *Document) Validate() []Violation {
	if d.Task != nil { // a resource of a template may have no properties
		d.subject.size = len(d.Task.JSON())
	}
	found := d.subject.validate()
	for i := range found {
		found[i].Path = d.Locate(found[i].Path)
	}
	return found
}

// IsUnknown reports whether the value at a path, with the keys of the ECS API, is known at
// deployment only.
func (d *Document) IsUnknown(path string) bool {
	return slices.Contains(d.subject.unknown, strings.TrimPrefix(path, "$."))
}

// Unknown returns the places of values that are known at deployment only.
func (d *Document) Unknown() []string {
	var paths []string
	for _, path := range d.subject.unknown {
		paths = append(paths, d.Locate("$."+path))
	}
	return paths
}

// Bytes writes the document: the bytes that were read when nothing has changed and no key
// is given twice, otherwise with two blanks per level, all else as it was. YAML stays YAML.
func (d *Document) Bytes() []byte {
	switch {
	case len(d.repeated) == 0 && bytes.Equal(d.unchanged, d.Root.JSON()):
		return d.original
	case d.yaml != nil:
		return d.writeYAML()
	}
	return d.Root.indented()
}

// Key spells a key of the ECS API as the document's format does.
func (d *Document) Key(key string) string {
	if d.format == formatTemplate {
		return templateKey(key)
	}
	return key
}

// Spell gives a value that is written with the keys of the ECS API the keys of the
// document's format. The keys of maps, such as labels, stay.
func (d *Document) Spell(n *Node) {
	for i := range n.members {
		m := &n.members[i]
		if m.key != "dockerLabels" && m.key != "options" {
			d.Spell(m.value)
		}
		m.key = d.Key(m.key)
	}
	for _, item := range n.items {
		d.Spell(item)
	}
}

// Locate turns a path in the definition, with the keys of the ECS API, into one in
// the document.
func (d *Document) Locate(path string) string {
	path = strings.TrimPrefix(path, "$")
	switch d.format {
	case formatContainers:
		return "$" + strings.TrimPrefix(path, ".containerDefinitions")
	case formatTemplate:
		var spelled strings.Builder
		for i, part := range strings.Split(path, `["`) {
			if i > 0 { // a key of a map, such as a label
				key, rest, _ := strings.Cut(part, `"]`)
				spelled.WriteString(`["` + key + `"]`)
				part = rest
			}
			for j, key := range strings.Split(part, ".") {
				if j > 0 {
					spelled.WriteByte('.')
				}
				name, index, _ := strings.Cut(key, "[")
				spelled.WriteString(templateKey(name))
				if index != "" {
					spelled.WriteString("[" + index)
				}
			}
		}
		return d.prefix + strings.Replace(spelled.String(), "FileServerVolumeConfiguration.FilesystemId",
			"FileServerVolumeConfiguration.FileSystemId", 1)
	}
	if d.described() && strings.HasPrefix(path, ".tags") && d.Root.Get("tags") != nil {
		return "$" + d.locateTag(path) // beside the definition
	}
	return d.prefix + path
}

// withoutReserved returns a list of tags without AWS's own, which an answer has and no definition.
func withoutReserved(tags *Node) *Node {
	if tags == nil || !tags.list {
		return tags
	}
	return &Node{list: true, items: slices.DeleteFunc(slices.Clone(tags.items), isReserved)}
}

func isReserved(tag *Node) bool {
	key, _ := tag.Get("key").Text()
	return ReservedTag(key)
}

// locateTag counts AWS's own tags in the index of a tag.
func (d *Document) locateTag(path string) string {
	index, member, _ := strings.Cut(strings.TrimPrefix(path, ".tags["), "]")
	n, err := strconv.Atoi(index)
	if err != nil {
		return path // of the list
	}
	for i, tag := range d.Root.Get("tags").Items() {
		if i <= n && isReserved(tag) {
			n++
		}
	}
	return fmt.Sprintf(".tags[%d]%s", n, member)
}

// templateKey spells a key of the ECS API as CloudFormation does.
func templateKey(key string) string {
	switch key {
	case "":
		return ""
	case "efsVolumeConfiguration":
		return "EFSVolumeConfiguration"
	case "fsxWindowsFileServerVolumeConfiguration":
		return "FSxWindowsFileServerVolumeConfiguration"
	case "fileSystemId": // of EFS; FSx has FileSystemId
		return "FilesystemId"
	case "s3filesVolumeConfiguration":
		return "S3FilesVolumeConfiguration"
	case "iam":
		return "IAM"
	case "properties":
		return "ProxyConfigurationProperties"
	}
	return strings.ToUpper(key[:1]) + key[1:]
}

// Clone returns a document whose tree can be changed without changing this one's.
func (d *Document) Clone() *Document {
	copied := *d
	report := func(of, made *Node) {
		if of == d.Task {
			copied.Task = made
		}
		if of == d.Root {
			copied.Root = made
		}
	}
	if d.format == formatContainers {
		d.Task.clone(report) // Root is a part of it
	} else {
		d.Root.clone(report)
	}
	return &copied
}
