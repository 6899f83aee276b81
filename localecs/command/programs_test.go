package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// odd returns a scenario of one task with the given containers, whose image has a
// kid, a shell, and files that are no programs.
func odd(t *testing.T, consul, containers string) (dir string) {
	t.Helper()
	dir = given{
		"script": "#!/bin/nosuch\n",
		"text":   "hello\n",
		"server": "#!/bin/sh\necho no such option: -bind\nexit 3\n",
		"scenario.yaml": `name: odd
images:
  odd:
    programs: {/bin/kid: "${kid}", /bin/script: script, /bin/text: text}
    env: [GORACE=atexit_sleep_ms=0]
  consul:
    programs: {/bin/consul: "` + consul + `", /bin/sh: /bin/sh}
consul: {image: consul}
tasks: {odd: definition.json}
steps:
- start: [odd]
- await: {service: odd, passing: 1, within: 50s}
`,
		"definition.json": `{"family": "odd", "networkMode": "awsvpc", "memory": "512", "containerDefinitions": [` + containers + `]}`,
	}.write(t)
	for _, name := range []string{"script", "text", "server"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Programs that only the container's start can find wrong: the last line says what, where, and what there is.
func TestProgramsThatCannotRunAreNamed(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const (
		failed = "odd: FAILED: step 2: await 1 passing instances of odd within 50s: task odd stopped unexpectedly: "
		start  = failed + "TaskFailedToStart: CannotStartContainerError: "
		has    = `; image "odd" has /bin/kid, /bin/script, /bin/text`
	)
	run := func(command string) string {
		return fmt.Sprintf(`{"name": "a", "image": "odd", "entryPoint": [%q]}`, command)
	}
	w := newMachine(t)
	for name, tt := range map[string]struct {
		consul, containers string
		want               string // last line of standard output, or of standard error
	}{
		"path":        {"${kid}", run("/bin/none"), start + `exec: "/bin/none": stat /bin/none: no such file or directory` + has},
		"name":        {"${kid}", run("none"), start + `exec: "none": executable file not found in $PATH` + has},
		"interpreter": {"${kid}", run("script"), start + `exec: "script": the script's interpreter /bin/nosuch is not in the image: no such file or directory` + has},
		"no program":  {"${kid}", run("text"), start + `exec: "text": neither a program for this machine nor a script that begins with #!: exec format error`},
		"no command":  {"${kid}", `{"name": "a", "image": "odd"}`, start + `no command specified: neither the definition nor image "odd" has one`},
		"image":       {"${kid}", `{"name": "a", "image": "web:1", "command": ["x"]}`, failed + "TaskFailedToStart: CannotPullContainerError: pull access denied for web:1: not among the known images"},
		"port in use": {"${kid}", `{"name": "a", "image": "odd", "command": ["kid", "web", ":8080"]}, {"name": "b", "image": "odd", "command": ["kid", "web", ":8080"]}`,
			"exited with 1: listen tcp :8080: bind: address already in use"},
		"no Consul": {"text", run("kid"), `localecs run: start consul server: start container "consul-server": exec: "consul": neither a program for this machine nor a script that begins with #!: exec format error`},
		"another Consul": {"server", run("kid"), "localecs run: wait for consul server: exited: no such option: -bind (log: " +
			filepath.Join(w.dir, stateDir, "odd", "logs", "consul-server.log") + ")"},
	} {
		a := w.run(order{Args: []string{"run", "-dir", stateDir, "-var", "kid=" + self, odd(t, tt.consul, tt.containers)}})
		clean(t, name, a)
		code, said := 2, strings.Join(a.Lines, "\n")
		if strings.HasPrefix(tt.want, "localecs") {
			code, said = 3, strings.TrimSuffix(a.Stderr, "\n")
		}
		if len(a.Kept) > 0 || a.Code != code || !strings.HasSuffix(said, tt.want) {
			t.Errorf("%s: kept %q, want exit %d and %s\n%s", name, a.Kept, code, tt.want, a.story())
		}
	}
}
