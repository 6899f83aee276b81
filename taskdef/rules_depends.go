package taskdef

import (
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

// dependencyRules are section 6.2.
func dependencyRules() []Rule {
	return []Rule{
		each("depends-on-condition", func(_ *TaskDefinition, c *Container, report Report) {
			for i, dep := range c.DependsOn {
				oneOf(report, fmt.Sprintf(".dependsOn[%d].condition", i), dep.Condition,
					ConditionStart, ConditionComplete, ConditionSuccess, ConditionHealthy)
			}
		}),
		each("depends-on-exists", func(d *TaskDefinition, c *Container, report Report) {
			for _, e := range c.Edges() {
				if d.Container(e.To) == nil {
					report("."+e.Key, "Cannot depend on container + '%s' because it does not exist", e.To)
				}
			}
		}),
		each("depends-on-essential", func(d *TaskDefinition, c *Container, report Report) {
			for i, dep := range c.DependsOn {
				target := d.Container(dep.ContainerName)
				ends := dep.Condition == ConditionSuccess || dep.Condition == ConditionComplete
				if target != nil && ends && target.IsEssential() {
					report(fmt.Sprintf(".dependsOn[%d]", i),
						"A dependency container with SUCCESS or COMPLETE condition cannot be an essential container")
				}
			}
		}),
		each("depends-on-health-check", func(d *TaskDefinition, c *Container, report Report) {
			for i, dep := range c.DependsOn {
				target := d.Container(dep.ContainerName)
				if target != nil && dep.Condition == ConditionHealthy && !target.HealthCheck.Enabled() {
					report(fmt.Sprintf(".dependsOn[%d]", i),
						"A dependency container with HEALTHY condition must have health check configured")
				}
			}
		}),
		task("depends-on-cycle", checkCycles),
	}
}

// checkCycles reports every container that closes a cycle, once per cycle.
func checkCycles(d *TaskDefinition, report Report) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var walk func(c *Container, trail []Edge)
	walk = func(c *Container, trail []Edge) {
		state[c.Name] = visiting
		for _, e := range c.Edges() {
			target := d.Container(e.To)
			switch {
			case target == nil || state[e.To] == done:
			case state[e.To] == visiting:
				reportCycle(append(slices.Clone(trail), e), report)
			default:
				walk(target, append(slices.Clone(trail), e))
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

// reportCycle names the containers of the cycle that the last edge closes.
func reportCycle(trail []Edge, report Report) {
	last := trail[len(trail)-1]
	start := slices.IndexFunc(trail, func(e Edge) bool { return e.From == last.To })
	cycle := trail[start:]
	names := []string{last.To}
	onlyLinks := true
	for _, e := range cycle {
		names = append(names, e.To)
		onlyLinks = onlyLinks && e.Key == "links"
	}
	what := "Container dependencies"
	if onlyLinks {
		what = "Container links"
	}
	report("$.containerDefinitions", "%s should not have a cycle: %s", what, strings.Join(names, " -> "))
}
