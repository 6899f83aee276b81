package taskdef

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxContainers = 10
	maxBytes      = 64 << 10
	maxTags       = 50
)

// taskRules are about the task as a whole.
var taskRules = []Rule{
	{Code: "family-blank", Members: []string{"family"}, Text: "Family can not be blank.", Fix: "give family a name",
		task: func(d *subject, report report) {
			if d.Family == "" {
				report("family")
			}
		}},
	{Code: "family-characters", Members: []string{"family"}, Text: "Family contains invalid characters.",
		Fix: "use " + nameFormat, task: func(d *subject, report report) {
			if !validCharacters(d.Family) {
				report("family")
			}
		}},
	{Code: "family-length", Members: []string{"family"},
		Text:    "Family has {length} characters, at most 255 are allowed.",
		Wording: Ours, Fix: "shorten it", task: func(d *subject, report report) {
			if n := len(d.Family); n > maxName {
				report("family", n)
			}
		}},
	{Code: "document-size", Members: []string{"*"}, Fix: "move long values into SSM parameters or files of the image",
		Text: "Actual length: '{bytes}'. Max allowed length is '65536' bytes.", task: func(d *subject, report report) {
			if d.size > maxBytes && len(d.unknown) == 0 {
				report("", d.size)
			}
		}},
	{Code: "role", Members: []string{"executionRoleArn", "taskRoleArn"}, Text: "Role is not valid",
		Fix: "write the ARN of an IAM role, or leave it out", task: checkRoles},
	{Code: "task-cpu", Members: []string{"cpu", "requiresCompatibilities[*]"}, Text: "Invalid 'cpu' setting for task.",
		Fix: "write CPU units such as 256, or vCPUs such as .25 vCPU: 128 to 196608 units",
		task: func(d *subject, report report) {
			units, ok := d.CPUUnits()
			if ok && !d.IsFargate() && outside(&units, 128, 196608) || !ok && (d.CPU != "" || d.blank("cpu")) {
				report("cpu")
			}
		}},
	{Code: "task-memory", Members: []string{"memory"}, Text: "Invalid 'memory' setting for task.", Wording: Ours,
		Fix: "write MiB such as 512, or GB such as 0.5 GB", task: func(d *subject, report report) {
			if _, ok := d.MemoryMiB(); !ok && (d.Memory != "" || d.blank("memory")) {
				report("memory")
			}
		}},
	{Code: "containers-missing", Members: []string{"containerDefinitions"}, Text: "Container list cannot be empty.",
		Fix: "add a container", task: func(d *subject, report report) {
			if len(d.ContainerDefinitions) == 0 {
				report("containerDefinitions")
			}
		}},
	{Code: "containers-count", Members: []string{"containerDefinitions[*]"}, Text: "Too many containers.",
		Fix: "10 are allowed, not {count}", task: func(d *subject, report report) {
			if n := len(d.ContainerDefinitions); n > maxContainers {
				report("containerDefinitions", n)
			}
		}},
	{Code: "container-name-unique", Members: []string{"containerDefinitions[*].name"},
		Text: "Container names must be unique within a task definition", Fix: "rename one of the containers '{name}'",
		task: checkContainerNames},
	{Code: "essential-container", Members: []string{"containerDefinitions[*].essential"},
		Text: "Task definition doesn't have any essential container.",
		Fix:  "make a container essential, which is the default",
		task: func(d *subject, report report) {
			essential := func(c Container) bool { return c.IsEssential() }
			if len(d.ContainerDefinitions) > 0 && !slices.ContainsFunc(d.ContainerDefinitions, essential) {
				report("containerDefinitions")
			}
		}},
	{Code: "cpu-sum", Members: []string{"cpu", "containerDefinitions[*].cpu"},
		Fix:  "the sum is {sum}: raise the task's cpu",
		Text: "The sum of all container 'cpu' values cannot be greater than the value of the task 'cpu'.",
		task: func(d *subject, report report) {
			limit, ok := d.CPUUnits()
			if sum := d.sum(func(c Container) *int { return c.CPU }); ok && sum > limit {
				report("cpu", sum)
			}
		}},
	{Code: "reservation-sum", Members: []string{"memory", "containerDefinitions[*].memoryReservation"},
		Fix: "the sum is {sum}: raise the task's memory",
		Text: "The sum of all container 'memoryReservation' values cannot be greater than the value of the " +
			"task 'memory'.",
		task: func(d *subject, report report) {
			limit, ok := d.MemoryMiB()
			if sum := d.sum(func(c Container) *int { return c.MemoryReservation }); ok && sum > limit {
				report("memory", sum)
			}
		}},
	{Code: "placement-constraint", Members: []string{"placementConstraints[*].type"},
		Text: "constraint.type '{type}' is not supported.",
		Fix:  "a task definition takes memberOf only; distinctInstance goes into the service",
		task: func(d *subject, report report) {
			for i, c := range d.PlacementConstraints {
				if c.Type != "memberOf" {
					report(fmt.Sprintf("placementConstraints[%d].type", i), c.Type)
				}
			}
		}},
	{Code: "placement-constraint-count", Members: []string{"placementConstraints[*]"},
		Text:    "Task definition has {count} placement constraints, at most 10 are allowed.",
		Wording: Ours, Fix: "remove some", task: func(d *subject, report report) {
			if n := len(d.PlacementConstraints); n > 10 {
				report("placementConstraints", n)
			}
		}},
	{Code: "ephemeral-storage-ec2", Members: []string{"ephemeralStorage", "requiresCompatibilities[*]"},
		Text: "Tasks using the EC2 launch type do not support EphemeralStorage.", Fix: "remove ephemeralStorage",
		task: func(d *subject, report report) {
			if d.EphemeralStorage != nil && !d.IsFargate() && slices.Contains(d.RequiresCompatibilities, "EC2") {
				report("ephemeralStorage")
			}
		}},
	{Code: "ephemeral-storage-low", Members: []string{"ephemeralStorage.sizeInGiB"},
		Text: "EphemeralStorage size should be at least 21",
		Fix:  "20 GiB are free: remove ephemeralStorage, or take 21 to 200", task: func(d *subject, report report) {
			if e := d.EphemeralStorage; e != nil && e.SizeInGiB < 21 {
				report("ephemeralStorage.sizeInGiB")
			}
		}},
	{Code: "ephemeral-storage-high", Members: []string{"ephemeralStorage.sizeInGiB"},
		Text: "EphemeralStorage size should be at most 200",
		Fix:  "take 21 to 200", task: func(d *subject, report report) {
			if e := d.EphemeralStorage; e != nil && e.SizeInGiB > 200 {
				report("ephemeralStorage.sizeInGiB")
			}
		}},
	{Code: "inference-accelerators", Members: []string{"inferenceAccelerators"},
		Text: "Unsupported field 'inferenceAccelerators'.",
		Fix:  "remove it: Elastic Inference has ended", task: func(d *subject, report report) {
			if len(d.InferenceAccelerators) > 0 {
				report("inferenceAccelerators")
			}
		}},
	{Code: "tags-empty", Members: []string{"tags"}, Text: "Tags can not be empty.", Fix: "remove tags",
		task: func(d *subject, report report) {
			if d.Tags != nil && len(d.Tags) == 0 {
				report("tags")
			}
		}},
	{Code: "tag-count", Members: []string{"tags[*]"}, Text: "Task definition has {count} tags, at most 50 are allowed.",
		Wording: Ours,
		Fix:     "remove some", task: func(d *subject, report report) {
			if n := len(d.Tags); n > maxTags {
				report("tags", n)
			}
		}},
	{Code: "tag-key", Members: []string{"tags[*].key"},
		Text:    "Tag key '{key}' must be 1 to 128 letters, digits, blanks or characters of _.:/=+-@.",
		Wording: Ours, Fix: "rename it", task: func(d *subject, report report) {
			for i, tag := range d.Tags {
				if !tagPattern().MatchString(tag.Key) || tag.Key == "" || utf8.RuneCountInString(tag.Key) > 128 {
					report(fmt.Sprintf("tags[%d].key", i), tag.Key)
				}
			}
		}},
	{Code: "tag-key-unique", Members: []string{"tags[*].key"}, Text: "Multiple tags contain the same key.",
		Wording: Partial,
		Fix:     "remove one of the tags '{key}'", task: func(d *subject, report report) {
			taken := map[string]bool{}
			for i, tag := range d.Tags {
				if taken[tag.Key] {
					report(fmt.Sprintf("tags[%d].key", i), tag.Key)
				}
				taken[tag.Key] = true
			}
		}},
	{Code: "tag-key-reserved", Members: []string{"tags[*].key"}, Text: "Tag keys can't start with 'aws:'.",
		Wording: Ours,
		Fix:     "remove '{key}'", task: func(d *subject, report report) {
			for i, tag := range d.Tags {
				if ReservedTag(tag.Key) {
					report(fmt.Sprintf("tags[%d].key", i), tag.Key)
				}
			}
		}},
	{Code: "tag-value", Members: []string{"tags[*].key", "tags[*].value"},
		Text:    "The value of tag '{key}' must be at most 256 letters, digits, blanks or characters of _.:/=+-@.",
		Wording: Ours, Fix: "change it", task: func(d *subject, report report) {
			for i, tag := range d.Tags {
				if !tagPattern().MatchString(tag.Value) || utf8.RuneCountInString(tag.Value) > 256 {
					report(fmt.Sprintf("tags[%d].value", i), tag.Key)
				}
			}
		}},
}

