package subcommand

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Each call of admit on the page works, for the files that the page supposes.
func TestCommandsOfThePageOfAdmissionWork(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "ADMISSION.md"))
	if err != nil {
		t.Fatal(err)
	}
	plain := plainTask(`, "entryPoint": ["/app"]`)
	template := `{"Resources": {"` + "%" +
		`": {"Type": "AWS::ECS::TaskDefinition", "Properties": {"NetworkMode": "awsvpc", "ContainerDefinitions": [{"Name": "web", "Image": "web", "Memory": 64, "EntryPoint": ["/web"]}]}}}}`
	const yaml = "Resources:\n  Web:\n    Type: AWS::ECS::TaskDefinition\n    Properties:\n      NetworkMode: " +
		"awsvpc\n      ContainerDefinitions:\n        - {Name: web, Image: !Ref Image, Memory: 64, EntryPoint: " +
		"[/web]}\n"
	dir := t.TempDir()
	const locked = `{"digest": "sha256:%[2]s", "platforms": {"linux/amd64": {"digest": "sha256:%[2]s"}}}`
	var images []string
	for _, image := range []string{"example/app:1", "example/consul-ecs:1", "hashicorp/consul-dataplane:1.9.0"} {
		images = append(images, fmt.Sprintf("%q: "+locked, image, strings.Repeat("0", 64)))
	}
	for name, text := range map[string]string{
		"mesh.json": `{"consulServers": {"hosts": "10.0.0.4"}, "transparentProxy": {"enabled": false}, "admission": {"images": {"consulECS": "example/consul-ecs:1"}}}`, "web.json": plain, "containers.json": `[{"name": "web", "image": "web", "memory": 64, "entryPoint": ["/web"]}]`,
		"images.lock.json": `{"version": 1, "images": {` + strings.Join(images, ", ") + "}}",
		"template.yaml":    yaml, "infrastructure/front-test.stack.yml": yaml,
		"cdk.out/Shop.template.json": strings.ReplaceAll(template, "%", "TaskDef54694570"),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	for line := range strings.Lines(string(page)) {
		prompt, call, found := strings.Cut(line, "consul-ecs admit -")
		if !found || !strings.HasPrefix(prompt, "$ ") && !strings.HasPrefix(prompt, "- run: ") {
			continue
		}
		call, _, _ = strings.Cut("-"+call, ">")
		var words []string
		for _, word := range strings.Fields(call) {
			if strings.Contains(word, ".") {
				word = filepath.Join(dir, word)
			}
			if word != "-register" { // it needs AWS
				words = append(words, word)
			}
		}
		calls++
		if code, stdout, stderr := callAdmit(plain, words...); code != 0 || stdout == "" {
			t.Errorf("%s: exit %d, stderr %s", strings.TrimSpace(line), code, stderr)
		}
	}
	if calls != 10 {
		t.Errorf("%d calls of admit on the page, want 10", calls)
	}
}
