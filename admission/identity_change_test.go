package admission

import (
	"slices"
	"strings"
	"testing"
)

// describedWithoutTags is an admitted service orders as DescribeTaskDefinition answers without
// --include TAGS: the tag with its name is missing.
var describedWithoutTags = []byte(`{"taskDefinition": {"family": "app", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "512", "memory": "1024",
	"volumes": [{"name": "consul_data"}], "containerDefinitions": [
	{"name": "app", "image": "app", "entryPoint": ["/app"], "portMappings": [{"containerPort": 80}], "dockerLabels": {"team": "shop"}},
	{"name": "consul-ecs-mesh-init", "image": "consul-ecs", "essential": false, "command": ["mesh-init"],
		"dockerLabels": {"consul.hashicorp.com/injected-by": "consul-ecs"},
		"environment": [{"name": "CONSUL_ECS_CONFIG_JSON", "value": "{\"service\": {\"name\": \"orders\", \"port\": 80}}"}],
		"mountPoints": [{"sourceVolume": "consul_data", "containerPath": "/consul"}]}]}}`)

func TestAnswerWithoutTagsMayNotBecomeAnotherService(t *testing.T) {
	t.Parallel()
	described := string(describedWithoutTags)
	replace := func(old, with string) string {
		if !strings.Contains(described, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(described, old, with, 1)
	}
	const absent = "ADM-TAGS-ABSENT: this answer of DescribeTaskDefinition has no tags: annotations among them do " +
		"not count, and all are lost"
	lost := func(was, now string) string {
		return "ADM-TAGS-LOST: the task is " + was + ", and would become " + now +
			", since the tags of the definition are not in this answer of DescribeTaskDefinition"
	}
	gateway := `{\"gateway\": {\"kind\": \"mesh-gateway\", \"name\": \"app\"}}`
	for name, c := range map[string]struct {
		doc, mesh string
		want      []string
	}{
		"another name":  {described, plainMesh, []string{absent, lost("service orders", "service app")}},
		"the same name": {replace(`\"orders\"`, `\"app\"`), plainMesh, []string{absent}},
		"named by a label": {
			replace(`"team": "shop"`, `"consul.hashicorp.com/service-name": "bills"`), plainMesh, []string{absent},
		},
		"named by the mesh": {
			described, `{"consulServers": {"hosts": "10.0.0.4"}, "service": {"name": "bills", "port": 80}}`,
			[]string{absent},
		},
		"of the family": {replace(`\"name\": \"orders\", `, ""), plainMesh, []string{absent}},
		"a gateway": {
			replace(`{\"service\": {\"name\": \"orders\", \"port\": 80}}`, gateway), plainMesh,
			[]string{absent, lost("mesh-gateway app", "service app")},
		},
		"no configuration": {
			replace(`"value": "{\"service\": {\"name\": \"orders\", \"port\": 80}}"`, `"value": "x"`), plainMesh,
			[]string{absent},
		},
		"an empty list": {strings.TrimSuffix(described, "}") + `, "tags": []}`, plainMesh, nil},
		"not in the mesh": {
			`{"taskDefinition": ` + string(definition("", plainApp)) + `}`, plainMesh, []string{absent},
		},
		"a definition": {string(definition("", plainApp)), plainMesh, nil},
		"tags in the answer": {
			strings.TrimSuffix(described, "}") +
				`, "tags": [{"key": "consul.hashicorp.com/service-name", "value": "orders"}]}`,
			plainMesh, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := admitAll(t, []byte(c.doc), parseMesh(t, []byte(c.mesh)))
			if got := messages(r, codeTagsAbsent, codeTagsLost); !slices.Equal(got, c.want) {
				t.Errorf("findings %q, want %q", got, c.want)
			}
		})
	}
}

// What an answer has beside the definition and its tags is not registered.
func TestMembersOfAnAnswerThatAreLeftOutAreReported(t *testing.T) {
	t.Parallel()
	doc := `{"taskDefinition": ` + string(definition("", plainApp)) + `, "tags": [], "ResponseMetadata": {}}`
	want := []string{"ADM-OUTPUT: this is an answer of DescribeTaskDefinition: removed ResponseMetadata, which " +
		"cannot be registered"}
	if got := messages(admitAll(t, []byte(doc), parseMesh(t, []byte(plainMesh))), codeOutput); !slices.Equal(got,
		want) {
		t.Errorf("findings %q, want %q", got, want)
	}
}
