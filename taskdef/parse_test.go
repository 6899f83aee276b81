package taskdef

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestParseSyntaxErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, want string }{
		{"", "line 1, column 1: the file is empty"},
		{"\xef\xbb\xbf{}", "line 1, column 1: the file begins with a byte order mark: save it as UTF-8 without BOM"},
		{"{\n  \"family\": \"\xe9\"}", "line 2, column 14: byte 0xe9 is not UTF-8: save the file as UTF-8"},
		{"{\n  \"family\": \"é\" x", "line 2, column 17: invalid character 'x' after object key:value pair"},
		{"{\n\"family\": ", "line 2, column 11: unexpected end of JSON input: something is cut off, or a bracket " +
			"is not closed"},
		{"{} {}", "line 1, column 4: invalid character '{' after top-level value"},
		{"{\"a\": 01}", "line 1, column 8: invalid character '1' after object key:value pair"},
		{"{\"a\": 1,\n}", "line 2, column 1: invalid character '}' looking for beginning of object key string: no " +
			"comma may stand before it"},
		{"[1, ]", "line 1, column 5: invalid character ']' looking for beginning of value: no comma may " +
			"stand before it"},
		{"[}", "line 1, column 2: invalid character '}' looking for beginning of value"},
		{"{ // the web\n}", "line 1, column 3: invalid character '/' looking for beginning of object key string: " +
			"JSON has no comments"},
		{"{'a': 1}", "line 1, column 2: invalid character '\\'' looking for beginning of object key string: JSON has " +
			"double quotes only"},
		{"# web\nfamily: web\n", "line 1, column 1: this looks like YAML, but ECS takes JSON; `yq -o=json` " +
			"converts it"},
		{"---\n", "line 1, column 2: this looks like YAML, but ECS takes JSON; `yq -o=json` converts it"},
		{"hello", "line 1, column 1: invalid character 'h' looking for beginning of value"},
	} {
		_, err := Parse([]byte(tt.doc))
		var syntax *Fault
		if !errors.As(err, &syntax) || err.Error() != tt.want {
			t.Errorf("%q: %v, want %s", tt.doc, err, tt.want)
		}
	}
}

