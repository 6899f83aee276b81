package admission

import (
	"slices"
	"strings"
	"testing"
)

func TestApplicationRunsBelowAppEntrypoint(t *testing.T) {
	t.Parallel()
	const await = "/consul/consul-ecs app-entrypoint -await-proxy http://127.0.0.1:22000/ready"
	for name, c := range map[string]struct{ app, entryPoint, command string }{
		"entryPoint and command": {`"entryPoint": ["/app", "-v"], "command": ["serve"]`, await + " /app -v", "serve"},
		"command alone":          {`"command": ["/app", "serve"]`, await, "/app serve"},
		"its stop timeout":       {`"entryPoint": ["/app"], "stopTimeout": 45`, await + " -stop-timeout 45s /app", ""},
		"neither":                {`"user": "app"`, "", ""},
		"options of an image":    {`"command": ["--config", "/app.yaml"]`, "", "--config /app.yaml"},
		"flags of the user": {
			`"entryPoint": ["/mnt/consul-ecs", "app-entrypoint", "-shutdown-delay", "9s", "-await-proxy=127.0.0.1:1", "-stop-signal", "QUIT", "-compat", "--", "/app", "-x"]`,
			await + " -shutdown-delay 9s -stop-signal QUIT -compat -- /app -x", "",
		},
		"wrapped in the command": {`"command": ["/consul/consul-ecs", "app-entrypoint", "/app"]`, "", "/consul/consul-ecs app-entrypoint /app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admit(t, definition("", c.app), parseMesh(t, []byte(plainMesh)))
			app := r.After.Definition.ContainerDefinitions[0]
			if got := strings.Join(app.EntryPoint, " "); got != c.entryPoint {
				t.Errorf("entryPoint %q, want %q", got, c.entryPoint)
			}
			if got := strings.Join(app.Command, " "); got != c.command {
				t.Errorf("command %q, want %q", got, c.command)
			}
		})
	}
}

func TestSidecarsEndAfterTheApplications(t *testing.T) {
	t.Parallel()
	for stopTimeout, want := range map[string]int{"": 45, `, "stopTimeout": 10`: 25, `, "stopTimeout": 100`: 115, `, "stopTimeout": 120`: 120} {
		r := admit(t, definition("", plainApp+stopTimeout), parseMesh(t, []byte(plainMesh)))
		for _, name := range []string{"sidecar-proxy", "consul-ecs-health-sync"} {
			if got := r.After.Definition.Container(name).StopTimeout; got == nil || *got != want {
				t.Errorf("application%s: %s has %v, want %d", stopTimeout, name, got, want)
			}
		}
	}
}

func TestShutdownNamesTheStageThatDoesNotFit(t *testing.T) {
	t.Parallel()
	const wrapped = `"entryPoint": ["/consul/consul-ecs", "app-entrypoint", "-shutdown-delay", "%"%, "/app"]`
	app := func(delay, stop string) string {
		return strings.Replace(wrapped, `"%"%`, `"`+delay+`"`, 1) + `, "stopTimeout": ` + stop
	}
	const agent = `{"consulHTTPAddr": "10.0.0.4:8500", "consulLogin": {"enabled": true}}`
	for name, c := range map[string]struct {
		app, mesh string
		want      []string
	}{
		"all fit":                  {app("10s", "30"), agent, nil},
		"automatic delay":          {app("auto", "2"), agent, nil},
		"flag of the application":  {`"entryPoint": ["/consul/consul-ecs", "app-entrypoint", "/app", "-shutdown-delay", "60s"]`, agent, nil},
		"delay up to the last":     {app("30s", "30"), agent, []string{"app application 31"}},
		"delay beyond":             {app("40s", "30"), agent, []string{"app drain 40"}},
		"no time after 105 s":      {app("10s", "110"), agent, []string{"consul-ecs-health-sync logout 123", "consul-client logout 121"}},
		"without an agent 110 fit": {app("10s", "110"), plainMesh, nil},
		"no time at all":           {app("10s", "120"), plainMesh, []string{"sidecar-proxy proxy 121", "consul-ecs-health-sync logout 128"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admit(t, definition("", c.app), parseMesh(t, []byte(c.mesh)))
			var got []string
			for _, f := range r.Findings {
				if f.Code == codeStop {
					words := strings.Fields(f.Message)
					got = append(got, words[0]+" "+words[9]+" "+words[12])
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("stages %q, want %q: %v", got, c.want, r.Findings)
			}
		})
	}
}
