package admission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// corpus has the mesh file of each definition of testdata/plain.
var corpus = map[string]string{
	"api-gateway":            "direct",
	"appmesh":                "direct",
	"arm64":                  "direct",
	"arm64-ec2":              "direct",
	"batch":                  "off",
	"batch-agent":            "agent",
	"by-hand":                "agent",
	"cdk":                    "direct",
	"cfn":                    "dataplane",
	"cfn-conditions.yaml":    "agent",
	"cfn-properties":         "direct",
	"clashing-ports":         "direct",
	"copilot.yaml":           "direct",
	"delayed":                "agent",
	"depends-exempt":         "direct",
	"described":              "direct",
	"docker-volume":          "direct",
	"ebs":                    "direct",
	"ec2-bridge":             "direct",
	"ec2-host":               "direct",
	"ec2-web":                "transparent",
	"efs":                    "dataplane",
	"enterprise":             "dataplane",
	"environment-files":      "direct",
	"ephemeral-storage":      "direct",
	"expose":                 "direct",
	"fargate-web":            "direct",
	"firelens":               "dataplane",
	"firelens-s3":            "dataplane",
	"fluentd":                "direct",
	"gateway":                "agent",
	"gpu":                    "direct",
	"hardened":               "direct",
	"long-stop":              "direct",
	"mesh-gateway-dataplane": "dataplane",
	"migrations":             "direct",
	"native":                 "direct",
	"native-and-plain":       "direct",
	"no-network-mode":        "direct",
	"not-injected":           "direct",
	"own-proxy":              "direct",
	"restart-policy":         "direct",
	"seven-containers":       "direct",
	"sidecars":               "direct",
	"tags":                   "direct",
	"ten-containers":         "direct",
	"terminating-gateway":    "dataplane",
	"terraform":              "off",
	"terraform-many":         "off",
	"too-small":              "direct",
	"upstreams":              "dataplane",
	"waits-for-optional":     "direct",
	"windows":                "direct",
	"worker":                 "direct",
	"wrong-architecture":     "direct",
}

// fileName returns that of a definition of the corpus: JSON, unless it has another extension.
func fileName(name string) string {
	if filepath.Ext(name) == "" {
		name += ".json"
	}
	return name
}

func readTestdata(t testing.TB, dir, name string) []byte {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("testdata", dir, fileName(name)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// meshFile returns a mesh file of testdata/mesh, nil for no name.
func meshFile(t testing.TB, name string) *Mesh {
	t.Helper()
	if name == "" {
		return nil
	}
	return parseMesh(t, readTestdata(t, "mesh", name))
}

// testImage is the image of consul-ecs in mesh files of tests that name none.
const testImage = "consul-ecs:1.0.0-beta.1"

func parseMesh(t testing.TB, doc []byte) *Mesh {
	t.Helper()
	mesh, err := ParseMesh(doc)
	if err != nil {
		t.Fatal(err)
	}
	mesh.settings.Images.ConsulECS = cmp.Or(mesh.settings.Images.ConsulECS, testImage)
	return mesh
}

// admit admits a definition. The findings lack the ordinary choices, which most short definitions of
// tests leave to admission.
func admit(t testing.TB, doc []byte, mesh *Mesh) *Result {
	t.Helper()
	r := admitAll(t, doc, mesh)
	r.Findings = slices.DeleteFunc(r.Findings, isOrdinary)
	return r
}

// admitAll admits a document, and returns all findings.
func admitAll(t testing.TB, doc []byte, mesh *Mesh) *Result {
	t.Helper()
	r, err := Admit(doc, Options{Mesh: mesh})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// isOrdinary reports whether a finding is about a choice that needs no action.
func isOrdinary(f Finding) bool {
	return slices.Contains([]string{codeDefault, codeFirst, codeHealthFrom, codeLaunch, codeLogs, codePortChosen,
		codePortPlain, codeServiceFrom}, f.Code)
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	for name, mesh := range corpus {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admitAll(t, readTestdata(t, "plain", name), meshFile(t, mesh))
			testkit.Golden(t, filepath.Join("admitted", fileName(name)), r.After.Bytes())
			var findings strings.Builder
			for _, f := range r.Findings {
				findings.WriteString(f.String() + "\n")
			}
			testkit.Golden(t, filepath.Join("findings", name+".txt"), []byte(findings.String()))
		})
	}
}

// sampled returns the corpus, in the short lane every fourth definition of it: the race detector makes an
// admission several times as long.
func sampled() map[string]string {
	if !testing.Short() {
		return corpus
	}
	sample := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(corpus)) {
		if i%4 == 0 {
			sample[name] = corpus[name]
		}
	}
	return sample
}

