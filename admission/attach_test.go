package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

func dependencies(r *Result, container string) []string {
	var all []string
	for _, d := range r.After.Definition.Container(container).DependsOn {
		all = append(all, d.ContainerName+" "+d.Condition)
	}
	return all
}

// Definitions of other programs, or of another mesh file, name containers that this mesh
// file does not make.
func TestDependenciesLeadToTheContainersOfThisMesh(t *testing.T) {
	t.Parallel()
	const edges = `"dependsOn": [{"containerName": "consul-client", "condition": "START"}, {"containerName": "consul-ecs-mesh-init", "condition": "SUCCESS"},
		{"containerName": "consul-dataplane", "condition": "HEALTHY"}, {"containerName": "db", "condition": "START"}]`
	doc := definition("", `"essential": true, `+edges+`}, {"name": "db", "image": "db"}, {"name": "cron", `+
		`"image": "cron", `+edges+`, "dockerLabels": {"consul.hashicorp.com/depends": "false"}`)
	r := admit(t, doc, parseMesh(t, []byte(plainMesh)))
	for name, want := range map[string][]string{
		"app":  {"db START", "sidecar-proxy HEALTHY"},
		"db":   {"sidecar-proxy HEALTHY"},
		"cron": {"consul-ecs-mesh-init SUCCESS", "sidecar-proxy HEALTHY", "db START"},
	} {
		if got := dependencies(r, name); !slices.Equal(got, want) {
			t.Errorf("%s depends on %q, want %q", name, got, want)
		}
	}
	if r.Rejected(false) {
		t.Errorf("findings %v", r.Findings)
	}
	again := admit(t, r.After.Bytes(), parseMesh(t, []byte(plainMesh)))
	if string(again.After.Bytes()) != string(r.After.Bytes()) {
		t.Errorf("the second admission changes the first: %s", again.After.Bytes())
	}
}

func TestUnwrappedApplicationStartsAfterItsOwnProxy(t *testing.T) {
	t.Parallel()
	doc := ownProxy()
	for range 2 {
		r := admit(t, doc, parseMesh(t, []byte(plainMesh)))
		if got, want := dependencies(r, "app"), []string{"edge HEALTHY"}; !slices.Equal(got, want) {
			t.Errorf("app depends on %q, want %q", got, want)
		}
		doc = r.After.Bytes()
	}
}

func TestOwnProxyDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	doc := definition("", plainApp+
		`}, {"name": "edge", "image": "envoy", "dockerLabels": {"consul.hashicorp.com/kind": "connect-proxy:app"},
		"dependsOn": [{"containerName": "sidecar-proxy", "condition": "HEALTHY"}]`)
	r := admit(t, doc, parseMesh(t, []byte(plainMesh)))
	if got, want := dependencies(r, "edge"), []string{"consul-ecs-mesh-init SUCCESS"}; !slices.Equal(got, want) {
		t.Errorf("edge depends on %q, want %q", got, want)
	}
}

// ownProxy returns a definition with its own proxy, and an application that cannot be wrapped.
func ownProxy() []byte {
	return definition("", `"user": "1000"}, {"name": "edge", "image": "envoy", "dockerLabels": `+
		`{"consul.hashicorp.com/kind": "connect-proxy:app"}`)
}

// All findings are reported at once, also those about the rest of a definition whose
// configuration is refused.
func TestInvalidConfigurationHidesNoOtherFinding(t *testing.T) {
	t.Parallel()
	r := admit(t, annotated(map[string]string{"service-name": "Web", "service-tags": "a,a", "upstreams": "api:20000"}),
		parseMesh(t, []byte(plainMesh)))
	var codes []string
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	if want := []string{codeConfig, codeServiceName, codeUpstream}; !slices.Equal(codes, want) {
		t.Errorf("findings %v, want %v", r.Findings, want)
	}
}

