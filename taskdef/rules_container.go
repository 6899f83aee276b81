package taskdef

import (
	"fmt"
	"slices"
	"strings"
)

// containerRules are section 6.1 as far as it is about containers.
func containerRules() []Rule {
	return []Rule{
		each("container-name", checkName),
		each("container-image", checkImage),
		each("container-memory", checkMemory),
		each("mount-point-volume", checkMountPoints),
		each("secret-name", checkSecretNames),
		each("ulimit", checkUlimits),
		each("restart-policy", checkRestartPolicy),
		each("granular-timeout", checkTimeouts),
		each("health-check", checkHealth),
		warning(each("health-check-long-timeout", func(_ *TaskDefinition, c *Container, report Report) {
			// Documents give 60, newer ones 120.
			if h := c.HealthCheck; h != nil && h.Timeout != nil && *h.Timeout > 60 && *h.Timeout <= 120 {
				report(".healthCheck.timeout", "timeout %d: not every ECS version takes more than 60 seconds", *h.Timeout)
			}
		})),
		each("environment-files", checkEnvironmentFiles),
		each("log-configuration", checkLogConfiguration),
	}
}

func checkName(_ *TaskDefinition, c *Container, report Report) {
	switch {
	case c.Name == "":
		report(".name", "Container.name should not be null or empty.")
	case !ValidName(c.Name):
		report(".name", "Container.name %q must be %s.", c.Name, nameFormat)
	}
}

func checkImage(_ *TaskDefinition, c *Container, report Report) {
	switch {
	case c.Image == "":
		report(".image", "Container.image should not be null or empty.")
	case len(c.Image) > 255:
		report(".image", "Container.image has %d characters, at most 255 are allowed.", len(c.Image))
	}
}

func checkMemory(d *TaskDefinition, c *Container, report Report) {
	limit, taskLimited := d.MemoryMiB()
	hard, soft := c.Memory, c.MemoryReservation
	if hard == nil && soft == nil && d.Memory == "" && !d.IsFargate() {
		report(".memory",
			"Invalid setting for container '%s'. At least one of 'memory' or 'memoryReservation' must be specified.", c.Name)
	}
	if hard != nil && soft != nil && *hard < *soft {
		report(".memory",
			"Invalid setting for container '%s'. 'memory' must not be less than 'memoryReservation'.", c.Name)
	}
	if taskLimited && hard != nil && *hard > limit {
		report(".memory", "The 'memory' setting for container '%s' is greater than for the task", c.Name)
	}
}

func checkMountPoints(d *TaskDefinition, c *Container, report Report) {
	for i, m := range c.MountPoints {
		if !slices.ContainsFunc(d.Volumes, func(v Volume) bool { return v.Name == m.SourceVolume }) {
			report(fmt.Sprintf(".mountPoints[%d].sourceVolume", i), "Unknown volume '%s'.", m.SourceVolume)
		}
	}
}

func checkSecretNames(_ *TaskDefinition, c *Container, report Report) {
	taken := map[string]bool{}
	for _, e := range c.Environment {
		taken[e.Name] = true
	}
	for i, s := range c.Secrets {
		if taken[s.Name] {
			report(fmt.Sprintf(".secrets[%d].name", i),
				"The secret name must be unique and not shared with any new or existing environment variables set on the container, such as '%s'.", s.Name)
		}
		taken[s.Name] = true
	}
}

// checkUlimits takes a negative limit for unlimited.
func checkUlimits(_ *TaskDefinition, c *Container, report Report) {
	for i, u := range c.Ulimits {
		oneOf(report, fmt.Sprintf(".ulimits[%d].name", i), u.Name, "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue",
			"nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack")
		if u.HardLimit >= 0 && (u.SoftLimit > u.HardLimit || u.SoftLimit < 0) {
			report(fmt.Sprintf(".ulimits[%d]", i), "Soft limit exceeds hard limit for ulimit %s", u.Name)
		}
	}
}

func checkRestartPolicy(_ *TaskDefinition, c *Container, report Report) {
	r := c.RestartPolicy
	if r == nil {
		return
	}
	if outside(r.RestartAttemptPeriod, 60, 1800) {
		report(".restartPolicy.restartAttemptPeriod",
			"the 'restartAttemptPeriod' setting for container '%s' must be between 60 and 1800", c.Name)
	}
	if len(r.IgnoredExitCodes) > 50 {
		report(".restartPolicy.ignoredExitCodes", "At most 50 exit codes are allowed.")
	}
}

func checkTimeouts(_ *TaskDefinition, c *Container, report Report) {
	if c.StartTimeout != nil && *c.StartTimeout < 2 {
		report(".startTimeout", "Granular start timeout on container '%s' must be at least 2 seconds.", c.Name)
	}
	if c.StopTimeout != nil && *c.StopTimeout < 2 {
		report(".stopTimeout", "Granular stop timeout on container '%s' must be at least 2 seconds.", c.Name)
	}
}

// checkHealth applies the ranges of section 2.1.
func checkHealth(_ *TaskDefinition, c *Container, report Report) {
	h := c.HealthCheck
	if h == nil {
		return
	}
	switch n := len(h.Command); {
	case n == 0:
		report(".healthCheck.command", "Health check of container '%s' must have a command.", c.Name)
	case n == 1 && (h.Command[0] == "CMD" || h.Command[0] == "CMD-SHELL"):
		report(".healthCheck.command", "Health check of container '%s' must have a command after %s.", c.Name, h.Command[0])
	}
	for _, r := range []struct {
		key       string
		value     *int
		low, high int
	}{
		{"interval", h.Interval, 5, 300},
		{"timeout", h.Timeout, 2, 120},
		{"retries", h.Retries, 1, 10},
		{"startPeriod", h.StartPeriod, 0, 300},
	} {
		if outside(r.value, r.low, r.high) {
			report(".healthCheck."+r.key, "Health check %s of container '%s' must be between %d and %d.",
				r.key, c.Name, r.low, r.high)
		}
	}
}

func checkEnvironmentFiles(_ *TaskDefinition, c *Container, report Report) {
	if len(c.EnvironmentFiles) > 10 {
		report(".environmentFiles", "At most 10 environment files are allowed.")
	}
	for i, f := range c.EnvironmentFiles {
		if path := fmt.Sprintf(".environmentFiles[%d]", i); f.Type != "s3" {
			report(path+".type", "%q is not one of [\"s3\"].", f.Type)
		} else if p := strings.SplitN(f.Value, ":", 4); len(p) < 4 || p[0] != "arn" || p[2] != "s3" || !strings.HasSuffix(f.Value, ".env") {
			report(path+".value", "Environment file must be the ARN of an S3 object whose name ends in .env, but is %q.", f.Value)
		}
	}
}

func checkLogConfiguration(_ *TaskDefinition, c *Container, report Report) {
	l := c.LogConfiguration
	switch {
	case l == nil:
	case l.LogDriver == "":
		report(".logConfiguration.logDriver", "logDriver should not be null or empty.")
	case l.LogDriver == "awslogs" && (l.Options["awslogs-region"] == "" || l.Options["awslogs-group"] == ""):
		report(".logConfiguration.options", "Log driver awslogs requires options: awslogs-region, awslogs-group")
	}
}
