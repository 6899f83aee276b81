package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/config"
)

// ignoredBy returns what the containers of an admitted task do not wait for, by their names.
func ignoredBy(r *Result) map[string]string { return valuesOf(r, ignoreVariable) }

// valuesOf returns a variable of the containers of an admitted task, by their names.
func valuesOf(r *Result, variable string) map[string]string {
	found := map[string]string{}
	for _, c := range r.After.Definition.ContainerDefinitions {
		for _, v := range c.Environment {
			if v.Name == variable {
				found[c.Name] = v.Value
			}
		}
	}
	return found
}

func TestContainersOfTheMeshFileAreIgnored(t *testing.T) {
	t.Parallel()
	const router = `}, {"name": "router", "image": "router", "entryPoint": ["/r"], "essential": false, ` +
		`"dockerLabels": {"consul.hashicorp.com/depends": "false"}`
	mesh := parseMesh(t,
		[]byte(strings.TrimSuffix(plainMesh, "}")+`, "admission": {"ignoreContainers": ["audit", "datadog-*"]}}`))
	for app, want := range map[string]string{plainApp: "audit,datadog-*", plainApp + router: "router,audit,datadog-*"} {
		r := admit(t, definition("", app), mesh)
		all := map[string]string{"consul-ecs-mesh-init": want, "sidecar-proxy": want, "consul-ecs-health-sync": want}
		if d := cmp.Diff(all, ignoredBy(r)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if again := admit(t, r.After.Bytes(), mesh); string(again.After.Bytes()) != string(r.After.Bytes()) {
			t.Error("the second admission changes the first")
		}
	}
}

func TestContainersOfTheMeshLogJSON(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(strings.TrimSuffix(plainMesh, "}")+`, "logJSON": true}`))
	r := admit(t, definition("", plainApp), mesh)
	want := map[string]string{"consul-ecs-mesh-init": "true", "sidecar-proxy": "true", "consul-ecs-health-sync": "true"}
	if d := cmp.Diff(want, valuesOf(r, config.LogJSONEnvVar)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if again := admit(t, r.After.Bytes(), mesh); string(again.After.Bytes()) != string(r.After.Bytes()) {
		t.Error("the second admission changes the first")
	}
}

func TestMistakesInIgnoredContainersOfTheMeshFile(t *testing.T) {
	t.Parallel()
	const fix = ": want names of containers, or the beginning of one and a * at its end"
	for list, want := range map[string]string{
		`["a", "b-*"]`: "",
		`["*", "ok", "a*b", "", "a,b"]`: `the member admission of the mesh file: ignoreContainers: "*", ` +
			`"a*b", "", "a,b"` + fix,
		`"a"`: "the member admission of the mesh file: ignoreContainers: want a list of names",
		`[1]`: "the member admission of the mesh file: ignoreContainers: want a list of names",
	} {
		_, err := ParseMesh([]byte(`{"admission": {"ignoreContainers": ` + list + `}}`))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: error %q, want %q", list, got, want)
		}
	}
}

// Containers that AWS adds have such names.
func TestContainersNamedAsThoseOfAWSAreNoApplications(t *testing.T) {
	t.Parallel()
	const agent = `}, {"name": "aws-guardduty-agent-x1Y2z", "image": "agent", "entryPoint": ["/agent"], ` +
		`"portMappings": [{"containerPort": 1}], "healthCheck": {"command": ["CMD", "/agent"]}`
	r := admit(t, definition("", plainApp+agent), parseMesh(t, []byte(plainMesh)))
	c := r.After.Definition.Container("aws-guardduty-agent-x1Y2z")
	if d := cmp.Diff([]string{"/agent"}, c.EntryPoint); d != "" {
		t.Errorf("entryPoint -want +got:\n%s", d)
	}
	if len(c.DependsOn) > 0 {
		t.Errorf("dependsOn %+v", c.DependsOn)
	}
	var codes []string
	for _, f := range r.Findings {
		codes = append(codes, f.Code+" "+f.Path)
	}
	if d := cmp.Diff([]string{"ADM-NAME-AWS $.containerDefinitions[1].name"}, codes); d != "" {
		t.Errorf("findings -want +got:\n%s", d)
	}
}
