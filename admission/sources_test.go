package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// annotated returns a definition of one application with labels.
func annotated(labels map[string]string) []byte {
	prefixed := map[string]string{}
	for name, value := range labels {
		prefixed[annotationPrefix+name] = value
	}
	text, _ := json.Marshal(prefixed)
	return definition("", plainApp+`, "dockerLabels": `+string(text))
}

// codesAndPaths returns the code and the path of each finding.
func codesAndPaths(r *Result) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.Code+" "+f.Path)
	}
	return all
}

func TestFindingIsAtItsAnnotation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ value, code string }{
		"service-name":   {"Web App", codeServiceName},
		"upstreams":      {"api:9000,db:9000", codeUpstream},
		"expose-checks":  {"/a:8080:20000", codePort},
		"gateway-kind":   {"ingress", codeConfig},
		"service-tags":   {"a,a", codeConfig},
		"service-meta-x": {strings.Repeat("x", 513), codeAnnValue},
		"namespace":      {"my_team", codeAnnValue},
		"kv-prefixes":    {"app/,/shared/", codeAnnValue},
		"policies":       {"web,a.b", codeAnnValue},
		"ttl":            {"30s", codeAnnValue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admit(t, annotated(map[string]string{name: c.value}), parseMesh(t, []byte(plainMesh)))
			want := []string{fmt.Sprintf("%s $.containerDefinitions[0].dockerLabels[%q]", c.code,
				annotationPrefix+name)}
			if got := codesAndPaths(r); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", r.Findings, want)
			}
		})
	}
}

func TestRepeatedUpstreamIsReportedByItsPlaceInTheConfiguration(t *testing.T) {
	t.Parallel()
	r := admit(t, annotated(map[string]string{"upstreams": "db:1234,db:1235:dc2,db:1236"}),
		parseMesh(t, []byte(plainMesh)))
	want := `$.containerDefinitions[0].dockerLabels["consul.hashicorp.com/upstreams"]: configuration ` +
		`$.proxy.upstreams[2]: has the same destination as $.proxy.upstreams[0]`
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].String(), want) {
		t.Errorf("findings %v, want %s", r.Findings, want)
	}
}

func TestValueOfTheMeshFileIsNotAtAnAnnotation(t *testing.T) {
	t.Parallel()
	for want, mesh := range map[string]string{
		"ADM-CONFIG $":   `{"consulServers": {"hosts": "10.0.0.4"}, "service": {"port": -1}}`,
		"ADM-SVC-NAME $": `{"consulServers": {"hosts": "10.0.0.4"}, "service": {"name": "A B"}}`,
		"ADM-SVC-NAME $.containerDefinitions[1].environment[0]": `{"consulServers": {"hosts": "10.0.0.4"}, ` +
			`"service": {"name": "a-sidecar-proxy"}}`,
	} {
		r := admit(t, annotated(map[string]string{"service-tags": "a"}), parseMesh(t, []byte(mesh)))
		if got := codesAndPaths(r); !slices.Contains(got, want) {
			t.Errorf("%v, want %s", r.Findings, want)
		}
	}
}

func TestValuesThatConsulTakesAreNotReported(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"namespace": "team-1", "partition": "default", "kv-prefixes": "app/:list shared",
		"policies": "a_b,team/c", "ttl": "168h"}
	for i := range maxMeta {
		labels[fmt.Sprintf("service-meta-Key_%d", i)] = strings.Repeat("x", 100)
	}
	mesh := parseMesh(t, []byte(plainMesh))
	if r := admit(t, annotated(labels), mesh); len(r.Findings) > 0 {
		t.Errorf("findings %v", r.Findings)
	}
	labels["service-meta-z"] = "one more"
	if r := admit(t, annotated(labels), mesh); len(r.Findings) != 1 || r.Findings[0].Code != codeAnnValue {
		t.Errorf("findings %v", r.Findings)
	}
}

func TestMetadataOfTheMeshFileStays(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(`{"consulServers": {"hosts": "10.0.0.4"}, "service": {"port": 80, "meta": {"team": `+
		`"shop", "tier": "1"}}}`))
	r := admit(t, annotated(map[string]string{"service-meta-tier": "2"}), mesh)
	if want := `\"meta\":{\"team\":\"shop\",\"tier\":\"2\"}`; !strings.Contains(string(r.After.Bytes()), want) {
		t.Errorf("no %s in %s", want, r.After.Bytes())
	}
}

