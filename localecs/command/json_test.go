package command

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
)

// TestEveryCommandIsListedForMachines: docs/localecs/reference.md says of each command what
// -json does, or why it has none, and names all that the state of a run has.
func TestEveryCommandIsListedForMachines(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "localecs", "reference.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(page), "### Every command for machines\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	for name, command := range app().Commands {
		fs := flag.NewFlagSet(name, flag.ContinueOnError)
		if command.Flags != nil {
			command.Flags(fs)
		}
		row := regexp.MustCompile("(?m)^\\| .*`" + name + "`.* \\| (.*) \\|$").FindStringSubmatch(chapter)
		switch {
		case row == nil:
			t.Errorf("%s is not listed", name)
		case (fs.Lookup("json") == nil) != strings.HasPrefix(row[1], "–"):
			t.Errorf("%s: the page says %q", name, row[1])
		}
	}
	for _, of := range []any{control.State{}, control.Task{}, control.Container{}, control.Consul{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if field.Anonymous || len(field.Index) > 1 { // the ECS API's
				continue
			}
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if key != "-" && !strings.Contains(chapter, "`"+key+"`") {
				t.Errorf("%T: %s is not shown", of, key)
			}
		}
	}
}

// What is wrong is JSON, too, where JSON was asked for.
func TestMistakesAsJSON(t *testing.T) {
	t.Parallel()
	got := call(t, "run", "-check", "-json", definitionFile(t, "true"))
	var object struct {
		Level string `json:"@level"`
		Error string `json:"error"`
		Code  int    `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(got.stderr), &object); err != nil {
		t.Fatalf("%v: %s", err, got.stderr)
	}
	testkit.Equal(t, "exit code", got.code, 1)
	testkit.Equal(t, "level", object.Level, "error")
	testkit.Equal(t, "exit_code", object.Code, 1)
	if want := "-image 'any:1=host'"; !strings.Contains(object.Error, want) {
		t.Errorf("error: got %q, want %q in it", object.Error, want)
	}
}
