package taskdef

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Log drivers that rules know.
const (
	awslogs     = "awslogs"
	awsfirelens = "awsfirelens"
)

// logRules are about log drivers and FireLens.
var logRules = []Rule{
	{Code: "log-driver", Members: []string{".logConfiguration.logDriver"},
		Text: "logDriver should not be null or empty.", Wording: Ours,
		Fix: "name a log driver, such as awslogs", each: func(_ *subject, c *Container, report report) {
			if c.LogConfiguration != nil && c.LogConfiguration.LogDriver == "" {
				report(".logConfiguration.logDriver")
			}
		}},
	{Code: "awslogs-options", Members: []string{".logConfiguration.logDriver", ".logConfiguration.options",
		`.logConfiguration.options["awslogs-region"]`, `.logConfiguration.options["awslogs-group"]`},
		Text: "Log driver awslogs requires options: {options}", Fix: "add the options",
		each: func(_ *subject, c *Container, report report) {
			if missing := missingOptions(c.LogConfiguration); len(missing) > 0 {
				report(".logConfiguration.options", strings.Join(missing, ", "))
			}
		}},
	{Code: "awslogs-option", Members: []string{".logConfiguration.logDriver", ".logConfiguration.options"},
		Text: "Log driver awslogs disallows options: {options}",
		Fix:  "remove them", each: func(_ *subject, c *Container, report report) {
			if l := c.LogConfiguration; l != nil && l.LogDriver == awslogs {
				allowed := func(option string) bool { return slices.Contains(awslogsOptions, option) }
				if unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(l.Options)), allowed); len(unknown) > 0 {
					report(".logConfiguration.options", strings.Join(unknown, ", "))
				}
			}
		}},
	{Code: "awslogs-multiline", Severity: Warn,
		Members: []string{".logConfiguration.logDriver", ".logConfiguration.options"},
		Text:    "Log driver awslogs takes one of the options awslogs-datetime-format and awslogs-multiline-pattern.",
		Wording: Ours, Fix: "remove one of them",
		each: func(_ *subject, c *Container, report report) {
			l := c.LogConfiguration
			if l != nil && l.LogDriver == awslogs && l.Options["awslogs-datetime-format"] != "" &&
				l.Options["awslogs-multiline-pattern"] != "" {
				report(".logConfiguration.options")
			}
		}},
	{Code: "log-secret-role", Severity: Warn,
		Members: []string{"executionRoleArn", "containerDefinitions[*].logConfiguration.secretOptions"},
		Text:    "The execution role reads secretOptions, and the task has none.", Wording: Ours, Fix: needRole,
		task: func(d *subject, report report) {
			secrets := func(c Container) bool {
				return c.LogConfiguration != nil &&
					len(c.LogConfiguration.SecretOptions) > 0
			}
			if i := slices.IndexFunc(d.ContainerDefinitions, secrets); i >= 0 && d.ExecutionRoleARN == "" {
				report(fmt.Sprintf("containerDefinitions[%d].logConfiguration.secretOptions", i))
			}
		}},
	{Code: "firelens-router", Members: []string{"containerDefinitions[*].firelensConfiguration",
		"containerDefinitions[*].logConfiguration.logDriver"},
		Text: "When awsfirelens log driver is specified in log configuration, a firelens configuration object must " +
			"be configured in one of the containers.",
		Fix: "add a log router container with a firelensConfiguration", task: func(d *subject, report report) {
			if i := slices.IndexFunc(d.ContainerDefinitions, logsToFirelens); i >= 0 &&
				!slices.ContainsFunc(d.ContainerDefinitions, routesLogs) {
				report(fmt.Sprintf("containerDefinitions[%d].logConfiguration.logDriver", i))
			}
		}},
	{Code: "firelens-unused", Members: []string{"containerDefinitions[*].firelensConfiguration",
		"containerDefinitions[*].logConfiguration.logDriver"},
		Text: "When a firelensConfiguration object is specified, at least one container has to be configured with " +
			"the awsfirelens log driver.",
		Fix: "set logDriver awsfirelens in a container, or remove the router", task: func(d *subject, report report) {
			if i := slices.IndexFunc(d.ContainerDefinitions, routesLogs); i >= 0 &&
				!slices.ContainsFunc(d.ContainerDefinitions, logsToFirelens) {
				report(fmt.Sprintf("containerDefinitions[%d].firelensConfiguration", i))
			}
		}},
	{Code: "firelens-config-file", Text: "Invalid arn syntax.",
		Members: []string{".firelensConfiguration.options", `.firelensConfiguration.options["config-file-type"]`,
			`.firelensConfiguration.options["config-file-value"]`},
		Fix: "write the ARN of an S3 object, or set config-file-type to file",
		each: func(_ *subject, c *Container, report report) {
			if f := c.FirelensConfiguration; f != nil && f.Options["config-file-type"] == "s3" &&
				arnFields(f.Options["config-file-value"]) == nil {
				report(`.firelensConfiguration.options["config-file-value"]`)
			}
		}},
}

// awslogsOptions are those of ECS, and those of Docker's driver of that name.
var awslogsOptions = []string{
	"awslogs-create-group", "awslogs-create-stream", "awslogs-credentials-endpoint", "awslogs-datetime-format",
	"awslogs-endpoint",
	"awslogs-force-flush-interval-seconds", "awslogs-format", "awslogs-group", "awslogs-max-buffered-events",
	"awslogs-multiline-pattern",
	"awslogs-region", "awslogs-stream", "awslogs-stream-prefix", "cache-compress", "cache-disabled", "cache-max-file",
	"cache-max-size",
	"env", "env-regex", "labels", "labels-regex", "max-buffer-size", "mode", "tag",
}

func missingOptions(l *LogConfiguration) []string {
	if l == nil || l.LogDriver != awslogs {
		return nil
	}
	given := func(option string) bool { return l.Options[option] != "" }
	return slices.DeleteFunc([]string{"awslogs-region", "awslogs-group"}, given)
}

func logsToFirelens(c Container) bool {
	return c.LogConfiguration != nil && c.LogConfiguration.LogDriver == awsfirelens
}

func routesLogs(c Container) bool { return c.FirelensConfiguration != nil }
