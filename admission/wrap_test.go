package admission

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
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

// An earlier admission is the definition as it was before, with app-entrypoint and a container
// of the mesh.
func TestProgramOfAnApplicationDecides(t *testing.T) {
	t.Parallel()
	const await = "/consul/consul-ecs app-entrypoint -await-proxy http://127.0.0.1:22000/ready"
	const wrapped = `"entryPoint": ["/consul/consul-ecs", "app-entrypoint", "-await-proxy", "127.0.0.1:20000"%s]`
	const earlier = `}, {"name": "consul-ecs-mesh-init", "image": "x", "essential": false, "dockerLabels": {"consul.hashicorp.com/injected-by": "consul-ecs admit"}`
	const yes, no = `"dockerLabels": {"consul.hashicorp.com/wrap": "true"}`, `"dockerLabels": {"consul.hashicorp.com/wrap": "false"}`
	old, quit := fmt.Sprintf(wrapped, ""), fmt.Sprintf(wrapped, `, "-stop-signal", "QUIT"`)
	for name, c := range map[string]struct{ app, entryPoint, command, codes string }{
		"arguments of an ENTRYPOINT": {`"command": ["start", "--optimized"]`, "", "start --optimized", codeWrap},
		"relative path":              {`"command": ["./bin/web"]`, "", "./bin/web", codeWrap},
		"file of an interpreter":     {`"command": ["/srv/main.py"]`, "", "/srv/main.py", codeWrap},
		"text of a shell": {
			`"command": ["/bin/migrate && /bin/web"]`, "", "/bin/migrate && /bin/web", codeWrap,
		},
		"directory":                         {`"command": ["/data/"]`, "", "/data/", codeWrap},
		"absolute path":                     {`"command": ["/app", "serve"]`, await, "/app serve", codeEntryPoint},
		"shell":                             {`"command": ["sh", "-c", "serve"]`, await, "sh -c serve", codeEntryPoint},
		"arguments, but they are a program": {`"command": ["serve"], ` + yes, await, "serve", ""},
		"path, not to be wrapped":           {`"command": ["/app"], ` + no, "", "/app", ""},
		"entryPoint, not to be wrapped":     {`"entryPoint": ["/app"], ` + no, "/app", "", ""},
		"options are no program":            {`"command": ["--port", "80"], ` + yes, "", "--port 80", codeWrap},
		"no command is no program":          {yes, "", "", codeWrap},
		"ENTRYPOINT emptied":                {`"entryPoint": [""], "command": ["serve"]`, await, "serve", ""},

		"unknown, wrapped earlier":      {old + `, "command": ["start"]` + earlier, "", "start", codeWrap},
		"path, wrapped earlier":         {old + `, "command": ["/app"]` + earlier, await, "/app", codeEntryPoint},
		"wrapped earlier, not any more": {fmt.Sprintf(wrapped, `, "/app"`) + `, ` + no + earlier, "/app", "", ""},
		"wrapped by hand":               {old + `, "command": ["start"]`, await, "start", ""},
		"wrapped by hand, then admitted": {
			quit + `, "command": ["start"]` + earlier, await + " -stop-signal QUIT", "start", "",
		},
		"wrapped by hand, without a program": {quit, "", "", codeWrap},
		"wrapped by hand, not to be wrapped": {quit + `, "command": ["start"], ` + no, "", "start", ""},
		"command wrapped by hand, label true": {
			`"command": ["consul-ecs", "app-entrypoint", "/app"], ` + yes, "", "consul-ecs app-entrypoint /app", "",
		},

		"init":                  {`"entryPoint": ["/init"], "command": ["serve"]`, "/init", "serve", codeWrap},
		"init, wrapped earlier": {fmt.Sprintf(wrapped, `, "/init"`) + earlier, "/init", "", codeWrap},
		"init, to be wrapped":   {`"entryPoint": ["/sbin/init"], ` + yes, "/sbin/init", "", codeWrap},
		"init as the command":   {`"command": ["/init"]`, "", "/init", codeWrap},
		"init behind a script": {
			`"entryPoint": ["/entrypoint.sh"], "command": ["/init"]`, "/entrypoint.sh", "/init", codeWrap,
		},
		"init that is an argument": {
			`"entryPoint": ["/app"], "command": ["/init"], ` + yes, await + " /app", "/init", "",
		},
		"init, left as it is":       {`"entryPoint": ["/init"], ` + no, "/init", "", ""},
		"init of another directory": {`"entryPoint": ["/app/init"]`, await + " /app/init", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mesh := parseMesh(t, []byte(plainMesh))
			r := admit(t, definition("", c.app), mesh)
			app := r.After.Definition.ContainerDefinitions[0]
			if got := strings.Join(app.EntryPoint, " "); got != c.entryPoint {
				t.Errorf("entryPoint %q, want %q", got, c.entryPoint)
			}
			if got := strings.Join(app.Command, " "); got != c.command {
				t.Errorf("command %q, want %q", got, c.command)
			}
			if got := strings.Join(codesOf(r), " "); got != c.codes {
				t.Errorf("findings %v, want %q", r.Findings, c.codes)
			}
			edge := "sidecar-proxy HEALTHY"
			if wrapperWords(slices.Concat(app.EntryPoint, app.Command)) > 0 {
				edge = "consul-ecs-mesh-init SUCCESS"
			}
			if got := strings.Join(dependencies(r, "app"), ", "); got != edge {
				t.Errorf("it depends on %s, want %s", got, edge)
			}
			if again := admit(t, r.After.Bytes(), mesh); string(again.After.Bytes()) != string(r.After.Bytes()) {
				t.Errorf("the second admission changes the first:\n%s", taskdef.Diff(r.After, again.After))
			}
		})
	}
}

