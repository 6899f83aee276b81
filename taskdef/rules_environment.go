package taskdef

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const maxEnvironmentFiles = 10

// environmentRules are about variables, secrets and environment files.
var environmentRules = []Rule{
	{Code: "variable-name", Members: []string{".environment[*].name"},
		Text: "Environment variable name cannot be null or blank.",
		Fix:  "give the variable a name, or remove it", each: func(_ *subject, c *Container, report report) {
			for i, e := range c.Environment {
				if strings.TrimSpace(e.Name) == "" {
					report(fmt.Sprintf(".environment[%d].name", i))
				}
			}
		}},
	{Code: "secret-name", Members: []string{".environment[*].name", ".secrets[*].name"},
		Fix: "remove the variable or the secret",
		Text: "The secret name must be unique and not shared with any new or existing environment variables set on " +
			"the container, such as '{name}'.",
		each: func(_ *subject, c *Container, report report) {
			for i, s := range c.Secrets {
				if slices.ContainsFunc(c.Environment, func(e KeyValue) bool { return e.Name == s.Name }) {
					report(fmt.Sprintf(".secrets[%d].name", i), s.Name)
				}
			}
		}},
	{Code: "secret-name-unique", Members: []string{".secrets[*].name"},
		Text: "Duplicate secret names found: {names}. Each secret name must be unique.",
		Fix:  "remove one of them", each: func(_ *subject, c *Container, report report) {
			taken := map[string]bool{}
			var twice []string
			for _, s := range c.Secrets {
				if taken[s.Name] && !slices.Contains(twice, s.Name) {
					twice = append(twice, s.Name)
				}
				taken[s.Name] = true
			}
			if len(twice) > 0 {
				report(".secrets", strings.Join(twice, ", "))
			}
		}},
	{Code: "secret-parameter", Members: []string{".secrets[*].name", ".secrets[*].valueFrom"},
		Text: "The Systems Manager parameter name specified for secret {name} is invalid. The parameter name can be " +
			"up to 2048 characters and " +
			"include the following letters and symbols: a-zA-Z0-9_.-", Wording: Partial,
		Fix: "write the name of a parameter, or the whole ARN of a parameter or a secret",
		each: func(_ *subject, c *Container, report report) {
			for i, s := range c.Secrets {
				if !strings.HasPrefix(s.ValueFrom, "arn:") && !parameterName().MatchString(s.ValueFrom) {
					report(fmt.Sprintf(".secrets[%d].valueFrom", i), s.Name)
				}
			}
		}},
	{Code: "secret-account", Members: []string{".secrets[*].valueFrom", "executionRoleArn", "taskRoleArn"},
		Text: "The Systems Manager parameter ARN has a different account ID than the current account. The current " +
			"account ID is {account} and " +
			"the ARN account ID is {other}. Cross-account access for ARNs is not currently supported.",
		Fix: "the task's roles are of account {account}: use a parameter of it, or a secret of Secrets Manager, " +
			"which can be shared", each: checkSecretAccounts},
	{Code: "secret-role", Members: []string{"executionRoleArn", ".secrets"}, Fix: needRole,
		Text: "When you are specifying container secrets, you must also specify a value for 'executionRoleArn'.",
		each: func(d *subject, c *Container, report report) {
			if len(c.Secrets) > 0 && d.ExecutionRoleARN == "" {
				report(".secrets")
			}
		}},
	{Code: "environment-files-count", Members: []string{".environmentFiles[*]"}, Fix: "join some of the files",
		Text: "The maximum number of environment files was exceeded. Specify ten or less and try again.",
		each: func(_ *subject, c *Container, report report) {
			if len(c.EnvironmentFiles) > maxEnvironmentFiles {
				report(".environmentFiles")
			}
		}},
	{Code: "environment-file-arn", Members: []string{".environmentFiles[*].value"}, Text: "Invalid arn syntax.",
		Fix: "write the ARN of an S3 object, such as arn:aws:s3:::bucket/web.env",
		each: func(_ *subject, c *Container, report report) {
			for i, f := range c.EnvironmentFiles {
				if arn := arnFields(f.Value); arn == nil || arn[2] != "s3" {
					report(fmt.Sprintf(".environmentFiles[%d].value", i))
				}
			}
		}},
	{Code: "environment-file-name", Members: []string{".environmentFiles[*].value"},
		Text:    "The name of an environment file must end in .env.",
		Wording: Ours, Fix: "rename the object", each: func(_ *subject, c *Container, report report) {
			for i, f := range c.EnvironmentFiles {
				if arnFields(f.Value) != nil && !strings.HasSuffix(f.Value, ".env") {
					report(fmt.Sprintf(".environmentFiles[%d].value", i))
				}
			}
		}},
	{Code: "environment-file-type", Members: []string{".environmentFiles[*].type"},
		Text:    "Environment file type '{type}' is not s3.",
		Wording: Ours, Fix: "write s3", each: func(_ *subject, c *Container, report report) {
			for i, f := range c.EnvironmentFiles {
				if f.Type != "s3" {
					report(fmt.Sprintf(".environmentFiles[%d].type", i), f.Type)
				}
			}
		}},
}

var parameterName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_./-]*$`) })

// arnFields splits an ARN: arn, partition, service, region, account, resource. It
// is nil when the text is no ARN.
func arnFields(s string) []string {
	fields := strings.SplitN(s, ":", 6)
	if len(fields) < 6 || fields[0] != "arn" || fields[1] == "" || fields[2] == "" || fields[5] == "" {
		return nil
	}
	return fields
}

// account returns the account that the definition is for, by its roles.
func (d *subject) account() string {
	for _, role := range []string{d.ExecutionRoleARN, d.TaskRoleARN} {
		if arn := arnFields(role); arn != nil && arn[4] != "" {
			return arn[4]
		}
	}
	return ""
}

func checkSecretAccounts(d *subject, c *Container, report report) {
	account := d.account()
	for i, s := range c.Secrets {
		arn := arnFields(s.ValueFrom)
		if account != "" && arn != nil && arn[2] == "ssm" && arn[4] != account {
			report(fmt.Sprintf(".secrets[%d].valueFrom", i), account, arn[4])
		}
	}
}
