package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestLoadReadsTheExample(t *testing.T) {
	t.Parallel()
	f, err := Load(filepath.Join(testkit.Root(), "examples", "hello-mesh"))
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "hello-mesh" || len(f.Tasks) != 3 || len(f.Steps) != 14 || f.Checks.MinRequests != 200 {
		t.Errorf("got name %q, %d tasks, %d steps, checks %+v", f.Name, len(f.Tasks), len(f.Steps), f.Checks)
	}
	if f.StopOrder != "reverse" {
		t.Errorf("stop order %q, want the default", f.StopOrder)
	}
	roles := f.roles()
	if len(roles) != 2 || !strings.HasPrefix(roles[0].ARN(), "arn:aws:iam::123456789012:role/consul-ecs/") {
		t.Errorf("roles %+v", roles)
	}
}

func TestParseReportsEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`
stopOrder: never
tasks: {web: web.json}
consul: {image: none}
steps:
- start: [web, db]
- {start: [web], stop: [web]}
- {}
- await: {service: a, requests: 3, within: 1s}
- await: {task: web, within: 1s}
- await: {service: a}
- traffic: {task: web, port: 80, rate: 0}
`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"name: must not be empty",
		`stopOrder: "never": want reverse or at-once`,
		`consul.image: "none" is not in images`,
		`steps[0]: start: task "db" is not in tasks`,
		"steps[1]: want exactly one of",
		"steps[2]: want exactly one of",
		"steps[3]: await: want exactly one of service, task, requests",
		"steps[4]: await: task needs container and status",
		"steps[5]: await: within",
		"steps[6]: traffic.rate: 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not reported: %s\n%v", want, err)
		}
	}
}

func TestParseRefusesUnknownKeysWithTheirPlace(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("name: x\ntasks: {web: w.json}\nchecks:\n  failed: 0\n"))
	if err == nil || !strings.Contains(err.Error(), "failed") || !strings.Contains(err.Error(), "[4:") {
		t.Errorf("got %v, want the key and its line", err)
	}
}

func TestImagesNamesEveryMissingProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f := &File{Dir: dir, Images: map[string]*Image{
		"good": {Programs: map[string]string{"/a": "program", "/b": "${bin}/program"}},
		"bad":  {Programs: map[string]string{"/c": "${consul}", "/d": "absent", "/e": "data"}},
	}}
	images, err := f.images(map[string]string{"bin": dir})
	for _, want := range []string{"${consul}, which was not found", "absent", "data is not a program"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not reported: %s\n%v", want, err)
		}
	}
	if got := images["good"].Programs; got["/a"] != program || got["/b"] != program {
		t.Errorf("programs %v, want both to be %s", got, program)
	}
}

func FuzzParse(f *testing.F) {
	example, err := os.ReadFile(filepath.Join(testkit.Root(), "examples", "hello-mesh", FileName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte("steps:\n- await: {within: 1s}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := Parse(data); err == nil && (file.Name == "" || len(file.Tasks) == 0) {
			t.Errorf("accepted without name or tasks: %q", data)
		}
	})
}
