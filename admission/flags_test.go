package admission

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// wrapperFlagSet returns some flags of app-entrypoint.
func wrapperFlagSet(command string) *flag.FlagSet {
	if command != wrapper {
		return nil
	}
	fs := flag.NewFlagSet(command, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Duration("shutdown-delay", 0, "")
	fs.Duration("stop-timeout", time.Second, "")
	fs.String("await-proxy", "", "")
	fs.String("dir", "", "")
	return fs
}

func TestFlagThatACommandRefusesIsFound(t *testing.T) {
	t.Parallel()
	const badDelay = `invalid value "x" for flag -shutdown-delay: parse error`
	for name, c := range map[string]struct {
		app, path, message string
	}{
		"accepted": {`"EntryPoint": ["consul-ecs", "app-entrypoint", "-shutdown-delay=5s", "/app", "-x"]`, "", ""},
		"wrong value": {`"EntryPoint": ["consul-ecs", "app-entrypoint", "-shutdown-delay", "x", "/app"]`,
			"EntryPoint[5]", badDelay},
		"joined": {`"EntryPoint": ["consul-ecs", "app-entrypoint", "-shutdown-delay=x", "--", "/app"]`, "EntryPoint[4]",
			badDelay},
		"unknown flag": {
			`"EntryPoint": ["consul-ecs", "app-entrypoint", "-delay", "5s", "/app"]`, "EntryPoint[4]",
			"flag provided but not defined: -delay",
		},
		"no value": {
			`"EntryPoint": ["consul-ecs", "app-entrypoint", "-stop-timeout=9s", "-shutdown-delay"], ` +
				`"DockerLabels": {"consul.hashicorp.com/depends": "false"}`,
			"EntryPoint[3]", "flag needs an argument: -shutdown-delay",
		},
		"in the command": {`"Command": ["/consul/consul-ecs", "app-entrypoint", "-shutdown-delay", "x", "/app"]`,
			"Command[3]", badDelay},
		"before computed": {`"EntryPoint": ["consul-ecs", "app-entrypoint", "-shutdown-delay", "x", {"Ref": "App"}]`,
			"EntryPoint[5]", badDelay},
		"computed value": {`"EntryPoint": ["consul-ecs", "app-entrypoint", "-shutdown-delay", {"Ref": ` +
			`"Delay"}, "/app"]`, "", ""},
		"behind computed": {`"EntryPoint": ["consul-ecs", "app-entrypoint", {"Ref": "Flag"}, ` +
			`"-shutdown-delay=x", "/app"]`, "", ""},
		"computed command": {`"EntryPoint": ["consul-ecs", "app-entrypoint", "-shutdown-delay"], "Command": ` +
			`{"Ref": "Line"}`, "", ""},
		"computed line":   {`"EntryPoint": {"Ref": "Line"}, "Command": ["consul-ecs", "app-entrypoint", "-x"]`, "", ""},
		"another command": {`"EntryPoint": ["consul-ecs", "other", "-x"]`, "", ""},
		"another program": {`"EntryPoint": ["/app", "app-entrypoint", "-x"]`, "", ""},
		"help": {
			`"EntryPoint": ["consul-ecs", "app-entrypoint", "-h", "x", "/app"]`, "EntryPoint[4]",
			"it prints its help and exits",
		},
		"program and flags": {`"EntryPoint": ["consul-ecs"], "Command": ["app-entrypoint", "-x"]`, "Command[1]",
			"flag provided but not defined: -x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := []byte(`{"NetworkMode": "awsvpc", "ContainerDefinitions": [{"Name": "app", "Image": "app", ` +
				c.app + `}]}`)
			r, err := Admit(doc, Options{Mesh: parseMesh(t, []byte(plainMesh)), Flags: wrapperFlagSet})
			if err != nil {
				t.Fatal(err)
			}
			var want, got []Finding
			if c.path != "" {
				want = []Finding{{
					Code: codeFlag, Severity: "error", Path: "$.ContainerDefinitions[0]." + c.path,
					Message: "container app would not start: app-entrypoint: " + c.message,
					Fix:     "correct the flag: consul-ecs app-entrypoint --help lists all",
				}}
			}
			for _, f := range r.Findings {
				if f.Code == codeFlag {
					got = append(got, f)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("findings %v, want %v", got, want)
			}
		})
	}
}

func TestOnlyPlainDefinitionsAreRegistered(t *testing.T) {
	t.Parallel()
	const definition = `{"Type": "AWS::ECS::TaskDefinition", "Properties": {"ContainerDefinitions": [{"Name": "app", ` +
		`"Image": "app"}]}}`
	_, err := Admit([]byte(`{"Resources": {"A": `+definition+`, "B": `+definition+`}}`), Options{Register: true})
	if err == nil || !strings.Contains(err.Error(), "only a task definition of the format ecs can be registered") {
		t.Errorf("%v, want the format and no request for a resource", err)
	}
}
