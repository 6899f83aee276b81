package taskdef

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// containerRules are about one container: names, memory and limits.
var containerRules = []Rule{
	{Code: "container-name-blank", Members: []string{".name"}, Text: "Container.name should not be null or empty.",
		Fix: "give the container a name",
		each: func(_ *subject, c *Container, report report) {
			if c.Name == "" {
				report(".name")
			}
		}},
	{Code: "container-name", Members: []string{".name"}, Text: "Container.name contains invalid characters.",
		Fix: "rename '{container}': use " + nameFormat, each: func(_ *subject, c *Container, report report) {
			if !validCharacters(c.Name) {
				report(".name")
			}
		}},
	{Code: "container-name-length", Members: []string{".name"}, Text: "Container.name should be 255 characters or less",
		Wording: Ours,
		Fix:     "shorten it: it has {length}", each: func(_ *subject, c *Container, report report) {
			if n := len(c.Name); n > maxName {
				report(".name", n)
			}
		}},
	{Code: "container-image-blank", Members: []string{".image"}, Text: "Container.image should not be null or empty.",
		Fix: "name an image",
		each: func(_ *subject, c *Container, report report) {
			if c.Image == "" {
				report(".image")
			}
		}},
	{Code: "container-image", Members: []string{".image"}, Text: "Container.image contains invalid characters.",
		Fix: "'{image}' may have letters, digits and characters of _-:./#@",
		each: func(_ *subject, c *Container, report report) {
			if strings.ContainsFunc(c.Image,
				func(r rune) bool { return !isNameCharacter(r) && !strings.ContainsRune(":./#@", r) }) {
				report(".image", c.Image)
			}
		}},
	{Code: "container-image-length", Members: []string{".image"},
		Text: "Container.image should be 255 characters or less",
		Fix:  "shorten it: it has {length}, without a digest", each: func(_ *subject, c *Container, report report) {
			repository, _, _ := strings.Cut(c.Image, "@")
			if n := len(repository); n > 255 {
				report(".image", n)
			}
		}},
	{Code: "container-memory-missing", Members: []string{"memory", ".memory", ".memoryReservation"},
		Text: "Invalid setting for container '{container}'. At least one of 'memory' or 'memoryReservation' must " +
			"be specified.",
		Fix: "set memory, the hard limit in MiB, or memory of the task",
		each: func(d *subject, c *Container, report report) {
			reserved := c.MemoryReservation != nil && *c.MemoryReservation != 0
			if c.Memory == nil && !reserved && d.Memory == "" {
				report(".memory")
			}
		}},
	{Code: "container-resources", Members: []string{".cpu", ".memory", ".memoryReservation"},
		Text: "Invalid '{setting}' setting for container '{container}'.",
		Fix:  "take {least} or more", each: func(_ *subject, c *Container, report report) {
			if c.CPU != nil && *c.CPU < 0 {
				report(".cpu", "cpu", 0)
			}
			if c.Memory != nil && *c.Memory < minMemory {
				report(".memory", "memory", minMemory)
			}
			if r := c.MemoryReservation; r != nil && *r < minMemory && *r != 0 {
				report(".memoryReservation", "memoryReservation", minMemory)
			}
		}},
	{Code: "container-memory-reservation", Members: []string{".memory", ".memoryReservation"},
		Text: "'memory' must be greater than or equal to 'memoryReservation'", Wording: Partial,
		Fix: "raise memory to {reservation} or more",
		each: func(_ *subject, c *Container, report report) {
			if c.Memory != nil && c.MemoryReservation != nil && *c.Memory < *c.MemoryReservation {
				report(".memory", *c.MemoryReservation)
			}
		}},
	{Code: "container-memory", Members: []string{"memory", ".memory"},
		Text: "The 'memory' setting for container '{container}' is greater than for the task.",
		Fix:  "{limit} MiB are the task's: lower it, or raise memory of the task",
		each: func(d *subject, c *Container, report report) {
			if limit, ok := d.MemoryMiB(); ok && c.Memory != nil && *c.Memory > limit {
				report(".memory", limit)
			}
		}},
	{Code: "ulimit-name", Members: []string{".ulimits[*].name"}, Text: enumText, Wording: Ours, Fix: enumFix,
		each: func(_ *subject, c *Container, report report) {
			for i, u := range c.Ulimits {
				oneOf(report, fmt.Sprintf(".ulimits[%d].name", i), u.Name, "core", "cpu", "data", "fsize", "locks",
					"memlock", "msgqueue",
					"nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack")
			}
		}},
	{Code: "ulimit", Members: []string{".ulimits[*].name", ".ulimits[*].softLimit", ".ulimits[*].hardLimit"},
		Text: "Soft limit exceeds hard limit for ulimit {name}", Fix: "lower softLimit to {hard}, or raise hardLimit",
		each: func(_ *subject, c *Container, report report) {
			for i, u := range c.Ulimits { // a negative limit is unlimited
				if u.HardLimit >= 0 && (u.SoftLimit > u.HardLimit || u.SoftLimit < 0) {
					report(fmt.Sprintf(".ulimits[%d]", i), u.Name, u.HardLimit)
				}
			}
		}},
	{Code: "ulimit-nofile", Severity: Warn, Members: []string{".ulimits[*].name", ".ulimits[*].hardLimit"},
		Text: "ulimit nofile {hard}: the container cannot start with more than 1048576", Wording: Ours, Fix: "lower it",
		each: func(_ *subject, c *Container, report report) {
			for i, u := range c.Ulimits {
				if u.Name == "nofile" && u.HardLimit > 1<<20 {
					report(fmt.Sprintf(".ulimits[%d].hardLimit", i), u.HardLimit)
				}
			}
		}},
	{Code: "restart-attempt-period", Members: []string{".restartPolicy.restartAttemptPeriod"},
		Text: "The 'restartAttemptPeriod' setting for container '{container}' must be between 60 and 1800.",
		Fix:  "take 60 to 1800 seconds",
		each: func(_ *subject, c *Container, report report) {
			if r := c.RestartPolicy; r != nil && outside(r.RestartAttemptPeriod, 60, 1800) {
				report(".restartPolicy.restartAttemptPeriod")
			}
		}},
	{Code: "restart-exit-codes", Members: []string{".restartPolicy.ignoredExitCodes[*]"},
		Text: "At most 50 exit codes are allowed.", Wording: Ours, Fix: "remove some",
		each: func(_ *subject, c *Container, report report) {
			if r := c.RestartPolicy; r != nil && len(r.IgnoredExitCodes) > 50 {
				report(".restartPolicy.ignoredExitCodes")
			}
		}},
	{Code: "timeout-low", Members: []string{".startTimeout", ".stopTimeout"}, Wording: Partial,
		Text: "Granular {which} timeout on container '{container}' must be at least 2 seconds.",
		Fix:  "take 2 seconds or more, or remove it",
		each: func(_ *subject, c *Container, report report) {
			if c.StartTimeout != nil && *c.StartTimeout < 2 {
				report(".startTimeout", "start")
			}
			if c.StopTimeout != nil && *c.StopTimeout < 2 {
				report(".stopTimeout", "stop")
			}
		}},
	{Code: "tmpfs-size", Members: []string{".linuxParameters.tmpfs[*].size"},
		Text: "The container has an invalid tmpfs size value specified. It must be a non-zero, non-negative integer.",
		Fix:  "set size in MiB",
		each: func(_ *subject, c *Container, report report) {
			if c.LinuxParameters == nil {
				return
			}
			for i, t := range c.LinuxParameters.Tmpfs {
				if t.Size <= 0 {
					report(fmt.Sprintf(".linuxParameters.tmpfs[%d].size", i))
				}
			}
		}},
	{Code: "swappiness", Members: []string{".linuxParameters.swappiness"},
		Text: "swappiness must be between 0 and 100.", Wording: Ours, Fix: "take a number in that range",
		each: func(_ *subject, c *Container, report report) {
			if l := c.LinuxParameters; l != nil && outside(l.Swappiness, 0, 100) {
				report(".linuxParameters.swappiness")
			}
		}},
	{Code: "resource-requirement-value",
		Members: []string{".resourceRequirements[*].value", ".resourceRequirements[*].sharingStrategy"},
		Text:    "Resource requirement of type {type} has no value.", Wording: Ours, Fix: "write how many",
		each: func(_ *subject, c *Container, report report) {
			for i, r := range c.ResourceRequirements {
				if r.Value == "" && r.SharingStrategy == nil {
					report(fmt.Sprintf(".resourceRequirements[%d].value", i), r.Type)
				}
			}
		}},
	{Code: "gpu-value", Severity: Warn, Members: []string{".resourceRequirements[*].type",
		".resourceRequirements[*].value"},
		Text: "'{value}' is no number of GPUs.", Wording: Ours, Fix: "write how many, or ALL",
		each: func(_ *subject, c *Container, report report) {
			for i, r := range c.ResourceRequirements {
				if n, err := strconv.Atoi(r.Value); r.Type == "GPU" && r.Value != "" && r.Value != "ALL" &&
					(err != nil || n < 0) {
					report(fmt.Sprintf(".resourceRequirements[%d].value", i), r.Value)
				}
			}
		}},
	{Code: "credential-specs", Members: []string{".credentialSpecs[*]"}, Text: "At most 1 credential spec is allowed.",
		Wording: Ours, Fix: "remove the others",
		each: func(_ *subject, c *Container, report report) {
			if len(c.CredentialSpecs) > 1 {
				report(".credentialSpecs")
			}
		}},
	{Code: "volumes-from", Members: []string{".volumesFrom[*].sourceContainer", "containerDefinitions[*].name"},
		Text: "Invalid 'volumesFrom' setting. Unknown container: '{name}'.", Fix: "name a container of the task",
		each: func(d *subject, c *Container, report report) {
			for i, v := range c.VolumesFrom {
				if d.Container(v.SourceContainer) == nil {
					report(fmt.Sprintf(".volumesFrom[%d].sourceContainer", i), v.SourceContainer)
				}
			}
		}},
	{Code: "repository-credentials-role", Members: []string{"executionRoleArn", ".repositoryCredentials"},
		Text: "Private repository authentication requires that the task definition specify a value for " +
			"executionRoleArn.", Fix: needRole,
		each: func(d *subject, c *Container, report report) {
			if c.RepositoryCredentials != nil && d.ExecutionRoleARN == "" {
				report(".repositoryCredentials")
			}
		}},
}