func TestRangeOfPortsMayNotHaveThoseOfTheMesh(t *testing.T) {
	t.Parallel()
	for ports, want := range map[string][]string{
		"19990-20010": {"ADM-PORT $.containerDefinitions[0].portMappings[1]"},
		"20001-20010": nil,
	} {
		doc := strings.Replace(string(definition("", plainApp)), `{"containerPort": 8080}`,
			fmt.Sprintf(`{"containerPort": 80}, {"containerPortRange": %q}`, ports), 1)
		if got := codesAndPaths(admit(t, []byte(doc), parseMesh(t, []byte(plainMesh)))); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", ports, got, want)
		}
	}
}

func TestTooManyContainersNamesThoseOfTheMesh(t *testing.T) {
	t.Parallel()
	more := strings.Repeat(`}, {"name": "x%", "image": "x", "entryPoint": ["/x"]`, 9)
	for i := range 9 {
		more = strings.Replace(more, "%", fmt.Sprint(i), 1)
	}
	r := admit(t, definition("", plainApp+more), parseMesh(t, []byte(plainMesh)))
	if len(r.Findings) != 1 || r.Findings[0].Fix != "10 are allowed, not 13; 3 of them are the mesh's" {
		t.Errorf("findings %v", r.Findings)
	}
}

func TestDefinitionWithoutContainersIsNotCalledComputed(t *testing.T) {
	t.Parallel()
	r := admit(t, []byte(`{"family": "app"}`), parseMesh(t, []byte(plainMesh)))
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == codeComputed }) || !r.Rejected(false) {
		t.Errorf("findings %v", r.Findings)
	}
	computed, err := taskdef.ParseTemplate(
		[]byte(`{"NetworkMode": "awsvpc", "ContainerDefinitions": {"Ref": "Containers"}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if r := admit(t, computed.Bytes(), parseMesh(t, []byte(plainMesh))); !slices.Contains(codesAndPaths(r),
		"ADM-CONTAINERS $.ContainerDefinitions") {
		t.Errorf("findings %v", r.Findings)
	}
}

func TestNullLogConfigurationCountsAsAbsent(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(`{"consulServers": {"hosts": "10.0.0.4"}, "admission": {"logConfiguration": null}}`))
	r := admit(t, definition("", plainApp+`, "logConfiguration": {"logDriver": "json-file"}`), mesh)
	for _, c := range r.After.Definition.ContainerDefinitions {
		if c.LogConfiguration == nil || c.LogConfiguration.LogDriver != "json-file" {
			t.Errorf("%s has %+v, want that of the application", c.Name, c.LogConfiguration)
		}
	}
	if text := string(admit(t, definition("", plainApp), mesh).After.Bytes()); strings.Contains(text,
		"logConfiguration") {
		t.Errorf("logConfiguration in %s", text)
	}
}

func TestMeshFileWithAWrongTypeNamesTheMember(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`[]`:                       "admission of the mesh file: must be an object, but is a JSON array",
		`{"images": {"envoy": 1}}`: "admission.images.envoy of the mesh file: must be a string, but is a JSON number 1",
		`{"logConfiguration": []}`: "admission.logConfiguration of the mesh file: must be an object, but is a JSON array",
		`{"sidecars": {"proxy": {"cpu": 3000000000}}}`: "admission.sidecars.proxy.cpu of the mesh file: must be an " +
			"integer, but is a JSON number 3000000000",
		`{"operatorToken": {}}`: "admission.operatorToken of the mesh file: must be a string, but is a JSON object",
		`{"client": {"retryJoin": "10.0.0.4"}}`: "admission.client.retryJoin of the mesh file: must be a list, but " +
			"is a JSON string",
		`{"sidecars": true}`: "admission.sidecars of the mesh file: must be an object, but is a JSON bool",
		`{"sidecars": {"proxy": {"cpu": "128"}}}`: "admission.sidecars.proxy.cpu of the mesh file: must be an " +
			"integer, but is a JSON string",
		`{"sidecars": {"proxy": {"essential": "yes"}}}`: "admission.sidecars.proxy.essential of the mesh file: must " +
			"be true or false, but is a JSON string",
	} {
		if _, err := ParseMesh([]byte(`{"admission": ` + doc + `}`)); err == nil ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", doc, err, want)
		}
	}
}
