package subcommand

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// callAdmit runs "consul-ecs admit ..." with that standard input.
func callAdmit(stdin string, words ...string) (code int, stdout, stderr string) {
	app := cli.App{Name: "consul-ecs", Commands: map[string]cli.Command{"admit": admitCommand()}}
	var out, errs bytes.Buffer
	getenv := func(name string) string { // Consul's variables do not count
		if strings.HasPrefix(name, "AWS_") {
			return os.Getenv(name)
		}
		return ""
	}
	code = cli.Main(app, append([]string{"admit"}, words...), getenv, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// admitMesh writes a mesh file.
func admitMesh(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mesh.json")
	if err := os.WriteFile(path,
		[]byte(`{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct"}, "admission": {"images": {"consulECS": "example/consul-ecs:1"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// plainTask returns a task definition with more members of its container.
func plainTask(more string) string {
	return `{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "512", "memory": "1024",
		"containerDefinitions": [{"name": "app", "image": "example/app:1", "portMappings": [{"containerPort": 8080}]` + more + `}]}`
}

// withoutChoices returns findings without those that every short definition has: of its name and its logs.
func withoutChoices(findings string) string {
	rest := ""
	for line := range strings.Lines(findings) {
		if !strings.HasPrefix(line, "info ADM-DEFAULT ") && !strings.HasPrefix(line, "info ADM-LOGS ") &&
			!strings.HasPrefix(line, "info ADM-SVC-FROM ") {
			rest += line
		}
	}
	return rest
}

const withEntryPoint = `, "entryPoint": ["/app"]`

func TestAdmitExitCodes(t *testing.T) {
	t.Parallel()
	mesh := admitMesh(t)
	for name, c := range map[string]struct {
		stdin  string
		words  []string
		code   int
		stderr string
	}{
		"admitted": {plainTask(withEntryPoint), []string{"-config", mesh, "-"}, 0, ""},
		"warning": {plainTask(""), []string{"-config", mesh, "-"}, 0,
			"warning ADM-WRAP $.containerDefinitions[0]: "},
		"warning, strict": {plainTask(""), []string{"-config", mesh, "-strict", "-"}, 2,
			"warning ADM-WRAP $.containerDefinitions[0]: "},
		"rejected": {plainTask(withEntryPoint + `, "user": "5995"`), []string{"-config", mesh, "-"}, 2,
			"error ADM-USER $.containerDefinitions[0].user: container app runs as user 5995, which is that of the " +
				"proxy (take another user)\n"},
		"wrong flag":          {plainTask(`, "entryPoint": ["consul-ecs", "app-entrypoint", "-shutdown-delay", "x", "/app"]`), []string{"-config", mesh, "-"}, 2, `error ADM-FLAG $.containerDefinitions[0].entryPoint[5]: container app would not start: app-entrypoint: invalid value "x" for flag -shutdown-delay: want auto, or a time of 0 or more such as 10s (`},
		"wrong flag, no mesh": {plainTask(`, "entryPoint": ["/consul/consul-ecs"], "command": ["net-dial", "-x", "web:80"]`), []string{"-"}, 2, "error ADM-FLAG $.containerDefinitions[0].command[1]: container app would not start: net-dial: flag provided but not defined: -x ("},
		"no JSON":             {"{", []string{"-"}, 1, "line 1, column 2: unexpected end of JSON input"},
		"wrong type":          {`{"family": 1}`, []string{"-"}, 1, "$.family: must be a string, but is the number 1"},
		"no file":             {"", nil, 1, "want one FILE, or - for standard input"},
		"missing file":        {"", []string{"/nonexistent"}, 1, "read the task definition: "},
		"endless file": {"", []string{"/dev/zero"}, 1,
			"read the task definition: /dev/zero is larger than 4096 KiB: is it the right file?"},
		"large input": {strings.Repeat(" ", maxDocument+1), []string{"-"}, 1,
			"read the task definition: standard input is larger than 4096 KiB: is it the right file?"},
		"directory":         {"", []string{"/"}, 1, "read the task definition: / is a directory: want a file"},
		"several resources": {`{"Resources": {"A": {"Type": "AWS::ECS::TaskDefinition"}, "B": {"Type": "AWS::ECS::TaskDefinition"}}}`, []string{"-"}, 1, "choose a resource of the template that is a task definition: A, B: name one by -resource"},
		"unknown format": {"{}", []string{"-format", "yaml", "-"}, 1,
			`format "yaml": want ecs, cfn or containers`},
		"resource of no cfn": {"{}", []string{"-resource", "Web", "-"}, 1,
			"a resource is of a template, but the document is of the format ecs"},
		"unknown output": {"{}", []string{"-output", "html", "-"}, 1,
			`-output "html": want definition, report or sarif`},
		"-in": {plainTask(withEntryPoint), []string{"-in", "-", "-config", mesh, "-output",
			"definition"}, 0, ""},
		"-in and FILE": {plainTask(withEntryPoint), []string{"-in", "-", "-"}, 1,
			"want one FILE, or - for standard input"},
		"unknown diff":        {"{}", []string{"-diff=html", "-"}, 1, "want unified or patch"},
		"report and diff":     {"{}", []string{"-output", "report", "-diff", "-"}, 1, "take one of them"},
		"mesh file not found": {"{}", []string{"-config", "/nonexistent", "-"}, 1, "read the mesh file: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := callAdmit(c.stdin, c.words...)
			stderr = withoutChoices(stderr)
			if code != c.code || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
				t.Errorf("exit %d, want %d, stderr %q, want %q", code, c.code, stderr, c.stderr)
			}
			if (stdout == "") != (c.code != 0) {
				t.Errorf("exit %d with the output %q", code, stdout)
			}
		})
	}
}

func TestAdmitRefusesUnknownSettingsOfTheMeshFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mesh.json")
	if err := os.WriteFile(path, []byte(`{"admission": {"image": {}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := callAdmit(plainTask(""), "-config", path, "-")
	if want := `the member admission of the mesh file: unknown field "image"; did you mean "images"?`; code != 1 ||
		!strings.Contains(stderr, want) {
		t.Errorf("exit %d, stderr %q, want %q", code, stderr, want)
	}
}

func TestAdmitPrintsADiff(t *testing.T) {
	t.Parallel()
	mesh := admitMesh(t)
	_, unified, _ := callAdmit(plainTask(withEntryPoint), "-config", mesh, "-diff", "-")
	if want := "+        \"-await-proxy\",\n"; !strings.Contains(unified, want) {
		t.Errorf("diff %s, want %s", unified, want)
	}
	_, patch, _ := callAdmit(plainTask(withEntryPoint), "-config", mesh, "-diff=patch", "-")
	var operations []struct{ Op, Path string }
	if err := json.Unmarshal([]byte(patch), &operations); err != nil || len(operations) == 0 {
		t.Errorf("patch %s: %v", patch, err)
	}
	_, admitted, _ := callAdmit(plainTask(withEntryPoint), "-config", mesh, "-")
	if code, again, _ := callAdmit(admitted, "-config", mesh, "-diff", "-"); code != 0 || again != "" {
		t.Errorf("exit %d, the diff of an admitted definition is %s", code, again)
	}
}

func TestAdmitReportsAsJSON(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := callAdmit(`[{"name": "app", "image": "app", "command": ["/x"], "user": "5996"}]`, "-config",
		admitMesh(t), "-output", "report", "-")
	var report admitReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, f := range report.Findings {
		codes = append(codes, f.Code)
	}
	if got, want := strings.Join(codes, " "),
		"ADM-DEFAULT ADM-LAUNCH ADM-SVC-FROM ADM-VOLUME-TASK ADM-LOGS ADM-SVC-PORT ADM-ENTRYPOINT ADM-USER"; code != 2 || got != want || stderr != "" {
		t.Errorf("exit %d, codes %q, want %q, stderr %q", code, got, want, stderr)
	}
	if report.Admitted || !report.Injected || report.Format != "containers" ||
		strings.Join(report.Volumes, " ") != "consul_data" {
		t.Errorf("report %+v", report)
	}
}

// CI uploads what is printed for a document that is no task definition, too.
func TestAdmitReportsInvalidDocuments(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"{\n\"family\": \"web\",\n\"cpu\": 1024, \"containerDefinitions\": [{\"essential\": \"yes\"}]}": "ADM-NOT-INJECTED 1, type 3, container-image-blank 3, container-memory-missing 3, container-name-blank 3, type 3",
		`{"family": `: ``,
	} {
		code, stdout, stderr := callAdmit(doc, "-output", "sarif", "-")
		var log sarifLog
		if err := json.Unmarshal([]byte(stdout), &log); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
		var got []string
		for _, r := range log.Runs[0].Results {
			got = append(got, fmt.Sprintf("%s %d", r.RuleID, r.Locations[0].Physical.Region.StartLine))
		}
		failed := log.Runs[0].Invocations
		if code != 1 || strings.Join(got, ", ") != want || len(failed) != 1 ||
			!strings.Contains(stderr, failed[0].Notifications[0].Message.Text) {
			t.Errorf("%s: exit %d, results %q, want %q, invocations %v, stderr %s", doc, code, got, want, failed,
				stderr)
		}
		var report admitReport
		code, stdout, _ = callAdmit(doc, "-output", "report", "-")
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 1 || report.Admitted ||
			report.Error == "" || len(report.Findings) != len(got) {
			t.Errorf("%s: exit %d, report %s, error %v", doc, code, stdout, err)
		}
	}
}

func TestAdmitListsStepsAndCodes(t *testing.T) {
	t.Parallel()
	code, stdout, _ := callAdmit("", "-list")
	first, rest, _ := strings.Cut(stdout, "\n")
	if code != 0 || first != "canonicalize connect expose-check constraints | connect expose-check validate resources" {
		t.Errorf("exit %d, first line %q", code, first)
	}
	if want := "ADM-USER         error    container {container} runs as user {user}, which is that of {owner}\n"; !strings.Contains(rest, want) {
		t.Errorf("list %q, want %q", rest, want)
	}
}

// -update writes them.
func TestAdmittedDefinitionsOfTheExampleAreCurrent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Root(), "examples", "admit")
	for _, name := range []string{"web.json", "api.json"} {
		code, stdout, stderr := callAdmit("", "-config", filepath.Join(dir, "mesh.json"), filepath.Join(dir, name))
		if code != 0 {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		testkit.Golden(t, filepath.Join("..", "..", "examples", "admit", "admitted", name), []byte(stdout))
	}
}

// The members are those that SARIF 2.1.0 requires, and those that GitHub reads.
func TestAdmitReportsAsSARIF(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "web.json")
	if err := os.WriteFile(file,
		[]byte(plainTask(`, "command": ["/x"], "dockerLabels": {"consul.hashicorp.com/service-name": "web"},
		"user": "5996"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	mesh := filepath.Join(t.TempDir(), "mesh.json")
	if err := os.WriteFile(mesh,
		[]byte(`{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct"}, "admission": {
		"images": {"consulECS": "example/consul-ecs:1", "envoy": "example/envoy:1"},
		"logConfiguration": {"logDriver": "splunk", "options": {"splunk-token": "x", "splunk-url": "https://logs.example.com"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := callAdmit("", "-config", mesh, "-output", "sarif", "-strict", file)
	if code != 2 || stderr != "" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	_, version, _ := strings.Cut(stdout, `"version": "2.1.0",`)
	_, version, _ = strings.Cut(version, `"version": "`)
	version, _, _ = strings.Cut(version, `"`)
	want := `{
  "version": "2.1.0",
  "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
  "runs": [
    {
      "tool": {
        "driver": {
          "name": "consul-ecs admit",
          "version": "` + version + `",
          "rules": [
            {
              "id": "ADM-ENTRYPOINT",
              "shortDescription": {
                "text": "container {container} has a command and no entryPoint: the ENTRYPOINT of its image is not run any more"
              }
            },
            {
              "id": "ADM-USER",
              "shortDescription": {
                "text": "container {container} runs as user {user}, which is that of {owner}"
              }
            }
          ]
        }
      },
      "columnKind": "utf16CodeUnits",
      "results": [
        {
          "ruleId": "ADM-ENTRYPOINT",
          "ruleIndex": 0,
          "level": "error",
          "message": {
            "text": "container app has a command and no entryPoint: the ENTRYPOINT of its image is not run any more (admit it with -images, or write the image's ENTRYPOINT as entryPoint; if it has none, set the label consul.hashicorp.com/wrap to true; false leaves the container as it is)"
          },
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "` + file + `"
                },
                "region": {
                  "startLine": 2
                }
              },
              "logicalLocations": [
                {
                  "fullyQualifiedName": "$.containerDefinitions[0].command"
                }
              ]
            }
          ]
        },
        {
          "ruleId": "ADM-USER",
          "ruleIndex": 1,
          "level": "error",
          "message": {
            "text": "container app runs as user 5996, which is that of health-sync (take another user)"
          },
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "` + file + `"
                },
                "region": {
                  "startLine": 3
                }
              },
              "logicalLocations": [
                {
                  "fullyQualifiedName": "$.containerDefinitions[0].user"
                }
              ]
            }
          ]
        }
      ]
    }
  ]
}
`
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Errorf("SARIF (-want +got):\n%s", diff)
	}
}