func TestParseWarnsOfRepeatedKeys(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte(`{"family": "a", "cpu": "1", "family": "b", "containerDefinitions": [{"name": "x"},
		{"name": "a", "environment": [{"name": "A"}], "image": "i", "environment": [], "dockerLabels": {"l": "1", "m": "", "l": "1"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Warning{
		{"$.family", "key given twice, the last one counts", ""},
		{"$.containerDefinitions[1].environment", "key given twice, the last one counts", ""},
		{"$.containerDefinitions[1].dockerLabels.l", "key given twice, the last one counts", ""},
	}
	if diff := cmp.Diff(want, d.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if d.Definition.Family != "b" || len(d.Definition.ContainerDefinitions[1].Environment) != 0 {
		t.Errorf("not the last one: %+v", d.Definition)
	}
}

func TestParseTypeErrorsAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`{"family": 1, "cpu": 256, "containerDefinitions": [
		{"name": "a", "essential": "true", "memory": 1.5, "environment": {"A": "B"},
		 "dockerLabels": {"x": 1}, "portMappings": [{"containerPort": "80"}, null], "stopTimeout": 99999999999}, []],
		"ephemeralStorage": "x"}`))
	want := `invalid task definition:
  $.containerDefinitions[0].dockerLabels["x"]: must be a string, but is the number 1 (type)
  $.containerDefinitions[0].environment: must be a list, but is an object (type)
  $.containerDefinitions[0].essential: must be true or false, but is the string "true" (type)
  $.containerDefinitions[0].memory: must be an integer, but is the number 1.5 (type)
  $.containerDefinitions[0].portMappings[0].containerPort: must be an integer, but is the string "80" (type)
  $.containerDefinitions[0].portMappings[1]: must be an object, but is null (type)
  $.containerDefinitions[0].stopTimeout: must be an integer, but is the number 99999999999 (type)
  $.containerDefinitions[1]: must be an object, but is a list (type)
  $.cpu: must be a string, but is the number 256 (type)
  $.ephemeralStorage: must be an object, but is the string "x" (type)
  $.family: must be a string, but is the number 1 (type)`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// A bare list of containers is what Terraform users have at hand.
func TestParseContainerListNamesTheRemedy(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`[{"name": "a"}]`))
	want := "$: must be an object, but is a list; a list of containers goes into " +
		`{"family": ..., "containerDefinitions": [...]}`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestParseUnknownKeysAreWarnings(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte(`{"Family": "x", "family": "web", "zzzzzz": null, "containerDefinitions": [
		{"name": "a", "image": "i", "healthcheck": {}, "entrypoint": [], "comand": ["x"], "environment": [{"nmae": "x"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Warning{
		{"$.Family", `unknown key; did you mean "family"?`, "family"},
		{"$.containerDefinitions[0].comand", `unknown key; did you mean "command"?`, "command"},
		{"$.containerDefinitions[0].entrypoint", `unknown key; did you mean "entryPoint"?`, "entryPoint"},
		{"$.containerDefinitions[0].environment[0].nmae", `unknown key; did you mean "name"?`, "name"},
		{"$.containerDefinitions[0].healthcheck", `unknown key; did you mean "healthCheck"?`, "healthCheck"},
		{"$.zzzzzz", "key not known to this version, kept", ""},
	}
	if diff := cmp.Diff(want, d.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if d.Definition.Family != "web" || d.Definition.ContainerDefinitions[0].HealthCheck != nil {
		t.Errorf("an unknown key was taken: %+v", d.Definition)
	}
}

func TestParseDescribeForm(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte(`{"taskDefinition": {"taskDefinitionArn": "arn:x", "family": "web", "revision": 7,
		"status": "ACTIVE", "registeredAt": 1772471321.5, "compatibilities": ["EC2"],
		"requiresAttributes": [{"name": "ecs.capability.x"}], "containerDefinitions": [], "tga": 1}, "tags": [{"key": "k", "value": "v"}], "tag": []}`))
	if err != nil {
		t.Fatal(err)
	}
	def := d.Definition
	if len(def.Tags) != 1 {
		t.Fatalf("tags %+v, want one", def.Tags)
	}
	parsed := []any{def.Family, int(def.Revision), def.TaskDefinitionARN, def.RegisteredAt, def.Tags[0].Value}
	if diff := cmp.Diff([]any{"web", 7, "arn:x", json.Number("1772471321.5"), "v"}, parsed); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
	want := []Warning{
		{"$.taskDefinition.tga", `unknown key; did you mean "tags"?`, "tags"},
		{"$.tag", `unknown key; did you mean "tags"?`, "tags"},
	}
	if diff := cmp.Diff(want, d.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if _, err := Parse([]byte(`{"taskDefinition": {"family": 1}}`)); err == nil ||
		!strings.Contains(err.Error(), "$.taskDefinition.family") {
		t.Errorf("path of a type error inside the answer: %v", err)
	}
}

func TestNullIsNoDefinition(t *testing.T) {
	t.Parallel()
	for doc, path := range map[string]string{`null`: "$", `{"taskDefinition": null}`: "$.taskDefinition"} {
		if _, err := Parse([]byte(doc)); err == nil ||
			!strings.HasSuffix(err.Error(), "  "+path+": must be an object, but is null (type)") {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestNullIsAbsent(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte(`{"family": "f", "cpu": null, "containerDefinitions": [{"name": "a", "essential": null, ` +
		`"healthCheck": null, "environment": null}]}`))
	if err != nil || len(d.Warnings) > 0 {
		t.Fatal(err, d.Warnings)
	}
	c := d.Definition.ContainerDefinitions[0]
	if got := [3]bool{c.IsEssential(), c.HealthCheck != nil, c.Environment != nil}; got != [3]bool{true, false, true} {
		t.Errorf("essential, has a health check, has an environment: %v, container %+v", got, c)
	}
}

// The golden file is the canonical form: what registration would answer.
func TestDefaults(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("testdata/mesh.json")
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, doc)
	if v := d.Validate(); len(v) > 0 {
		t.Errorf("the mesh module's definition is refused: %v", v)
	}
	canonical, err := json.MarshalIndent(d.Definition, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "mesh.canonical.json", append(canonical, '\n'))

	if diff := cmp.Diff(d.Definition, parse(t, canonical).Definition); diff != "" {
		t.Errorf("the canonical form reads differently (-first +second):\n%s", diff)
	}
}

// ECS writes the user of a log router into its answer; without it admission's tag would differ from then on.
func TestLogRouterRunsAsRoot(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{"": "0", "1000": "1000"} {
		d := parse(t, changed(t, webTask, firelens, router, second+`.user = "`+user+`"`)).Definition
		if d.ContainerDefinitions[1].User != want || d.ContainerDefinitions[0].User != "" {
			t.Errorf("user %q: %q, want %q", user, d.ContainerDefinitions[1].User, want)
		}
	}
}

// ECS stores both lists of capabilities, and a Terraform configuration without one of them would
// replace the definition with each apply.
func TestBothListsOfCapabilitiesAreStored(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"initProcessEnabled": true}`:             `{"initProcessEnabled":true}`,
		`{"capabilities": {"drop": ["ALL"]}}`:      `{"capabilities":{"add":[],"drop":["ALL"]}}`,
		`{"capabilities": {"add": ["NET_ADMIN"]}}`: `{"capabilities":{"add":["NET_ADMIN"],"drop":[]}}`,
		`{"capabilities": {}}`:                     `{"capabilities":{}}`,
	} {
		d := parse(t, changed(t, hostTask, app+`.linuxParameters = `+given)).Definition
		stored, err := json.Marshal(d.ContainerDefinitions[0].LinuxParameters)
		if err != nil {
			t.Fatal(err)
		}
		if string(stored) != want {
			t.Errorf("%s is stored as %s, want %s", given, stored, want)
		}
	}
}

// Every key of the types must be known: a field without a tag
// would never be filled.
func TestEveryFieldHasAKey(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key == "" || key[0] < 'a' {
				t.Errorf("%s.%s has key %q", typ.Name(), f.Name, key)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[TaskDefinition]())
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "{}", "{\"a\": 1e999, \"a\": [{}, [1]]}", "[]", "null",
		`{"taskDefinition": {"family": "x"}}`, `{"taskDefinition": null}`,
		webTask, hostTask, `{"containerDefinitions": [{"restartPolicy": {}, "portMappings": [{}]}], "cpu": ` +
			`"1e9 vCPU"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, err := Parse(doc)
		if err != nil {
			return
		}
		d.Validate()
		if len(d.repeated) == 0 && !bytes.Equal(d.Bytes(), doc) {
			t.Fatalf("an unchanged document is written as %s", d.Bytes())
		}
		canonical, err := json.Marshal(d.Definition)
		if err != nil {
			t.Fatalf("a parsed definition cannot be written: %v", err)
		}
		again, err := Parse(canonical)
		if err != nil || len(again.Warnings) > 0 {
			t.Fatalf("canonical form %s: %v", canonical, err)
		}
	})
}
