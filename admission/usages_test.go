package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// labelled returns a valid task of the service web with docker labels.
func labelled(pairs ...string) []byte {
	labels := map[string]string{annotationPrefix + "service-name": "web"}
	for i := 0; i < len(pairs); i += 2 {
		labels[annotationPrefix+pairs[i]] = pairs[i+1]
	}
	text, _ := json.Marshal(labels) // they are strings
	return definition("", plainApp+`, "dockerLabels": `+string(text))
}

func TestUsages(t *testing.T) {
	t.Parallel()
	native := definition("", plainApp+`, "dockerLabels": {"consul.hashicorp.com/service-name": "web", "consul.hashicorp.com/kv-prefixes": "app/"}}, {"name": "api", "image": "api", "entryPoint": ["/api"], "dockerLabels": {"consul.hashicorp.com/native": "true", "consul.hashicorp.com/service-name": "api"}`)
	for name, c := range map[string]struct {
		doc  []byte
		mesh string
		want string
	}{
		"two services and keys": {native, plainMesh, `{"":{"services":["api","web"],"kinds":["connect-native:api","connect-proxy:web"],"upstreams":[],"kv":true,"keyPrefixes":["app/"]}}`},
		"upstreams":             {labelled("upstreams", "db:1,api:2"), plainMesh, `{"":{"services":["web"],"kinds":["connect-proxy:web"],"upstreams":["api","db"],"kv":false,"keyPrefixes":[]}}`},
		"template": {definition("", `"entryPoint": ["/bin/consul-template", "-once"]`), plainMesh,
			`{"":{"services":["app"],"kinds":["connect-proxy:app"],"upstreams":[],"kv":true,"keyPrefixes":[""]}}`},
		"template in a shell": {definition("", `"entryPoint": ["sh", "-c"], "command": ["exec /bin/envconsul -prefix app ./run"]`), plainMesh, `{"":{"services":["app"],"kinds":["connect-proxy:app"],"upstreams":[],"kv":true,"keyPrefixes":[""]}}`},
		"gateway": {labelled("gateway-kind", "mesh-gateway"), plainMesh,
			`{"":{"services":[],"kinds":["connect-mesh:web"],"upstreams":[],"kv":false,"keyPrefixes":[]}}`},
		"default namespace": {labelled("namespace", "default"), plainMesh,
			`{"":{"services":["web"],"kinds":["connect-proxy:web"],"upstreams":[],"kv":false,"keyPrefixes":[]}}`},
		"two namespaces": {
			labelled("namespace", "team1"), `{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"upstreams": ` +
				`[{"destinationName": "api", "destinationNamespace": "team2", "localBindPort": 1234}]}}`,
			`{"team1":{"services":["web"],"kinds":["connect-proxy:web"],"upstreams":[],"kv":false,"keyPrefixes":[]},"team2":{"services":[],"kinds":[],"upstreams":["api"],"kv":false,"keyPrefixes":[]}}`,
		},
		"not of the mesh": {labelled("mesh-inject", "false"), plainMesh, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admit(t, c.doc, parseMesh(t, []byte(c.mesh)))
			got, err := json.Marshal(r.Usages)
			if err != nil || string(got) != c.want {
				t.Errorf("usages %s, want %s", got, c.want)
			}
			if r.UsesConsul() != (c.want != "null") {
				t.Errorf("used %v", r.UsesConsul())
			}
		})
	}
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		doc               []byte
		operator, runtime string
	}{
		"service": {labelled(), "service:web write, service:web-sidecar-proxy write",
			"service:web write, service:web-sidecar-proxy write, service_prefix  read, node_prefix  read"},
		"upstream": {labelled("upstreams", "api:1"), "service:web write, service:web-sidecar-proxy write, service:api read", "service:web write, service:web-sidecar-proxy write, service_prefix  read, node_prefix  read, service:api read"},
		"mesh gateway": {labelled("gateway-kind", "mesh-gateway"), "service:web write, mesh write",
			"service:web write, mesh write, service_prefix  read, node_prefix  read"},
		"terminating gateway": {labelled("gateway-kind", "terminating-gateway"), "service:web write",
			"service:web write, service_prefix  read, node_prefix  read"},
		"API gateway": {labelled("gateway-kind", "api-gateway"), "service:web write, mesh read",
			"service:web write, mesh read, service_prefix  read, node_prefix  read"},
		"keys":            {labelled("gateway-kind", "terminating-gateway", "kv-prefixes", "a/ b/:list"), "service:web write, key_prefix a/ read, key_prefix b/ list", "service:web write, service_prefix  read, node_prefix  read, key_prefix a/ read, key_prefix b/ list"},
		"not of the mesh": {labelled("mesh-inject", "false"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rights := map[string][]string{}
			for _, q := range admit(t, c.doc, parseMesh(t, []byte(plainMesh))).Requirements {
				text := q.Query().String()
				if q.Below {
					text = fmt.Sprintf("%s_prefix %s %s", q.Resource, q.Segment, q.Access)
				}
				rights[q.Holder] = append(rights[q.Holder], text)
				if q.Reason == "" || strings.ContainsAny(q.Reason, "{}") {
					t.Errorf("reason %q of requirement %+v", q.Reason, q)
				}
				if !strings.HasPrefix(q.Path, "$.containerDefinitions[") {
					t.Errorf("path %q, want that of a container", q.Path)
				}
			}
			if got := strings.Join(rights[holderOperator], ", "); got != c.operator {
				t.Errorf("operator %s, want %s", got, c.operator)
			}
			if got := strings.Join(rights[holderRuntime], ", "); got != c.runtime {
				t.Errorf("runtime %s, want %s", got, c.runtime)
			}
		})
	}
}

