package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// plainText is a definition without the mesh, in the ECS API's format.
const plainText = `{"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "512", "memory": "1024",
	"executionRoleArn": "arn:aws:iam::123456789012:role/execution",
	"containerDefinitions": [{"name": "app", "image": "app:1", "entryPoint": ["/app"], "portMappings": [{"containerPort": 80}]}]}`

// changedOf admits a document again after a change of its proxy, and returns the members that
// findings name.
func changedOf(t *testing.T, admitted []byte, mesh *Mesh, change func(proxy map[string]any)) []string {
	t.Helper()
	var doc any
	if err := json.Unmarshal(admitted, &doc); err != nil {
		t.Fatal(err)
	}
	containers, _ := doc.([]any)
	if definition, is := doc.(map[string]any); is {
		containers = definition["containerDefinitions"].([]any)
	}
	for _, c := range containers {
		if c := c.(map[string]any); c["name"] == "sidecar-proxy" {
			change(c)
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var members []string
	for _, f := range admit(t, text, mesh).Findings {
		if f.Code == codeChanged {
			member, _, _ := strings.Cut(f.Message, " ")
			members = append(members, member)
		}
	}
	return members
}

// Each member that the user sets on a container of the mesh is named when it is set back.
func TestChangesOfTheMeshsContainersAreNamed(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(plainMesh))
	admitted := admit(t, []byte(plainText), mesh).After.Bytes()
	for member, value := range map[string]string{
		"readonlyRootFilesystem": `false`, "user": `"0"`, "linuxParameters": `{"capabilities": {"drop": ["NET_RAW"]}}`,
		"essential":     `false`,
		"restartPolicy": `{"enabled": true}`, "environment": `[{"name": "A", "value": "1"}]`, "cpu": `64`,
		"memory": `200`, "memoryReservation": `100`,
		"logConfiguration": `{"logDriver": "awslogs"}`, "stopTimeout": `60`, "startTimeout": `60`,
		"healthCheck": `{"command": ["CMD", "x"]}`,
		"command":     `["envoy"]`, "image": `"envoy:2"`, "secrets": `[{"name": "a", "valueFrom": "b"}]`,
		"portMappings": `[{"containerPort": 7}]`,
		"mountPoints":  `[]`, "ulimits": `[]`, "workingDirectory": `"/"`,
		"privileged": `true`, "hostname": `"h"`,
	} {
		got := changedOf(t, admitted, mesh, func(proxy map[string]any) {
			var v any
			if err := json.Unmarshal([]byte(value), &v); err != nil {
				t.Fatal(err)
			}
			proxy[member] = v
		})
		if !slices.Equal(got, []string{member}) {
			t.Errorf("%s: findings name %q", member, got)
		}
	}
	if got := changedOf(t, admitted, mesh, func(proxy map[string]any) {
		delete(proxy, "readonlyRootFilesystem")
	}); !slices.Equal(got, []string{"readonlyRootFilesystem"}) {
		t.Errorf("a removed member: findings name %q", got)
	}
}

// A container without a seal is one of an earlier version: its defaults were others, and what it
// has besides was set by the user.
func TestSettingsOfAContainerWithoutASealAreNamed(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(plainMesh))
	admitted := admit(t, []byte(plainText), mesh).After.Bytes()
	earlier := func(proxy map[string]any) {
		delete(proxy["dockerLabels"].(map[string]any), annotationMade)
		proxy["command"] = []any{"envoy", "--log-level", "warning"}
		proxy["image"] = "envoy:1"
		delete(proxy, "readonlyRootFilesystem")
		delete(proxy, "linuxParameters")
	}
	if got := changedOf(t, admitted, mesh, earlier); got != nil {
		t.Errorf("findings name %q, want none", got)
	}
	got := changedOf(t, admitted, mesh, func(proxy map[string]any) {
		earlier(proxy)
		proxy["essential"] = false
		proxy["restartPolicy"] = map[string]any{"enabled": true}
		proxy["environment"] = []any{map[string]any{"name": "A", "value": "1"}}
		proxy["linuxParameters"] = map[string]any{"capabilities": map[string]any{"drop": []any{"NET_RAW"}}}
		proxy["dockerLabels"].(map[string]any)["team"] = "shop"
	})
	if want := []string{"dockerLabels", "environment", "essential", "linuxParameters",
		"restartPolicy"}; !slices.Equal(got, want) {
		t.Errorf("findings name %q, want %q", got, want)
	}
}