func TestAdmittedDefinitionIsNotChangedAgain(t *testing.T) {
	t.Parallel()
	for name, own := range sampled() {
		other := "agent"
		if own == other {
			other = "transparent"
		}
		for _, mesh := range []string{own, other} {
			first := admit(t, readTestdata(t, "plain", name), meshFile(t, mesh)).After.Bytes()
			second := admit(t, first, meshFile(t, mesh)).After.Bytes()
			if !bytes.Equal(first, second) {
				t.Errorf("%s with %s: the second admission changes the first:\n%s\n%s", name, mesh, first, second)
			}
		}
	}
}

// DescribeTaskDefinition writes defaults out, leaves out what is empty, and has tags and
// environment variables in any order.
func TestRegisteredDefinitionIsCurrent(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, mesh := range corpus {
		first := admit(t, readTestdata(t, "plain", name), meshFile(t, mesh))
		if injected := first.Injected && !first.Rejected(false); !injected || first.Format != formatECS {
			continue
		}
		answer := describe(t, first)
		second := admit(t, answer, meshFile(t, mesh))
		if diff := taskdef.Diff(second.Plain, second.After); diff != "" {
			t.Errorf("%s is changed:\n%s", name, diff)
		}
		other := admit(t, bytes.ReplaceAll(answer, []byte("example/"), []byte("other/")), meshFile(t, mesh))
		sealed := bytes.Contains(answer, []byte("/admission")) && bytes.Contains(answer, []byte("example/"))
		if sealed && !strings.Contains(taskdef.Diff(other.Plain, other.After), taskdef.SealTag) {
			t.Errorf("%s: another image has the same hash", name)
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("%d definitions are checked, want 30", checked)
	}
}

// describe returns what DescribeTaskDefinition may answer after the registration of a result.
func describe(t *testing.T, r *Result) []byte {
	t.Helper()
	registered, err := taskdef.Parse(r.After.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	definition := *registered.Definition
	definition.Revision, definition.Tags = 1, slices.Clone(definition.Tags)
	slices.Reverse(definition.Tags)
	tags := definition.Tags
	definition.Tags = nil
	for i := range definition.ContainerDefinitions {
		slices.Reverse(definition.ContainerDefinitions[i].Environment)
		slices.Reverse(definition.ContainerDefinitions[i].Secrets)
	}
	answer, err := json.Marshal(map[string]any{"taskDefinition": definition, "tags": tags})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// What the first generation put into a definition is not left in the second one.
func TestAnotherMeshFileChangesOwnedFieldsOnly(t *testing.T) {
	t.Parallel()
	for name := range sampled() {
		plain := readTestdata(t, "plain", name)
		direct := admit(t, plain, meshFile(t, "agent")).After.Bytes()
		again := admit(t, direct, meshFile(t, "direct")).After
		want := admit(t, plain, meshFile(t, "direct")).After
		for i, c := range again.Definition.ContainerDefinitions {
			if workload.IsMeshContainer(c.Name) {
				continue
			}
			w := want.Definition.ContainerDefinitions[i]
			testkit.Equal(t, name+": container", fmt.Sprintf("%s %q %v", c.Name, c.EntryPoint, c.DependsOn),
				fmt.Sprintf("%s %q %v", w.Name, w.EntryPoint, w.DependsOn))
		}
		if a, b := len(again.Definition.ContainerDefinitions), len(want.Definition.ContainerDefinitions); a != b {
			t.Errorf("%s: %d containers, want %d", name, a, b)
		}
	}
}

// What is admitted can be registered.
func TestAdmittedDefinitionsAreRegistered(t *testing.T) {
	t.Parallel()
	registered := 0
	for name, mesh := range corpus {
		r := admit(t, readTestdata(t, "plain", name), meshFile(t, mesh))
		if r.Rejected(false) || r.Format != formatECS {
			continue
		}
		if again, err := Admit(r.After.Bytes(), Options{Mesh: meshFile(t, mesh), Register: true}); err != nil ||
			again.Rejected(false) {
			t.Errorf("%s: error %v, findings %v", name, err, again.Findings)
		}
		registered++
	}
	if registered < 30 {
		t.Errorf("%d definitions are registered, want 30", registered)
	}
}

func TestDefinitionWithoutInjectionIsReturnedUnchanged(t *testing.T) {
	t.Parallel()
	plain := readTestdata(t, "plain", "not-injected")
	if r := admit(t, plain, meshFile(t, "direct")); r.Injected || !bytes.Equal(r.After.Bytes(), plain) {
		t.Errorf("injected %v, output %s", r.Injected, r.After.Bytes())
	}
	without := readTestdata(t, "plain", "batch")
	if r := admit(t, without, nil); r.Injected || !bytes.Equal(r.After.Bytes(), without) {
		t.Errorf("without mesh file and annotation: injected %v", r.Injected)
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	t.Parallel()
	r := admit(t, readTestdata(t, "plain", "fargate-web"), meshFile(t, "direct"))
	for _, want := range []string{`"x-note": "kept"`, `"cost": 12.50`} {
		if !strings.Contains(string(r.After.Bytes()), want) {
			t.Errorf("the output has no %s", want)
		}
	}
}

func TestLabelsWinOverTagsAndTagsOverTheMeshFile(t *testing.T) {
	t.Parallel()
	const tag = `"tags": [{"key": "consul.hashicorp.com/service-name", "value": "of-tag"}],`
	const label = `, "dockerLabels": {"consul.hashicorp.com/service-name": "of-label"}`
	mesh := parseMesh(t, []byte(`{"consulServers": {"hosts": "10.0.0.4"}, "service": {"name": "of-file", "port": 1}}`))
	for _, c := range []struct{ tags, labels, want string }{
		{"", "", "of-file"},
		{tag, "", "of-tag"},
		{tag, label, "of-label"},
	} {
		r := admit(t, definition(c.tags, `"entryPoint": ["/app"]`+c.labels), mesh)
		env := r.After.Definition.Container("consul-ecs-mesh-init").Environment[0].Value
		if !strings.Contains(env, `"name":"`+c.want+`"`) {
			t.Errorf("configuration %s, want the name %s", env, c.want)
		}
	}
}

// definition returns a valid task on Fargate with more members of the task and of its container app.
func definition(task, app string) []byte {
	return []byte(`{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "512", "memory": "1024",
		"executionRoleArn": "arn:aws:iam::123456789012:role/execution", ` + task + `
		"containerDefinitions": [{"name": "app", "image": "example/app:1", "portMappings": [{"containerPort": 8080}], ` + app + `}]}`)
}

func TestValidatorCannotChangeTheDefinition(t *testing.T) {
	t.Parallel()
	doc, err := taskdef.Parse(definition("", `"command": ["x"]`))
	if err != nil {
		t.Fatal(err)
	}
	before := string(doc.Bytes())
	p := pipeline{validators: []step{{"writes", func(t *task) { t.doc.Task.Delete("family") }}}}
	if err := p.run(newTask(doc, formatECS, Options{})); err != nil || string(doc.Bytes()) != before {
		t.Errorf("error %v, definition %s", err, doc.Bytes())
	}
}

// The rules judge what they know of a definition with values of a wrong type.
func TestAdmitReportsAllOfADefinitionWithWrongTypes(t *testing.T) {
	t.Parallel()
	const doc = `{"requiresCompatibilities": ["FARGATE"], "cpu": 256, "memory": "5x", "containerDefinitions": [
		{"name": "app", "essential": "yes", "dockerLabels": {"consul.hashicorp.com/service-port": "0", "consul.hashicorp.com/ttl": 5}}]}`
	r, err := Admit([]byte(doc), Options{Mesh: meshFile(t, "direct")})
	if _, invalid := errors.AsType[*taskdef.InvalidError](err); !invalid {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Code+" "+f.Path)
	}
	// The mesh sets the network mode, so that its absence is no error on Fargate.
	want := []string{
		"type $.containerDefinitions[0].dockerLabels[\"consul.hashicorp.com/ttl\"]",
		"type $.containerDefinitions[0].essential",
		"container-image-blank $.containerDefinitions[0].image",
		"type $.cpu",
		"family-blank $.family",
		"task-memory $.memory",
		"ADM-NET-DEFAULT $.networkMode",
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
	if r.Injected || string(r.After.Bytes()) != doc {
		t.Errorf("injected %v, document %s, want it as it was", r.Injected, r.After.Bytes())
	}
}
