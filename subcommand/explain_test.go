package subcommand

import (
	"bytes"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		has  string
	}{
		"an ID":            {[]string{"CE-LOGIN-TAG"}, exit.CodeOK, "docs/TROUBLESHOOTING.md#ce-login-tag"},
		"in small letters": {[]string{"ce-login-tag"}, exit.CodeOK, "CE-LOGIN-TAG: The task role has no valid tag"},
		"a log line": {[]string{"[ERROR] consul-ecs.mesh-init: command failed: error=\"ACL not found: auth method\" " +
			"exit_code=3"}, exit.CodeOK, "CE-LOGIN-METHOD: "},
		"a code of admit": {[]string{"-json", "ADM-IAM-TRUST"}, exit.CodeOK, `{"id":"ADM-IAM-TRUST",`},
		"the list":        {[]string{"-list"}, exit.CodeOK, "CE-VOLUME-FULL"},
		"unknown":         {[]string{"CE-NO", "CE-LOGIN-TAG"}, exit.CodeUsage, `unknown: "CE-NO"; explain -list`},
		"nothing":         {nil, exit.CodeUsage, "want an ID"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			app := cli.App{Name: "consul-ecs", Commands: commands()}
			none := func(string) string { return "" }
			code := cli.Main(app, append([]string{"explain"}, c.args...), none, strings.NewReader(""), &out, &out)
			output := out.String()
			testkit.Equal(t, "exit code", code, c.code)
			if !strings.Contains(output, c.has) {
				t.Errorf("got %s, want %q in it", output, c.has)
			}
		})
	}
}
