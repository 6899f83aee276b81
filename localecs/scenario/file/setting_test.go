package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// What serve takes of a file needs no scenario in it, and may be one.
func TestLoadSetting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"images: {a: {programs: {/bin/sh: /bin/sh}}}\nroles: {shop: {actions: ['ecs:List*']}}\n": "",
		"subnet: 10.1.0.0/24\n":     "",
		"subnet: here\n":            `subnet: "here": want a CIDR block such as 10.42.0.0/24`,
		"cluster: a b\n":            `cluster: "a b": want letters, digits, _ and -, as ECS does`,
		"timeScale: -1\n":           `timeScale: -1: want 0.01 to 1000: it divides the seconds of task definitions`,
		"api: {lag: {tags: -1s}}\n": `tags: -1s: want 0s or more`,
		"gatePeriod: -1s\n":         `gatePeriod: -1s: want 0s or more`,
		"environmentFiles: {web: }\n": `environmentFiles: "web": want the ARN in the task definition, such as ` +
			`arn:aws:s3:::bucket/web.env`,
		"images: {a: }\n": `images["a"]: want programs`,
		"imagse: {}\n":    `unknown key "imagse"; did you mean "images"?`,
	} {
		path := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := LoadSetting(path)
		switch {
		case want == "" && (err != nil || s.Account != "123456789012" || s.Cluster != "default"):
			t.Errorf("%s: %+v, %v", text, s, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	s, err := LoadSetting(filepath.Join(testkit.Root(), "examples", "hello-mesh"))
	if err != nil {
		t.Fatalf("a scenario: %v", err)
	}
	testkit.Equal(t, "a scenario: Cluster", s.Cluster, "hello")
	if len(s.Images) == 0 || len(s.IdentityRoles()) == 0 {
		t.Errorf("a scenario: %v", err)
	}
}
