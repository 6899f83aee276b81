package file_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func TestSchemaMatchesTheTypes(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(newWriter(t).document()); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "../schema.json", b.Bytes())
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(file.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, document []byte) error {
	t.Helper()
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

func TestTheExamplesAreValid(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	paths, err := filepath.Glob(filepath.Join(testkit.Root(), "examples", "*", "scenario.yaml"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("%q, %v", paths, err)
	}
	for _, path := range paths {
		document, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, document); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSchemaRefusals(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	const head = "name: x\ntasks: {a: a.json}\n"
	for _, good := range []string{
		head,
		head + "images: {a: {programs: host}, b: {programs: [sh]}, '*': {programs: {/a: b}}}\n",
		head + "secrets: {a: b, c: {file: d}}\n",
		head + "seed: 18446744073709551615\ntimeScale: 0.5\ngatePeriod: 5s\n",
		head + "steps: [{at: 1.5s, stop: [a]}, {stop: {tasks: [a], background: true}}, {endTraffic: true}, " +
			"{endTraffic: {failed: 0}}, {pause: 1.5s}]",
		head + "faults: [{at: 1m30s, server: down}, {endpoint: {name: sts, skew: -20m}}]",
	} {
		if err := validate(t, s, []byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"tasks: {a: a.json}\n",
		head + "stpes: []\n",
		head + "images: {a: {programs: 1}}\n",
		head + "secrets: {a: {}}\n",
		head + "seed: -1\n",
		head + "gatePeriod: 5\n",
		head + "gatePeriod: soon\n",
		head + "stopOrder: never\n",
		head + "steps: [{start: [a], stop: [a]}]\n",
		head + "steps: [{at: 1s}]\n",
		head + "steps: [{awiat: {requests: 1, within: 1s}}]\n",
		head + "steps: [{await: {requests: 1}}]\n",
		head + "steps: [{endTraffic: false}]\n",
		head + "steps: [{pause: long}]\n",
		head + "tasks: {a: {definiton: a.json}}\n",
		head + "faults: [{at: 1s}]\n",
		head + "faults: [{server: gone}]\n",
		head + "faults: [{kill: {container: a}}]\n",
		head + "faults: [{freeze: {task: a}}]\n",
		head + "faults: [{endpoint: {name: s3, hang: true}}]\n",
		head + "faults: [{endpoint: {name: sts}}]\n",
		head + "faults: [{endpoint: {name: sts, hang: true, cut: true}}]\n",
		head + "faults: [{endpoint: {name: sts, status: 404}}]\n",
		head + "faults: [{endpoint: {name: sts, hang: true, share: 2}}]\n",
	} {
		if bad = strings.Replace(bad, head+"tasks", "name: x\ntasks", 1); validate(t, s, []byte(bad)) == nil {
			t.Errorf("accepted:\n%s", bad)
		}
	}
}