// proxyRules are about App Mesh.
var proxyRules = []Rule{
	{Code: "proxy-network-mode", Members: []string{"proxyConfiguration", "networkMode"},
		Text: "APPMESH proxy configuration is only supported in networkMode=awsvpc", Fix: "set networkMode to awsvpc",
		task: func(d *subject, report report) {
			if d.ProxyConfiguration != nil && d.NetworkMode != "awsvpc" {
				report("proxyConfiguration")
			}
		}},
	{Code: "proxy-container", Members: []string{"proxyConfiguration.containerName", "containerDefinitions[*].name"},
		Text: "Proxy container [{name}] does not exist.", Fix: "name a container of the task",
		task: func(d *subject, report report) {
			if p := d.ProxyConfiguration; p != nil && d.Container(p.ContainerName) == nil {
				report("proxyConfiguration.containerName", p.ContainerName)
			}
		}},
	{Code: "proxy-ingress-port", Members: []string{"proxyConfiguration.properties[*].name"},
		Text: "Ingress port not found",
		Fix:  "add the property ProxyIngressPort", task: func(d *subject, report report) {
			if p := d.ProxyConfiguration; p != nil && !p.has("ProxyIngressPort") {
				report("proxyConfiguration.properties")
			}
		}},
	{Code: "proxy-egress-port", Members: []string{"proxyConfiguration.properties[*].name"},
		Text: "Egress port not found", Wording: Partial,
		Fix: "add the property ProxyEgressPort", task: func(d *subject, report report) {
			if p := d.ProxyConfiguration; p != nil && p.has("ProxyIngressPort") && !p.has("ProxyEgressPort") {
				report("proxyConfiguration.properties")
			}
		}},
	{Code: "proxy-property", Members: []string{"proxyConfiguration.properties[*].value"},
		Text: "ProxyConfiguration properties value cannot be null.", Fix: `give it a value, "" if need be`,
		task: func(d *subject, report report) {
			if d.ProxyConfiguration == nil || d.written == nil {
				return
			}
			for i, p := range d.ProxyConfiguration.Properties {
				if path := fmt.Sprintf("proxyConfiguration.properties[%d].value", i); p.Value == "" && !d.blank(path) {
					report(path)
				}
			}
		}},
}

