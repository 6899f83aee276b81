package admission

import (
	"strings"
	"testing"
)

func TestUnknownMembersOfTheMeshFileAreRefused(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"admision": {}}`:                         `the mesh file has the unknown member "admision"; did you mean "admission"?`,
		`{"Admission": {}}`:                        `the mesh file has the unknown member "Admission"; did you mean "admission"?`,
		`{"admission": {"image": {}}}`:             `unknown field "image"; did you mean "images"?`,
		`{"admission": {"images": {"envoi": ""}}}`: `unknown field "envoi"; did you mean "envoy"?`,
		`{"admission": {"cpu": 1}}`: `the member admission of the mesh file: unknown field "cpu"; allowed: client, ` +
			`envoyConcurrency, ignoreContainers, images, logConfiguration, operatorToken, secrets, sidecars`,
		`{"admission": {"sidecars": {"proxy": {"healthCheck": {"command": []}}}}}`: `the member admission.sidecars.proxy.healthCheck of the mesh file: unknown field "command"; allowed: interval, retries, startPeriod, timeout`,
		`{"admission": {"secrets": [{"name": "a", "value": "b"}]}}`: `the member admission.secrets[0] of the mesh ` +
			`file: unknown field "value"; allowed: name, valueFrom`,
		`{"admission": {"images": {"envoy": {"ARM64": "envoy:1"}}}}`: "the member admission.images.envoy of the mesh " +
			"file: must be a string, but is a " +
			"JSON object; for tasks of both architectures name an index of both images, or take a mesh file for each",
		`{"sidecars": {}}`: `the mesh file has the unknown member "sidecars"; its place is admission.sidecars`,
		`{"envoyConcurrency": 4}`: `the mesh file has the unknown member "envoyConcurrency"; its place is ` +
			`admission.envoyConcurrency`,
		`{"meshInit": {"cpu": 16}}`: `the mesh file has the unknown member "meshInit"; its place is ` +
			`admission.sidecars.meshInit`,
		`{"envoy": "envoyproxy/envoy:v1.40.0"}`: `the mesh file has the unknown member "envoy"; its place is ` +
			`admission.images.envoy`,
		`{"admission": {"retryJoin": ["10.0.0.4"]}}`: `the member admission of the mesh file: unknown field ` +
			`"retryJoin"; its place is admission.client.retryJoin`,
		`{"admission": {"consulServers": {}}}`: `the member admission of the mesh file: unknown field ` +
			`"consulServers"; its place is the root of the file`,
		`{"admission": {"proxy": {"cpu": 16}}}`: `the member admission of the mesh file: unknown field "proxy"; its ` +
			`place is the root of the file or admission.sidecars.proxy`,
		`{"admission": {"zzzzzzzzzz": 1}}`: `unknown field "zzzzzzzzzz"; allowed: client, envoyConcurrency, ` +
			`ignoreContainers, images, logConfiguration, operatorToken, secrets, sidecars`,
	} {
		if _, err := ParseMesh([]byte(doc)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", doc, err, want)
		}
	}
}

// The list of members that config knows lacks that of the mesh file alone.
func TestUnknownMemberOfTheConfigurationNamesAdmission(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]bool{
		`{"consulServers": {"hosts": "10.0.0.4"}, "zzzzzzzzzz": 1}`:                               true,
		`{"consulServers": {"hosts": "10.0.0.4"}, "service": {"port": 80, "zzzzzzzzzzzzz": "x"}}`: false,
	} {
		got := strings.Join(messages(admitAll(t, definition("", plainApp), parseMesh(t, []byte(doc))), codeConfig), "\n")
		if !strings.Contains(got, "; allowed: ") || strings.Contains(got, "; allowed: admission, ") != want {
			t.Errorf("%s: findings %q, with admission %v", doc, got, want)
		}
	}
}
