package admission

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Two tokens of operators: as Consul makes them, and one with characters that JSON
// escapes.
const (
	leakedUUID = "5ec5ec19-0000-4000-8000-00000000001e"
	leakedOdd  = `p/s w+rd?"<ü>%\`
)

// admitWith admits with a token.
func admitWith(t *testing.T, doc []byte, mesh, token string) *Result {
	t.Helper()
	r, err := Admit(doc, Options{Mesh: parseMesh(t, []byte(mesh)), Token: secret.New(token)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTokenIsStripped(t *testing.T) {
	t.Parallel()
	for _, token := range []string{leakedUUID, leakedOdd} {
		quoted, _ := json.Marshal(token) // it is a string
		text := string(quoted)
		doc := definition("", plainApp+`, "environment": [{"name": "A", "value": "1"}, {"name": "CONSUL_HTTP_TOKEN", "value": `+text+`}, {"name": "OTHER", "value": `+text+`}, {"name": "B", "value": "2"}]`)
		mesh := `{"consulServers": {"hosts": "10.0.0.4"}, "service": {"port": 1, "meta": {"owner": "a", "token": ` +
			text + `}}, "admission": {"operatorToken": ` + text + `}}`
		r := admitWith(t, doc, mesh, token)
		if form := secret.NewLeaks(secret.New(token)).Find(string(r.After.Bytes())); form != "" {
			t.Errorf("the token is in the definition, %s", form)
		}
		var got []string
		for _, f := range slices.DeleteFunc(r.Findings, isOrdinary) {
			got = append(got, f.String())
		}
		want := []string{
			`warning ADM-TOKEN $: removed the member token of the mesh file, whose value is the operator's token ` +
				`(remove it from the input)`,
			`warning ADM-TOKEN $.containerDefinitions[0].environment[1]: removed the variable, whose value is the ` +
				`operator's token (remove it from the input)`,
			`warning ADM-TOKEN $.containerDefinitions[0].environment[2]: removed the variable, whose value is the ` +
				`operator's token (remove it from the input)`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("findings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if env := fmt.Sprint(r.After.Definition.Container("app").Environment); env != "[{A 1  } {B 2  }]" {
			t.Errorf("environment %s", env)
		}
		if again := admitWith(t, r.After.Bytes(), mesh, token); !bytes.Equal(again.After.Bytes(), r.After.Bytes()) {
			t.Error("the second admission changes the first")
		}
	}
}

func TestLeakRejectsTheDefinition(t *testing.T) {
	t.Parallel()
	for path, more := range map[string]string{
		"$.containerDefinitions[0].command[1]":                         `, "command": ["run", "-token=%s"]`,
		"$.containerDefinitions[0].environment[0].value":               `, "environment": [{"name": "A", "value": "x %s"}]`,
		"$.containerDefinitions[0].healthCheck.command[1]":             `, "healthCheck": {"command": ["CMD", "%s"]}`,
		`$.containerDefinitions[0].dockerLabels["team.example/owner"]`: `, "dockerLabels": {"team.example/owner": "%s"}`,
		"$.containerDefinitions[0].dockerLabels.owner":                 `, "dockerLabels": {"owner": "%s"}`,
		"$.containerDefinitions[0].x-unknown":                          `, "x-unknown": "%s"`,
		"$.containerDefinitions[0].logConfiguration.options.splunk-token": `, "logConfiguration": {"logDriver": ` +
			`"splunk", "options": {"splunk-token": "%s"}}`,
	} {
		for _, leaked := range []string{leakedUUID, base64.StdEncoding.EncodeToString([]byte("a:" + leakedUUID)),
			"%" + strings.ToUpper(hex.EncodeToString([]byte{leakedUUID[0]})) + leakedUUID[1:]} {
			r := admitWith(t, definition("", plainApp+strings.ReplaceAll(more, "%s", leaked)), plainMesh, leakedUUID)
			var found []string
			for _, f := range r.Findings {
				if f.Code == codeLeak {
					found = append(found, f.Path)
				}
				if strings.Contains(f.String(), leaked) {
					t.Errorf("the finding %s has the token", f)
				}
			}
			if !r.Rejected(false) || strings.Join(found, " ") != path {
				t.Errorf("%s in %s: rejected %v, found at %q", leaked, path, r.Rejected(false), found)
			}
		}
	}
	r := admitWith(t, definition("", plainApp),
		`{"consulServers": {"hosts": "10.0.0.4"}, "service": {"port": 1, "tags": ["`+leakedUUID+`"]}}`, leakedUUID)
	if !r.Rejected(false) {
		t.Errorf("a list of the mesh file leaks: findings %v", r.Findings)
	}
	plain := definition("", plainApp+`, "dockerLabels": {"consul.hashicorp.com/mesh-inject": "false"}, `+
		`"environment": [{"name": "CONSUL_HTTP_TOKEN", "value": "`+leakedUUID+`"}]`)
	r = admitWith(t, plain, plainMesh, leakedUUID)
	if r.Injected || !r.Rejected(false) {
		t.Errorf("without the mesh: injected %v, findings %v", r.Injected, r.Findings)
	}
	testkit.Equal(t, "definition without the mesh", string(r.After.Bytes()), string(plain))
}

func TestFindingsAreRedacted(t *testing.T) {
	t.Parallel()
	r := admitWith(t, definition("", plainApp+`, "dockerLabels": {"consul.hashicorp.com/upstreams": "`+leakedUUID+`"}`),
		plainMesh, leakedUUID)
	codes := strings.Join(codesOf(r), " ")
	for _, f := range r.Findings {
		if strings.Contains(f.String(), leakedUUID) {
			t.Errorf("the finding %s has the token", f)
		}
	}
	if codes != "ADM-LEAK ADM-ANN-VALUE" && codes != "ADM-ANN-VALUE ADM-LEAK" {
		t.Errorf("codes %s", codes)
	}
}