func (p *ProxyConfiguration) has(property string) bool {
	return slices.ContainsFunc(p.Properties, func(v KeyValue) bool { return v.Name == property })
}

// sum adds up a figure of all containers.
func (d *subject) sum(of func(c Container) *int) int {
	sum := 0
	for _, c := range d.ContainerDefinitions {
		if p := of(c); p != nil {
			sum += *p
		}
	}
	return sum
}

func checkRoles(d *subject, report report) {
	for _, role := range [][2]string{{"executionRoleArn", d.ExecutionRoleARN}, {"taskRoleArn", d.TaskRoleARN}} {
		if path, value := role[0], role[1]; value != "" && !rolePattern().MatchString(value) || d.blank(path) {
			report(path)
		}
	}
}

// ReservedTag reports whether AWS alone sets tags of that key, such as CloudFormation's.
func ReservedTag(key string) bool { return strings.HasPrefix(strings.ToLower(key), "aws:") }

var tagPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`) })

// rolePattern takes a role's ARN or its name.
var rolePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(arn:aws[a-z-]*:iam::\d{12}:role/)?[\w+=,.@/-]+$`)
})

func checkContainerNames(d *subject, report report) {
	taken := map[string]bool{}
	for i, c := range d.ContainerDefinitions {
		if taken[c.Name] && c.Name != "" {
			report(fmt.Sprintf("containerDefinitions[%d].name", i), c.Name)
		}
		taken[c.Name] = true
	}
}
