package view_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// hello is what a run of examples/hello-mesh has left.
func hello(t *testing.T) view.RecordedRun {
	t.Helper()
	data, err := os.ReadFile("testdata/hello-mesh.json")
	if err != nil {
		t.Fatal(err)
	}
	var run view.RecordedRun
	if err := json.Unmarshal(data, &run); err != nil {
		t.Fatal(err)
	}
	return run
}

func TestSketchIsAsItWas(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]view.SketchOptions{
		"wide.txt":   {Width: 160, Tasks: true},
		"usual.txt":  {Width: 80, Tasks: true, Only: "api-3"},
		"ascii.txt":  {Width: 80, ASCII: true, Tasks: true, Only: "api-1"},
		"colour.txt": {Width: 80, Colour: true},
		"narrow.txt": {Width: 10},
	} {
		var b bytes.Buffer
		if err := view.WriteSketch(&b, hello(t), o); err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, name, b.Bytes())
		for line := range strings.Lines(b.String()) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); !o.Colour && n > max(o.Width, 60) {
				t.Errorf("%s: a line of %d cells: %s", name, n, line)
			}
			if strings.Contains(line, "\x1b") && !o.Colour {
				t.Errorf("%s: colours: %q", name, line)
			}
			if o.ASCII && len(line) != utf8.RuneCountInString(line) {
				t.Errorf("%s: not ASCII: %s", name, line)
			}
		}
	}
}