// The server asks for no right of the name of a peer's service or of a prepared query.
func TestRequirementsOfUpstreamsBeyondTheCatalog(t *testing.T) {
	t.Parallel()
	mesh := `{"consulServers": {"hosts": "10.0.0.4"}, "proxy": {"upstreams": [
		{"destinationName": "far", "destinationPeer": "east", "localBindPort": 1},
		{"destinationName": "nearest", "destinationType": "prepared_query", "localBindPort": 2}]}}`
	r := admit(t, labelled(), parseMesh(t, []byte(mesh)))
	if u := r.Usages[""]; u == nil || !slices.Equal(u.Upstreams, []string{"far", "nearest"}) {
		t.Errorf("usages %+v", r.Usages)
	}
	if len(r.Requirements) == 0 {
		t.Fatal("no requirements")
	}
	for _, q := range r.Requirements {
		if q.Segment == "far" || q.Segment == "nearest" {
			t.Errorf("requirement %+v", q)
		}
	}
}

// In a template the paths are those of the template.
func TestRequirementsHavePathsOfTheTemplate(t *testing.T) {
	t.Parallel()
	doc := `{"Resources": {"Web": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"Family": "web", "NetworkMode": "awsvpc", "RequiresCompatibilities": ["FARGATE"], "Cpu": "512", "Memory": "1024",
		"ContainerDefinitions": [{"Name": "app", "Image": "app", "EntryPoint": ["/app"], "DockerLabels": {"consul.hashicorp.com/upstreams": "api:1"}}]}}}}`
	var paths []string
	for _, q := range admit(t, []byte(doc), parseMesh(t, []byte(plainMesh))).Requirements {
		paths = append(paths, q.Path)
	}
	want := `$.Resources.Web.Properties.ContainerDefinitions[0].DockerLabels["consul.hashicorp.com/upstreams"]`
	if !slices.Contains(paths, want) || slices.ContainsFunc(paths, func(p string) bool { return !strings.HasPrefix(p, "$.Resources.Web.Properties.ContainerDefinitions[") }) {
		t.Errorf("paths %q, want all in the template, and %s", paths, want)
	}
}