// What an earlier version wrote itself, and this one writes differently, is no setting of the user.
func TestDefaultsOfAnEarlierVersionAreNoSettings(t *testing.T) {
	t.Parallel()
	const logs = `"logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "g", "awslogs-region": ` +
		`"r", "awslogs-stream-prefix": "p", "awslogs-datetime-format": "%Y"}}`
	const label = `"image": "x", "essential": false, "dockerLabels": {"consul.hashicorp.com/injected-by": "consul-ecs"}`
	for members, want := range map[string]string{
		`"user": "0", "linuxParameters": {"capabilities": {"add": ["NET_ADMIN"]}, "initProcessEnabled": true}`: "",
		`"user": "0", "linuxParameters": {"initProcessEnabled": true}`:                                         "user",
		`"command": ["mesh-init", "-stop-timeout", "60s"], "stopTimeout": 60`:                                  "",
		`"command": ["mesh-init", "-stop-timeout", "60s"], "stopTimeout": 6`:                                   "stopTimeout",
		logs:                                 "",
		strings.Replace(logs, "%Y", "%d", 1): "logConfiguration",
	} {
		r := admit(t, definition("", plainApp+", "+logs+`}, {"name": "consul-ecs-mesh-init", `+label+", "+members),
			parseMesh(t, []byte(plainMesh)))
		got := strings.Join(messages(r, codeChanged), "\n")
		if member, _, _ := strings.Cut(strings.TrimPrefix(got, codeChanged+": "), " "); member != want {
			t.Errorf("%s: findings %q, want one about %q", members, got, want)
		}
		if strings.Contains(got, "was changed after its admission") {
			t.Errorf("%s: findings %q about a change that is not known", members, got)
		}
	}
}

// The mesh file has no health check for a container that is not the proxy, and no end of the task
// with one that ends.
func TestCureOfAChangeIsAccepted(t *testing.T) {
	t.Parallel()
	for change, settable := range map[string]bool{
		"consul-ecs-mesh-init healthCheck": false, "consul-ecs-mesh-init essential": false,
		"consul-ecs-install essential": false,
		"consul-ecs-mesh-init user":    true, "sidecar-proxy healthCheck": true, "consul-client essential": true,
		"sidecar-proxy command": false,
	} {
		container, member, _ := strings.Cut(change, " ")
		if got := fixOfChange(container, member); strings.Contains(got, "admission.sidecars.") != settable {
			t.Errorf("%s: %s", change, got)
		}
	}
}

func TestChangesOfAListOfContainersAreNamed(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(`{"consulServers": {"hosts": "a"}, "proxy": {"mode": "direct"},
		"transparentProxy": {"enabled": false}}`))
	admitted := admit(t, []byte(`[{"name": "app", "image": "app", "memory": 64, "entryPoint": ["/app"],
		"portMappings": [{"containerPort": 80}]}]`), mesh).After.Bytes()
	if got := changedOf(t, admitted, mesh, func(proxy map[string]any) { proxy["cpu"] = 64 }); !slices.Equal(got,
		[]string{"cpu"}) {
		t.Errorf("findings name %q, want cpu", got)
	}
	if got := changedOf(t, admitted, mesh, func(map[string]any) {}); got != nil {
		t.Errorf("findings name %q, want none", got)
	}
}

func TestChangesOfATemplateAreNamed(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(plainMesh))
	template := `{"Resources": {"Web": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"Family": "app",
		"NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"],
		"Cpu": "512", "Memory": "1024", "ContainerDefinitions": [{"Name": "app", "Image": "app:1", "EntryPoint": ["/app"], "PortMappings": [{"ContainerPort": 80}]}]}}}}`
	admitted := string(admit(t, []byte(template), mesh).After.Bytes())
	changed := strings.Replace(admitted, `"User": "5995:5996"`, `"User": "0"`, 1)
	if changed == admitted {
		t.Fatal("the template has no user of the proxy")
	}
	var paths []string
	for _, f := range admit(t, []byte(changed), mesh).Findings {
		if f.Code == codeChanged {
			paths = append(paths, f.Path)
		}
	}
	if want := []string{"$.Resources.Web.Properties.ContainerDefinitions[2].User"}; !slices.Equal(paths, want) {
		t.Errorf("findings at %q, want %q", paths, want)
	}
}

// What another mesh file changes is no change by the user, also when an application is edited.
func TestAnotherMeshFileIsNoChangeByTheUser(t *testing.T) {
	t.Parallel()
	admitted := string(admit(t, []byte(plainText), parseMesh(t, []byte(plainMesh))).After.Bytes())
	other := parseMesh(t, []byte(strings.Replace(plainMesh, `"proxy"`,
		`"admission": {"sidecars": {"all": {"cpu": 8}}, "images": {"envoy": "envoy:2"}}, "proxy"`, 1)))
	edited := strings.Replace(admitted, "app:1", "app:2", 1)
	for _, f := range admit(t, []byte(edited), other).Findings {
		if f.Code == codeChanged {
			t.Errorf("finding %s", f)
		}
	}
}

// ECS fills defaults in, which is no change either.
func TestDescribedContainersAreNoChangeByTheUser(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(sidecarsMesh(`"proxy": {"portMappings": [{"containerPort": 20000}], "restartPolicy": `+
		`{}, "environment": [{"name": "Z", "value": ""}, {"name": "A", "value": "1"}]}`)))
	r := admit(t, []byte(plainText), mesh)
	tags, err := json.Marshal(r.After.Definition.Tags)
	if err != nil {
		t.Fatal(err)
	}
	described, err := json.Marshal(r.After.Definition) // with the defaults
	if err != nil {
		t.Fatal(err)
	}
	again := admit(t, fmt.Appendf(nil, `{"taskDefinition": %s, "tags": %s}`, described, tags), mesh)
	for _, f := range again.Findings {
		if f.Code == codeChanged {
			t.Errorf("finding %s", f)
		}
	}
	if !slices.Equal(taskdef.Canonical(again.After.Definition), taskdef.Canonical(r.After.Definition)) {
		t.Error("the answer of DescribeTaskDefinition is admitted differently")
	}
}
