package taskdef

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Edge is one ordering between two containers of a task: To is started before
// and stopped after From.
type Edge struct {
	// From depends on To.
	From, To string
	// Condition is one of the four; START for links and volumesFrom.
	Condition string
	// Key is where it is written: dependsOn, links or volumesFrom.
	Key string
}

// Edges returns the orderings a container asks for. ECS counts links and
// volumesFrom like dependsOn.
func (c *Container) Edges() []Edge {
	var edges []Edge
	for _, dep := range c.DependsOn {
		edges = append(edges, Edge{From: c.Name, To: dep.ContainerName, Condition: dep.Condition, Key: "dependsOn"})
	}
	for _, link := range c.Links {
		name, _, _ := strings.Cut(link, ":")
		edges = append(edges, Edge{From: c.Name, To: name, Condition: ConditionStart, Key: "links"})
	}
	for _, v := range c.VolumesFrom {
		edges = append(edges, Edge{From: c.Name, To: v.SourceContainer, Condition: ConditionStart, Key: "volumesFrom"})
	}
	return edges
}

// dependencyRules are about dependsOn and what counts like it.
var dependencyRules = []Rule{
	{Code: "depends-on-condition", Members: []string{".dependsOn[*].condition"}, Text: enumText, Wording: Ours,
		Fix: enumFix,
		each: func(_ *subject, c *Container, report report) {
			for i, dep := range c.DependsOn {
				oneOf(report, fmt.Sprintf(".dependsOn[%d].condition", i), cmp.Or(dep.Condition, "null"), ConditionStart,
					ConditionComplete, ConditionSuccess, ConditionHealthy)
			}
		}},
	{Code: "depends-on-exists", Members: []string{".dependsOn[*].containerName", "containerDefinitions[*].name"},
		Text: "Cannot depend on container + '{name}' because it does not exist", Fix: "name a container of the task",
		each: eachDependency(".containerName", func(target *Container, _ string) bool { return target == nil })},
	{Code: "depends-on-essential", Members: dependencyMembers("essential"),
		Fix:  "set essential to false in '{name}', or take START or HEALTHY",
		Text: "A dependency container with SUCCESS or COMPLETE condition cannot be an essential container",
		each: eachDependency("", func(target *Container, condition string) bool {
			return target != nil && (condition == ConditionSuccess || condition == ConditionComplete) &&
				target.IsEssential()
		})},
	{Code: "depends-on-health-check", Members: dependencyMembers("healthCheck.command[0]"),
		Fix:  "give '{name}' a healthCheck, or take START",
		Text: "A dependency container with HEALTHY condition must have health check configured",
		each: eachDependency("", func(target *Container, condition string) bool {
			return target != nil && condition == ConditionHealthy && !target.HealthCheck.Enabled()
		})},
	{Code: "links-exist", Members: []string{".links[*]", "containerDefinitions[*].name"},
		Text: "Invalid 'links' setting. Unknown container: '{name}'.", Wording: Ours,
		Fix: "name a container of the task", each: func(d *subject, c *Container, report report) {
			for i, link := range c.Links {
				if name, _, _ := strings.Cut(link, ":"); d.Container(name) == nil {
					report(fmt.Sprintf(".links[%d]", i), name)
				}
			}
		}},
	{Code: "links-cycle", Members: edgeMembers, Text: "Container links should not have a cycle",
		Fix:  "{cycle}: remove a link",
		task: func(d *subject, report report) { checkCycles(d, true, report) }},
	{Code: "depends-on-cycle", Members: edgeMembers, Text: "Container dependencies should not have a cycle",
		Wording: Ours, Fix: "{cycle}: remove a dependency",
		task: func(d *subject, report report) { checkCycles(d, false, report) }},
}

var edgeMembers = []string{
	"containerDefinitions[*].name", "containerDefinitions[*].dependsOn[*].containerName",
	"containerDefinitions[*].links[*]", "containerDefinitions[*].volumesFrom[*].sourceContainer",
}

func dependencyMembers(target string) []string {
	return []string{".dependsOn[*].containerName", ".dependsOn[*].condition", "containerDefinitions[*].name",
		"containerDefinitions[*]." + target}
}

// eachDependency reports a member of every dependency that is wrong. The target is
// nil when it does not exist.
func eachDependency(member string, wrong func(target *Container,
	condition string) bool) func(*subject, *Container, report) {
	return func(d *subject, c *Container, report report) {
		for i, dep := range c.DependsOn {
			if wrong(d.Container(dep.ContainerName), dep.Condition) {
				report(fmt.Sprintf(".dependsOn[%d]%s", i, member), dep.ContainerName)
			}
		}
	}
}

// checkCycles reports the cycles that consist of links only, or the others: each
// once.
func checkCycles(d *subject, links bool, report report) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var walk func(c *Container, trail []Edge)
	walk = func(c *Container, trail []Edge) {
		state[c.Name] = visiting
		for _, e := range c.Edges() {
			target := d.Container(e.To)
			switch trail := append(slices.Clone(trail), e); {
			case target == nil || state[e.To] == done:
			case state[e.To] == visiting:
				if names, onlyLinks := cycle(trail); onlyLinks == links {
					report("containerDefinitions", names)
				}
			default:
				walk(target, trail)
			}
		}
		state[c.Name] = done
	}
	for i := range d.ContainerDefinitions {
		if c := &d.ContainerDefinitions[i]; state[c.Name] == 0 {
			walk(c, nil)
		}
	}
}

// cycle names the containers of the cycle that the last edge closes.
func cycle(trail []Edge) (names string, onlyLinks bool) {
	last := trail[len(trail)-1]
	start := slices.IndexFunc(trail, func(e Edge) bool { return e.From == last.To })
	names, onlyLinks = last.To, true
	for _, e := range trail[start:] {
		names += " -> " + e.To
		onlyLinks = onlyLinks && e.Key == "links"
	}
	return names, onlyLinks
}
