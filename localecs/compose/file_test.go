package compose

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

func parse(t *testing.T, document string) *taskdef.TaskDefinition {
	t.Helper()
	doc, err := taskdef.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Definition
}

func everything(t *testing.T) *taskdef.TaskDefinition {
	t.Helper()
	data, err := os.ReadFile("testdata/everything.json")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

// The file with all that a definition may have; docker-compose takes it.
func TestFile(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"everything.yaml": {Region: "eu-west-1", Setting: "../scenario.yaml", StartInterval: true},
		"older.yaml":      {Region: "eu-west-1"},
	} {
		def := everything(t)
		o.Tasks = []FileTask{{Name: "shop", Path: "everything.json", Definition: def}, {Name: "shop-2", Path: "everything.json", Definition: def}}
		f, err := NewFile(o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := f.YAML("Made for a test.\nTwo lines.")
		if err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, name, text)
		if name == "older.yaml" { // docker-compose 1.29 does not know start_interval
			config(t, filepath.Join("testdata", name))
		}
	}
}

// config checks that docker-compose reads a file; it needs no engine.
func config(t *testing.T, file string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, testkit.RequireBinary(t, "docker-compose"), "-f", file, "config")
	cmd.Env = append(os.Environ(), "SHOP_DB_ABCDEF_PASSWORD=$p", "SHOP_KEY=k", "SHOP_KEY_2=k2", "DOCKER_HOST=unix:///nonexistent")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker-compose config: %v", err)
	}
	for _, want := range []string{"PRICE: $$5", "PASSWORD: $$p", "condition: service_completed_successfully", "image: redis:7", "- $$HOME costs $$5"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("docker-compose config lacks %q", want)
		}
	}
}

func TestNameClashesAreReportedTogether(t *testing.T) {
	t.Parallel()
	def := func(containers ...string) *taskdef.TaskDefinition {
		d := &taskdef.TaskDefinition{Family: "f"}
		for _, c := range containers {
			d.ContainerDefinitions = append(d.ContainerDefinitions, taskdef.Container{Name: c, Image: "i"})
		}
		return d
	}
	_, err := NewFile(Options{Tasks: []FileTask{
		{Name: "a", Path: "a.json", Definition: def("b-c", "b")},
		{Name: "a-b", Path: "ab.json", Definition: def("c")},
		{Name: "endpoints", Path: "e.json", Definition: def("x")},
		{Name: "Web_1", Path: "w.json", Definition: def("x")},
	}})
	const want = `ab.json: service a-b already exists for a.json: $.containerDefinitions[1]; rename the task, NAME=FILE
ab.json: $.containerDefinitions[0]: service a-b-c already exists for a.json: $.containerDefinitions[0]; rename the task, NAME=FILE
e.json: service endpoints already exists for the endpoints; rename the task, NAME=FILE
w.json: task name "Web_1": want lower-case letters, digits and hyphens; rename the task, NAME=FILE`
	if err == nil || err.Error() != want {
		t.Errorf("error (-want +got):\n%s", cmp.Diff(want, err.Error()))
	}
}

func TestImagesHaveVariables(t *testing.T) {
	t.Parallel()
	var def taskdef.TaskDefinition
	for _, i := range []string{"hashicorp/consul:1.20.1", "a/tool:1", "b/tool:1", "nginx:1", "nginx:2", "r:5000/x", "1st", "p/q:r", "p/q_r", "p/q.r"} {
		def.ContainerDefinitions = append(def.ContainerDefinitions, taskdef.Container{Image: i})
	}
	want := map[string]string{
		"hashicorp/consul:1.20.1": "CONSUL_IMAGE", "a/tool:1": "A_TOOL_IMAGE", "b/tool:1": "B_TOOL_IMAGE",
		"nginx:1": "NGINX_1_IMAGE", "nginx:2": "NGINX_2_IMAGE", "r:5000/x": "X_IMAGE", "1st": "_1ST_IMAGE",
		"p/q:r": "Q_IMAGE", "p/q_r": "P_Q_R_9_IMAGE", "p/q.r": "P_Q_R_7_IMAGE",
	}
	if diff := cmp.Diff(want, imageVariables([]FileTask{{Definition: &def}})); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestSecretsHaveVariables(t *testing.T) {
	t.Parallel()
	b := &builder{secrets: map[string]string{}}
	for _, c := range []struct{ valueFrom, want string }{
		{"/shop/key", "SHOP_KEY"},
		{"shop-key", "SHOP_KEY_2"},
		{"/shop/key", "SHOP_KEY"},
		{"arn:aws:ssm:us-east-1:123456789012:parameter/team/key", "TEAM_KEY"},
		{"arn:aws:secretsmanager:us-east-1:123456789012:secret:db", "DB"},
		{"arn:aws:secretsmanager:us-east-1:123456789012:secret:db-AbCdEf:password::", "DB_ABCDEF_PASSWORD"},
		{"arn:aws:secretsmanager:us-east-1:123456789012:secret:db::AWSPREVIOUS:", "DB__AWSPREVIOUS"},
		{"7", "_7"},
	} {
		if got := b.secretVariable(c.valueFrom); got != c.want {
			t.Errorf("%s: %s, want %s", c.valueFrom, got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"web": "web", "/bin/sh": "/bin/sh", "a.b-c_d": "a.b-c_d", "": `""`, "yes": `"yes"`, "Off": `"Off"`, "null": `"null"`,
		"22:22": `"22:22"`, "1e3": `"1e3"`, "-x": `"-x"`, "a b": `"a b"`, "${A:-b}": `"${A:-b}"`, "a: b": `"a: b"`, "a\nb": `"a\nb"`, "a.": `"a."`,
	} {
		if got, _ := quote(text); string(got) != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
}

// FuzzYAML: whatever a definition says comes back as it was.
func FuzzYAML(f *testing.F) {
	for _, s := range []string{"", "web", "no", "0x1F", "12:30:45", "~", "<<", "é\u2028\u0085", "a: b # c", "\t\x01", "- x", "'", "\"", "\\n", "%", "@a", "1_000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		text, err := File{Services: map[string]Service{"a": {Image: s, Command: []string{s, "x"}}}}.YAML("x")
		if err != nil {
			t.Fatal(err)
		}
		var back File
		if err := yaml.Unmarshal(text, &back); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if got := back.Services["a"]; got.Image != s || got.Command[0] != s {
			t.Errorf("%q came back as %q and %q from\n%s", s, got.Image, got.Command, text)
		}
	})
}