// minMemory is what Docker reserves for a container at least, in MiB.
const minMemory = 6

const needRole = "set executionRoleArn to a role that may do this"

// healthRules are about health checks.
var healthRules = []Rule{
	{Code: "health-check-command", Members: []string{".healthCheck.command[0]", ".healthCheck.command[1]"},
		Text: "Health check of container '{container}' must have a command.", Wording: Ours,
		Fix: `write ["CMD", "program"], ["CMD-SHELL", "text"] or ["NONE"]`,
		each: func(_ *subject, c *Container, report report) {
			h := c.HealthCheck
			if h != nil && (len(h.Command) == 0 || len(h.Command) == 1 && slices.Contains([]string{"CMD", shellCheck},
				h.Command[0])) {
				report(".healthCheck.command")
			}
		}},
	{Code: "health-check-arguments", Severity: Warn, Members: []string{".healthCheck.command[*]"}, Wording: Ours,
		Text: "Health check of container '{container}': what follows the first text after CMD-SHELL is ignored.",
		Fix:  "write the whole command as one text",
		each: func(_ *subject, c *Container, report report) {
			if h := c.HealthCheck; h != nil && len(h.Command) > 2 && h.Command[0] == shellCheck {
				report(".healthCheck.command")
			}
		}},
	{Code: "health-check-high", Members: []string{".healthCheck.interval", ".healthCheck.timeout",
		".healthCheck.retries", ".healthCheck.startPeriod"},
		Text: "Health check {member} must be less than or equal to the maximum allowed value {limit} for container " +
			"'{container}'",
		Fix: "lower it", each: func(_ *subject, c *Container, report report) {
			for _, f := range healthFigures(c) {
				if f.value != nil && *f.value > f.high {
					report(".healthCheck."+f.key, f.key, f.high)
				}
			}
		}},
	{Code: "health-check-low", Members: []string{".healthCheck.interval", ".healthCheck.timeout",
		".healthCheck.retries", ".healthCheck.startPeriod"},
		Text: "Health check {member} must be greater than or equal to the minimum allowed value {limit} for " +
			"container '{container}'",
		Wording: Ours, Fix: "raise it", each: func(_ *subject, c *Container, report report) {
			for _, f := range healthFigures(c) {
				if f.value != nil && *f.value < f.low {
					report(".healthCheck."+f.key, f.key, f.low)
				}
			}
		}},
}

const shellCheck = "CMD-SHELL"

type healthFigure struct {
	key       string
	value     *int
	low, high int
}

// healthFigures returns the numbers of a health check with what ECS allows.
func healthFigures(c *Container) []healthFigure {
	h := c.HealthCheck
	if h == nil {
		return nil
	}
	return []healthFigure{{"interval", h.Interval, 5, 300}, {"timeout", h.Timeout, 2, 60},
		{"retries", h.Retries, 1, 10}, {"startPeriod", h.StartPeriod, 0, 300}}
}