func TestMetadataOfTheMeshFileIsChecked(t *testing.T) {
	t.Parallel()
	labels := map[string]string{}
	for i := range maxMeta {
		labels[fmt.Sprintf("service-meta-Key_%d", i)] = "x"
	}
	const at = "configuration $.service.meta"
	for _, c := range []struct {
		meta   string
		labels map[string]string
		want   string
	}{
		{`"Key_1": "y"`, labels, ""},
		{`"team": "y"`, labels, at + " has 62 pairs with those of the annotations, and Consul takes 61"},
		{`"a.b": "y"`, nil, at + `.a.b is "y", want a key after service-meta- of up to 128 letters, digits, ` +
			`'_' and '-'`},
		{`"team": "` + strings.Repeat("x", 513) + `"`, nil, at + `.team is "(513 bytes)", want at most 512 bytes`},
	} {
		mesh := strings.Replace(plainMesh, `"proxy"`, `"service": {"meta": {`+c.meta+`}}, "proxy"`, 1)
		got := ""
		for _, f := range admit(t, annotated(c.labels), parseMesh(t, []byte(mesh))).Findings {
			got += strings.Replace(f.Message, ": ", " ", 1)
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestMountPathsAreComparedAsDirectories(t *testing.T) {
	t.Parallel()
	volume := `"volumes": [{"name": "consul_data"}, {"name": "other"}],`
	mounts := func(points ...string) string {
		return plainApp + `, "mountPoints": [` + strings.Join(points, ", ") + `]`
	}
	mount := func(volume, path string) string {
		return fmt.Sprintf(`{"sourceVolume": %q, "containerPath": %q}`, volume, path)
	}
	for name, c := range map[string]struct {
		app  string
		want []string
	}{
		"the shared volume, with a slash": {mounts(mount("consul_data", "/consul/")), nil},
		"another one, with a slash": {mounts(mount("other", "/consul/")),
			[]string{"ADM-VOLUME $.containerDefinitions[0].mountPoints[0]"}},
		"below, with a detour": {mounts(mount("other", "/data/../consul/x")),
			[]string{"ADM-VOLUME $.containerDefinitions[0].mountPoints[0]"}},
		"the same twice": {mounts(mount("other", "/data"), mount("consul_data", "/data/")),
			[]string{"ADM-MOUNT $.containerDefinitions[0].mountPoints[1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admit(t, definition(volume, c.app), parseMesh(t, []byte(plainMesh)))
			if got := codesAndPaths(r); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", r.Findings, c.want)
			}
			for i, m := range r.After.Definition.ContainerDefinitions[0].MountPoints {
				if second := m.ContainerPath == "/consul" && i > 0; second && len(c.want) == 0 {
					t.Errorf("the volume is mounted twice: %+v", r.After.Definition.ContainerDefinitions[0].MountPoints)
				}
			}
		})
	}
}

// Without the mesh, too, an answer of DescribeTaskDefinition is registered as what can be.
func TestDescribedDefinitionIsRegisteredWithoutTheMesh(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"taskDefinition": {"family": "app", "revision": 3, "status": "ACTIVE", "containerDefinitions": [{"name": "app", "image": "app", "memory": 64,
		"dockerLabels": {"consul.hashicorp.com/ttl": "never"}}]}, "tags": [{"key": "team", "value": "shop"}]}`)
	r, err := Admit(doc, Options{Register: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ADM-NOT-INJECTED $", "ADM-OUTPUT $",
		`ADM-ANN-VALUE $.containerDefinitions[0].dockerLabels["consul.hashicorp.com/ttl"]`}
	testkit.Equal(t, "findings", codesAndPaths(r), want)
	testkit.Equal(t, "family", r.After.Definition.Family, "app")
	testkit.Equal(t, "tags", len(r.After.Definition.Tags), 1)
	if text := string(r.After.Bytes()); strings.Contains(text, "revision") || !strings.Contains(text, "shop") {
		t.Errorf("output %s", text)
	}
	if line := r.Line(r.Findings[2]); line != 2 {
		t.Errorf("line %d, want 2", line)
	}
	if r, err := Admit(doc, Options{}); err != nil || string(r.After.Bytes()) != string(doc) {
		t.Errorf("error %v, output %s", err, r.After.Bytes())
	}
}

// AWS answers "tags": [] for a definition without tags and shows its own tags, and registers neither.
func TestDescribedTagsAreRegisteredWhereECSTakesThem(t *testing.T) {
	t.Parallel()
	const definition = `{"taskDefinition": {"family": "app", "containerDefinitions": [{"name": "app", "image": ` +
		`"app", "memory": 64}]}, "tags": `
	for tags, want := range map[string]struct {
		tags  int
		codes []string
	}{
		`[]`: {0, []string{"ADM-NOT-INJECTED"}},
		`[{"key": "aws:cloudformation:stack-name", "value": "shop"}, {"key": "team", "value": "shop"}]`: {1,
			[]string{"ADM-NOT-INJECTED", "ADM-OUTPUT"}},
		`[{"key": "aws:cloudformation:stack-name", "value": "shop"}]`: {0, []string{"ADM-NOT-INJECTED", "ADM-OUTPUT"}},
	} {
		r, err := Admit([]byte(definition+tags+"}"), Options{Register: true})
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, f := range r.Findings {
			codes = append(codes, f.Code)
		}
		if n := len(r.After.Definition.Tags); n != want.tags || !slices.Equal(codes, want.codes) {
			t.Errorf("%s: %d tags, findings %v, want %d and %v", tags, n, r.Findings, want.tags, want.codes)
		}
		if text := string(r.After.Bytes()); strings.Contains(text, "[]") || strings.Contains(text, "aws:") {
			t.Errorf("%s: output %s", tags, text)
		}
	}
}

// Their service would never be healthy.
func TestSyncedContainersNeedAHealthCheck(t *testing.T) {
	t.Parallel()
	mesh := parseMesh(t, []byte(`{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": "direct"}, `+
		`"healthSyncContainers": ["app", "other"]}`))
	const app, other = "configuration $.healthSyncContainers[0]: the container app has no health check",
		"configuration $.healthSyncContainers[1]: the task has no container other"
	for name, c := range map[string]struct {
		doc  []byte
		want []string
	}{
		"no check":       {definition("", plainApp), []string{app, other}},
		"disabled check": {definition("", plainApp+`, "healthCheck": {"command": ["NONE"]}`), []string{app, other}},
		"check":          {definition("", plainApp+`, "healthCheck": {"command": ["CMD", "/app"]}`), []string{other}},
		"computed":       {template("", `"HealthCheck": {"Ref": "Check"}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range admit(t, c.doc, mesh).Findings {
				if f.Code == codeConfig {
					got = append(got, f.Message)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

// A wrong port of the service is found when its first caller gets no answer.
// What has no name is sorted with the rest before it is reported.
func TestItemsWithoutANameAreReported(t *testing.T) {
	t.Parallel()
	r := admit(t, definition(`"tags": [{"Key": "team", "Value": "shop"}], `,
		plainApp+`, "environment": [{"value": "1"}, {"name": "B", "value": "2"}],
		"secrets": [{"valueFrom": "/db"}, {"name": "C", "valueFrom": "/c"}]`), parseMesh(t, []byte(plainMesh)))
	got := strings.Join(codesAndPaths(r), "\n")
	for _, want := range []string{"$.tags[0]", "$.containerDefinitions[0].environment[0].name",
		"$.containerDefinitions[0].secrets[0].name"} {
		if !strings.Contains(got, want) {
			t.Errorf("findings at\n%s\nwant one at %s", got, want)
		}
	}
}

// TestPortOfConsulDNSIsTaken: in tasks that have it, whatever their proxy is.
func TestPortOfConsulDNSIsTaken(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"direct", "dataplane"} {
		for dns, want := range map[string]bool{"true": true, "false": false} {
			mesh := fmt.Sprintf(`{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"mode": %q},
				"transparentProxy": {"consulDNS": {"enabled": %s}}}`, mode, dns)
			doc := bytes.Replace(definition("", plainApp), []byte("FARGATE"), []byte("EC2"), 1)
			doc = bytes.Replace(doc, []byte(`"containerPort": 8080`),
				[]byte(`"containerPort": 8080}, {"containerPort": 8600`), 1)
			r := admit(t, doc, parseMesh(t, []byte(mesh)))
			taken := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return f.Code == codePort && strings.Contains(f.String(), "8600") &&
					strings.Contains(f.String(), "Consul DNS")
			})
			if taken != want {
				t.Errorf("%s, DNS %s: the port is taken: %v; findings %v", mode, dns, taken, r.Findings)
			}
		}
	}
}
