package taskdef

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

const (
	maxContainers = 10
	maxBytes      = 64 << 10
	maxTags       = 50
)

// structureRules are section 6.1 as far as it is about the task.
func structureRules() []Rule {
	return []Rule{
		task("family-name", func(d *TaskDefinition, report Report) {
			if !ValidName(d.Family) {
				report("$.family", "Family %q must be %s.", d.Family, nameFormat)
			}
		}),
		task("container-count", checkContainerCount),
		task("document-size", func(d *TaskDefinition, report Report) {
			if doc, err := json.Marshal(d); err == nil && len(doc) > maxBytes {
				report("$", "Task definition has %d bytes, at most %d are allowed.", len(doc), maxBytes)
			}
		}),
		task("container-name-unique", checkContainerNames),
		task("essential-container", func(d *TaskDefinition, report Report) {
			essential := func(c Container) bool { return c.IsEssential() }
			if len(d.ContainerDefinitions) > 0 && !slices.ContainsFunc(d.ContainerDefinitions, essential) {
				report("$.containerDefinitions", "At least one container must be essential.")
			}
		}),
		task("volume-name", checkVolumeNames),
		task("task-size", checkTaskSize),
		task("cpu-sum", checkCPUSum),
		task("tag-count", func(d *TaskDefinition, report Report) {
			if len(d.Tags) > maxTags {
				report("$.tags", "Task definition has %d tags, at most %d are allowed.", len(d.Tags), maxTags)
			}
		}),
		task("enum", checkEnums),
	}
}

func checkContainerCount(d *TaskDefinition, report Report) {
	switch n := len(d.ContainerDefinitions); {
	case n == 0:
		report("$.containerDefinitions", "Container list cannot be empty.")
	case n > maxContainers:
		report("$.containerDefinitions", "Container list has %d entries, at most %d are allowed.", n, maxContainers)
	}
}

func checkContainerNames(d *TaskDefinition, report Report) {
	first := map[string]int{}
	for i, c := range d.ContainerDefinitions {
		if j, taken := first[c.Name]; taken && c.Name != "" {
			report(fmt.Sprintf("$.containerDefinitions[%d].name", i),
				"Container name '%s' is already used by containerDefinitions[%d].", c.Name, j)
			continue
		}
		first[c.Name] = i
	}
}

func checkVolumeNames(d *TaskDefinition, report Report) {
	seen := map[string]bool{}
	for i, v := range d.Volumes {
		path := fmt.Sprintf("$.volumes[%d].name", i)
		switch {
		case !ValidName(v.Name):
			report(path, "Volume name %q must be %s.", v.Name, nameFormat)
		case seen[v.Name]:
			report(path, "Volume name '%s' is used twice.", v.Name)
		}
		seen[v.Name] = true
	}
}

func checkTaskSize(d *TaskDefinition, report Report) {
	if _, ok := d.CPUUnits(); d.CPU != "" && !ok {
		report("$.cpu", "Invalid 'cpu' setting for task: %q is neither CPU units nor vCPUs.", d.CPU)
	}
	if _, ok := d.MemoryMiB(); d.Memory != "" && !ok {
		report("$.memory", "Invalid 'memory' setting for task: %q is neither MiB nor GB.", d.Memory)
	}
}

func checkCPUSum(d *TaskDefinition, report Report) {
	sum := 0
	for _, c := range d.ContainerDefinitions {
		if c.CPU != nil {
			sum += *c.CPU
		}
	}
	if limit, ok := d.CPUUnits(); ok && sum > limit {
		report("$.cpu", "The sum of all container 'cpu' values cannot be greater than the value of the task 'cpu'.")
	}
}

func checkEnums(d *TaskDefinition, report Report) {
	for i, c := range d.RequiresCompatibilities {
		oneOf(report, fmt.Sprintf("$.requiresCompatibilities[%d]", i), c, "EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES")
	}
	oneOf(report, "$.networkMode", d.NetworkMode, "", "awsvpc", "bridge", "host", "none")
	oneOf(report, "$.pidMode", d.PIDMode, "", "host", "task")
	oneOf(report, "$.ipcMode", d.IPCMode, "", "host", "task", "none")
}

const nameFormat = "1 to 255 letters, digits, '_' or '-'"

// ValidName reports whether ECS takes a name of a family, a container, a volume, a
// cluster or a service.
func ValidName(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`).MatchString(s)
}

// oneOf reports a value that an enumeration does not have. An empty member,
// written first, stands for absent.
func oneOf(report Report, path, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	if allowed[0] == "" {
		allowed = allowed[1:]
	}
	report(path, "%q is not one of %q.", value, allowed)
}
