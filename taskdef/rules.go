package taskdef

import (
	"fmt"
	"slices"
)

// Severity tells what ECS does about a violation.
type Severity string

// Severities of a rule.
const (
	// Error: registration refuses the definition.
	Error Severity = "error"
	// Warn: registration takes it, but sources differ or it will not do what
	// it seems to say.
	Warn Severity = "warning"
)

// Violation is one broken rule at one place.
type Violation struct {
	// Code names the rule, such as "depends-on-cycle"; stable.
	Code     string
	Severity Severity
	// Path is where, such as $.containerDefinitions[1].dependsOn[0].
	Path string
	// Message is AWS's text where it is known.
	Message string
}

// String is "path: message (code)".
func (v Violation) String() string { return fmt.Sprintf("%s: %s (%s)", v.Path, v.Message, v.Code) }

// Rule is one row of the rule table.
type Rule struct {
	Code     string
	Severity Severity
	// Check looks at a definition with defaults filled in and calls report
	// for every place that breaks the rule.
	Check func(d *TaskDefinition, report Report)
}

// Report takes one place that breaks a rule.
type Report func(path, format string, args ...any)

// CodeType is the code of a value of the wrong type; Parse reports it.
const CodeType = "type"

// Rules returns the rule table: every rule of RegisterTaskDefinition
// that registration checks, in the order of that section.
func Rules() []Rule {
	return slices.Concat(structureRules(), containerRules(), dependencyRules(), networkRules(), fargateRules())
}

// Validate runs every rule and returns all violations; none means that ECS
// would register the definition. Warnings are among them, see Severity. Call
// SetDefaults first on a definition that does not come from Parse.
func (d *TaskDefinition) Validate() []Violation {
	var found []Violation
	for _, rule := range Rules() {
		rule.Check(d, func(path, format string, args ...any) {
			found = append(found, Violation{
				Code: rule.Code, Severity: rule.Severity,
				Path: path, Message: fmt.Sprintf(format, args...),
			})
		})
	}
	return found
}

// IsFargate reports whether the rules of Fargate apply: FARGATE is among
// requiresCompatibilities.
func (d *TaskDefinition) IsFargate() bool {
	return slices.Contains(d.RequiresCompatibilities, "FARGATE")
}

// Container returns the container of that name, or nil.
func (d *TaskDefinition) Container(name string) *Container {
	for i := range d.ContainerDefinitions {
		if d.ContainerDefinitions[i].Name == name {
			return &d.ContainerDefinitions[i]
		}
	}
	return nil
}

// Table entries are built from these two, so that a rule says only what is
// wrong with one thing.

// task is a rule about the whole definition.
func task(code string, check func(d *TaskDefinition, report Report)) Rule {
	return Rule{Code: code, Severity: Error, Check: check}
}

// each is a rule about every container; report takes the path inside it.
func each(code string, check func(d *TaskDefinition, c *Container, report Report)) Rule {
	return task(code, func(d *TaskDefinition, report Report) {
		for i := range d.ContainerDefinitions {
			check(d, &d.ContainerDefinitions[i], func(path, format string, args ...any) {
				report(fmt.Sprintf("$.containerDefinitions[%d]%s", i, path), format, args...)
			})
		}
	})
}

// onFargate limits a rule to definitions for Fargate.
func onFargate(r Rule) Rule {
	check := r.Check
	r.Check = func(d *TaskDefinition, report Report) {
		if d.IsFargate() {
			check(d, report)
		}
	}
	return r
}

// warning turns a rule into a warning.
func warning(r Rule) Rule {
	r.Severity = Warn
	return r
}

func isTrue(p *bool) bool { return p != nil && *p }

// outside reports whether a value is set and not in low..high.
func outside(p *int, low, high int) bool { return p != nil && (*p < low || *p > high) }