func TestProgramsThatMustBeProcess1(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"/init":                                 "/init",
		"//init":                                "//init",
		"/usr/sbin/init 3":                      "/usr/sbin/init",
		"init":                                  "init",
		"/lib/systemd/systemd --system":         "/lib/systemd/systemd",
		"/package/admin/s6-overlay/libexec/run": "/package/admin/s6-overlay/libexec/run",
		"/package/admin/s6-overlay-3.1.6.2/x":   "/package/admin/s6-overlay-3.1.6.2/x",
		"/sbin/runit-init":                      "/sbin/runit-init",
		"/sbin/openrc-init":                     "/sbin/openrc-init",
		"busybox init":                          "busybox init",
		"busybox|sh|-c|exec /sbin/init":         "/sbin/init",
		"env A=1 /init":                         "/init",
		"sh|-c|exec /init":                      "/init",
		"/bin/bash|-lc|setup; exec /init":       "/init",
		"sh|-c|setup && /init":                  "/init",
		"sh|-c|exec \"$@\"|-|/init":             "/init",
		"sh /init":                              "/init",
		"sh|-ec|terraform init":                 "",
		"git init":                              "",
		"/opt/init":                             "",
		"/sbin/tini -- /app":                    "",
		"dumb-init /app":                        "",
		"sh":                                    "",
		"":                                      "",
	} {
		separator := " "
		if strings.Contains(line, "|") {
			separator = "|"
		}
		if got, _ := findInit(strings.Split(line, separator)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestScriptThatRunsInit(t *testing.T) {
	t.Parallel()
	supervised := taskdef.ImageConfig{Entrypoint: []string{"/start"}, Volumes: []string{"/data", "/var/run/s6/"}}
	for name, c := range map[string]struct {
		line, image string
		config      taskdef.ImageConfig
		want        bool
	}{
		"Datadog": {
			"/bin/entrypoint.sh", "public.ecr.aws/datadog/agent:7", taskdef.ImageConfig{}, true,
		},
		"Datadog of a mirror": {
			"/bin/entrypoint.sh", "registry.example:5000/mirror/datadog-agent@sha256:0", taskdef.ImageConfig{}, true,
		},
		"Datadog without its supervisor": {"agent run", "gcr.io/datadoghq/agent", taskdef.ImageConfig{}, false},
		"script of another image":        {"/bin/entrypoint.sh", "acme/agent", taskdef.ImageConfig{}, false},
		"volume of s6":                   {"/start web", "acme/web", supervised, true},
		"another program of the image":   {"/app", "acme/web", supervised, false},
		"no program":                     {"", "datadog/agent", taskdef.ImageConfig{}, false},
	} {
		if got := runsInit(strings.Fields(c.line), c.image, c.config); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	doc := strings.Replace(string(definition("", `"entryPoint": ["/bin/entrypoint.sh"]`)),
		"example/app:1", "datadog/agent:7", 1)
	r := admit(t, []byte(doc), parseMesh(t, []byte(plainMesh)))
	if got := r.After.Definition.ContainerDefinitions[0].EntryPoint; !slices.Equal(got, []string{"/bin/entrypoint.sh"}) {
		t.Errorf("entryPoint %q", got)
	}
}

// A tag cannot say what the programs of all containers are.
func TestChoiceIsALabelOfAContainer(t *testing.T) {
	t.Parallel()
	r := admit(t,
		definition(`"tags": [{"key": "consul.hashicorp.com/wrap", "value": "true"}],`, `"command": ["serve"]`),
		parseMesh(t, []byte(plainMesh)))
	if got := codesOf(r); !slices.Equal(got, []string{codeWrap, codeAnnValue}) {
		t.Errorf("findings %v", r.Findings)
	}
	r = admit(t, definition("", `"command": ["serve"], "dockerLabels": {"consul.hashicorp.com/wrap": "yes"}`),
		parseMesh(t, []byte(plainMesh)))
	if got := codesOf(r); !slices.Equal(got, []string{codeWrap, codeAnnValue}) {
		t.Errorf("findings %v", r.Findings)
	}
}

// The image of the receiver is that of consul-ecs, whose ENTRYPOINT would be lost. An
// application waits for the receiver, which waits for nothing.
func TestTokenReceiverOfAnImageStartsAtOnce(t *testing.T) {
	t.Parallel()
	const app = `"entryPoint": ["/app"], "dependsOn": [{"containerName": "token-receive", "condition": "START"}]`
	const receiver = `}, {"name": "token-receive", "image": "your/consul-ecs", "essential": false, "command": ["token-receive", "-stay"]`
	r := admit(t, definition("", app+receiver), parseMesh(t, []byte(plainMesh)))
	c := r.After.Definition.Container("token-receive")
	const want = "[] [] [token-receive -stay] []"
	if got := fmt.Sprint(r.Findings, c.EntryPoint, c.Command, c.DependsOn); got != want {
		t.Errorf("findings, entryPoint, command and dependsOn %s, want %s", got, want)
	}
	if got := len(r.After.Definition.ContainerDefinitions[0].EntryPoint); got != 5 {
		t.Errorf("the application has %d words of entryPoint, want it wrapped", got)
	}
}

func TestCommandOfConsulECSIsLeftToTheEntrypointOfItsImage(t *testing.T) {
	t.Parallel()
	flags := func(command string) *flag.FlagSet {
		if command != "token-broker" {
			return nil
		}
		return flag.NewFlagSet(command, flag.ContinueOnError)
	}
	r, err := Admit(definition("", `"command": ["token-broker", "-listen", ":8080"]`), Options{Mesh: parseMesh(t, []byte(plainMesh)), Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	c := r.After.Definition.ContainerDefinitions[0]
	if got := codesOf(r); len(c.EntryPoint) > 0 || !slices.Equal(got, []string{codeWrap}) {
		t.Errorf("entryPoint %q, findings %v", c.EntryPoint, r.Findings)
	}
	if want := []taskdef.Dependency{{ContainerName: "sidecar-proxy", Condition: "HEALTHY"}}; !slices.Equal(c.DependsOn, want) {
		t.Errorf("dependsOn %v, want %v", c.DependsOn, want)
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

// The mount was for app-entrypoint. A container that names a file of the volume keeps it.
func TestApplicationThatIsNotWrappedAnyMoreLosesTheMountOfTheWrapper(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(plainMesh))
	const left = `"consul.hashicorp.com/wrap": "false"`
	for name, c := range map[string]struct{ app, mounts string }{
		"nothing reads it": {plainApp, ""},
		"a file is read":   {plainApp + `, "environment": [{"name": "CA", "value": "/consul/ca.pem"}]`, "consul_data"},
		"another mount": {
			plainApp + `, "mountPoints": [{"sourceVolume": "data", "containerPath": "/data"}]`, "data",
		},
		"the user's mount": {
			plainApp + `, "mountPoints": [{"sourceVolume": "consul_data", "containerPath": "/consul"}]`, "consul_data",
		},
	} {
		doc := definition(`"volumes": [{"name": "data"}],`, c.app+`, "dockerLabels": {"team": "shop"}`)
		admitted := string(admit(t, doc, mesh).After.Bytes())
		r := admit(t, []byte(strings.Replace(admitted, `"team": "shop"`, left, 1)), mesh)
		app := r.After.Definition.ContainerDefinitions[0]
		var mounts []string
		for _, m := range app.MountPoints {
			mounts = append(mounts, m.SourceVolume)
		}
		if got := strings.Join(mounts, " "); got != c.mounts {
			t.Errorf("%s: mounts %q, want %q", name, got, c.mounts)
		}
		if got := strings.Join(app.EntryPoint, " "); got != "/app" {
			t.Errorf("%s: entryPoint %q, want /app", name, got)
		}
	}
}
