package taskdef

import (
	"fmt"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The page of the rules is made of the table. -update writes it.
func TestPageOfRulesIsCurrent(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(`# Rules of ECS task definitions

What RegisterTaskDefinition refuses, as ` + "`taskdef`" + ` checks it for all commands: ` + "`localecs run`" + `, and
RegisterTaskDefinition of the ECS API of localecs. Written by ` + "`go test ./taskdef -run TestPageOfRules -update`" +
		`.

*Words* are AWS's: exact, in part as far as they are known, or ours where AWS documents a rule without
its text. Members, enumerations and bounds are compared with botocore's model of ECS in a test.
Names in braces stand for what differs. A warning is registered by AWS. Rules for awsvpc hold
for definitions with that ` + "`networkMode`" + `, those for Fargate for definitions with FARGATE in
` + "`requiresCompatibilities`" + `. A rule is not applied when a member that it reads is known at deployment
only, such as a ` + "`Ref`" + ` of CloudFormation.

| Code | For | Answer | Words | What to do |
|---|---|---|---|---|
`)
	for _, r := range Rules() {
		code := "`" + r.Code + "`"
		if r.Severity == Warn {
			code += " (warning)"
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", code, r.Scope, cell(r.Text), r.Wording, cell(r.Fix))
	}
	testkit.Golden(t, "../../docs/TASK-DEFINITION-RULES.md", []byte(page.String()))
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "[", `\[`, "*", `\*`).Replace(text)
}
