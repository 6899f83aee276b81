package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// What `consul-ecs admit` accepts, localecs accepts: the definitions that its tests have
// admitted, each in the format of the ECS API.
func TestCheckAcceptsAdmittedDefinitions(t *testing.T) {
	t.Parallel()
	const testdata = "../../admission/testdata"
	paths, err := filepath.Glob(filepath.Join(testdata, "admitted", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		findings, err := os.ReadFile(filepath.Join(testdata, "findings", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		definition, err := taskdef.Parse(doc)
		rejected := bytes.HasPrefix(findings, []byte("error ")) || bytes.Contains(findings, []byte("\nerror "))
		if rejected || err != nil || definition.Definition.Family == "" {
			continue // it is refused, or of another format
		}
		checked++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := []string{"run", "-check", "-dir", filepath.Join(t.TempDir(), "state")}
			known := map[string]bool{}
			once := func(key string, flags ...string) {
				if !known[key] {
					words = append(words, flags...)
				}
				known[key] = true
			}
			for _, c := range definition.Definition.ContainerDefinitions {
				once(c.Image, "-image", c.Image+"=host", "-cmd", c.Image+"=true")
				for _, s := range c.Secrets {
					once(s.ValueFrom, "-secret", s.ValueFrom+"=value")
				}
				for _, f := range c.EnvironmentFiles {
					once(f.Value, "-environment-file", f.Value+"="+os.DevNull)
				}
			}
			if got := call(t, append(words, path)...); got.code != 0 {
				t.Errorf("exit code %d: %s", got.code, got.stderr)
			}
		})
	}
	if checked < 30 {
		t.Errorf("%d definitions are checked, want 30", checked)
	}
}
